"""Stretches of a job's life in which it does one thing, found where its use of cores and storage changes. Pure.

Pieces that are alike are made one, the most alike first, until those left differ by more than chance and by more than
a tenth of the most there was. The sample in which a change lies has something of both sides; how much of each says
when in it the change was.
"""

from heapq import heapify, heappop, heappush
from itertools import pairwise
from math import log, sqrt
from statistics import median
from typing import NamedTuple

from msgspec import Struct

from jobsight.analyse.track import Level

MB = 1e6
# A difference smaller than this part of the most there was is none.
MATERIAL = 0.1
# Nothing is taken to be measured better than to this part of the most there was: programs breathe.
BREATH = 0.06
# Below this many bytes a second storage does not make a phase.
LEAST_TRAFFIC = 10 * MB
# Whoever moves as many, and so many for each core that is busy, reads or writes rather than computes.
STREAMING = 15 * MB
# Shorter than so many samples is a change, not a phase; so many of such are a phase that goes up and down.
SHORT, RESTLESS = 1.75, 4.0
# Two samples that differ by less than this part of what is measured are alike.
QUIET = 0.5
# From so many samples on a phase has an inside whose level is its own.
LONG = 4.0


class Phase(Struct):
    """One stretch. Cores and bytes a second are of all nodes together."""

    begin: float
    end: float
    kind: str
    """`computing`, `one core`, `reading`, `writing`, `waiting`."""
    cores: float
    read: float | None
    written: float | None

    @property
    def seconds(self) -> float:
        return self.end - self.begin


class _Stretch(NamedTuple):
    begin: float
    end: float
    weight: float
    """Samples' worth of time that was observed."""
    values: tuple[float, ...]

    def plus(self, other: "_Stretch") -> "_Stretch":
        weight = self.weight + other.weight
        values = tuple(
            (a * self.weight + b * other.weight) / weight for a, b in zip(self.values, other.values, strict=True)
        )
        return _Stretch(self.begin, other.end, weight, values)


class _Measure(NamedTuple):
    """How much of a difference is one, for each quantity."""

    scale: tuple[float, ...]
    highest: tuple[float, ...]

    def cost(self, one: _Stretch, other: _Stretch) -> float:
        """What is lost by taking two stretches for one."""
        off = sum(((a - b) / s) ** 2 for a, b, s in zip(one.values, other.values, self.scale, strict=True))
        return off * one.weight * other.weight / (one.weight + other.weight)

    def material(self, one: _Stretch, other: _Stretch) -> bool:
        pairs = zip(one.values, other.values, self.highest, strict=True)
        return any(abs(a - b) > MATERIAL * high for a, b, high in pairs)


def phases(levels: list[Level], every: float, cpus: int | None) -> list[Phase]:
    """In the order of time, without holes but for those in the data. `every`: seconds of a sample."""
    if not levels:
        return []
    # Or of what stands for one: rows may have been added up.
    every = max(every, median(level.end - level.start for level in levels), 1e-3)
    columns = [[level.cores for level in levels]]
    for name in ("read", "written"):
        known = [getattr(level, name) or 0.0 for level in levels]
        if max(known) >= LEAST_TRAFFIC:
            columns.append(known)
    weights = [(level.end - level.start) / every for level in levels]
    measure = _measured(columns, weights)
    parts = [
        _Stretch(level.start, level.end, weight, values)
        for level, weight, values in zip(levels, weights, zip(*columns, strict=True), strict=True)
    ]
    pieces = parts
    parts = _merged(_runs(parts, measure), measure, 6 + 3 * log(len(parts) + 1))
    parts = _levelled(parts, measure)
    bounds = _refined(pieces, _bounds(parts, measure), measure, every)
    found = [_phase(levels, begin, end, every, cpus) for begin, end in bounds]
    return [phase for phase in found if phase is not None]


def _measured(columns: list[list[float]], weights: list[float]) -> _Measure:
    scale, highest = [], []
    for column in columns:
        high = max(*column, 1e-9)
        steps = [
            abs(b - a) * sqrt(v * w / (v + w))
            for a, b, v, w in zip(column, column[1:], weights, weights[1:], strict=False)
        ]
        noise = 1.4826 * median(steps) if steps else 0.0
        scale.append(max(noise, BREATH * high))
        highest.append(high)
    return _Measure(tuple(scale), tuple(highest))


def _runs(parts: list[_Stretch], measure: _Measure) -> list[_Stretch]:
    """Neighbours that are hardly different made one beforehand: most are, and it is quicker."""
    found = [parts[0]]
    bounds = [QUIET * scale for scale in measure.scale]
    for part in parts[1:]:
        last = found[-1]
        if all(abs(a - b) < bound for a, b, bound in zip(last.values, part.values, bounds, strict=True)):
            found[-1] = last.plus(part)
        else:
            found.append(part)
    return found


def _merged(parts: list[_Stretch], measure: _Measure, bound: float) -> list[_Stretch]:
    """Neighbours made one, the most alike first, while that costs less than the bound."""
    alive: list[_Stretch | None] = list(parts)
    before, after = list(range(-1, len(parts) - 1)), list(range(1, len(parts) + 1))
    version = [0] * len(parts)
    heap = [(measure.cost(parts[i], parts[i + 1]), i, i + 1, 0, 0) for i in range(len(parts) - 1)]
    heapify(heap)
    while heap:
        cost, i, j, first, second = heappop(heap)
        if cost > bound:
            break
        one, other = alive[i], alive[j]
        if one is None or other is None or version[i] != first or version[j] != second:
            continue
        whole = one.plus(other)
        alive[i], alive[j] = whole, None
        version[i] += 1
        after[i] = after[j]
        if after[i] < len(parts):
            before[after[i]] = i
        for k, left, right in ((before[i], before[i], i), (after[i], i, after[i])):
            neighbour = alive[k] if 0 <= k < len(parts) else None
            if neighbour is not None:
                heappush(heap, (measure.cost(whole, neighbour), left, right, version[left], version[right]))
    return [part for part in alive if part is not None]


def _levelled(parts: list[_Stretch], measure: _Measure) -> list[_Stretch]:
    """Without differences that matter to nobody."""
    found = list(parts)
    while True:
        alike = [
            (measure.cost(one, other), place)
            for place, (one, other) in enumerate(pairwise(found))
            if not measure.material(one, other)
        ]
        if not alike:
            return found
        _, place = min(alike)
        found[place : place + 2] = [found[place].plus(found[place + 1])]


def _bounds(parts: list[_Stretch], measure: _Measure) -> list[tuple[float, float]]:
    """Begin and end of each phase: what is too short to be one belongs to its neighbours."""
    runs: list[tuple[bool, list[_Stretch]]] = []
    for part in parts:
        short = part.weight < SHORT
        if short and runs and runs[-1][0]:
            runs[-1][1].append(part)
        else:
            runs.append((short, [part]))
    long = [(_whole(run), not short or sum(part.weight for part in run) >= RESTLESS, run) for short, run in runs]
    kept = [whole for whole, lasting, _ in long if lasting]
    if not kept:
        return [(parts[0].begin, parts[-1].end)]
    cuts: list[float] = []
    between: list[_Stretch] = []
    last: _Stretch | None = None
    for whole, lasting, run in long:
        if not lasting:
            between = run
            continue
        if last is not None:
            cuts.append(_cut(last, between, whole, measure))
        last, between = whole, []
    joined = _rejoined(kept, cuts, measure)
    begins = [parts[0].begin, *joined]
    return list(zip(begins, [*joined, parts[-1].end], strict=True))


def _rejoined(kept: list[_Stretch], cuts: list[float], measure: _Measure) -> list[float]:
    """Cuts between phases that differ: what lay between two of a kind was a moment."""
    found: list[float] = []
    now = kept[0]
    for cut, following in zip(cuts, kept[1:], strict=True):
        if measure.material(now, following):
            found.append(cut)
            now = following
        else:
            now = now.plus(following)
    return found


def _whole(run: list[_Stretch]) -> _Stretch:
    whole = run[0]
    for part in run[1:]:
        whole = whole.plus(part)
    return whole


def _cut(left: _Stretch, between: list[_Stretch], right: _Stretch, measure: _Measure) -> float:
    """When one turned into the other: the stretch between has so much of both that its mean comes out."""
    if not between:
        return right.begin
    whole = _whole(between)
    rows = zip(left.values, right.values, whole.values, measure.scale, strict=True)
    before, after, mean, _ = max(rows, key=lambda row: abs(row[0] - row[1]) / row[3])
    part = (mean - after) / (before - after) if before != after else 0.5
    return whole.begin + min(1.0, max(0.0, part)) * (whole.end - whole.begin)


def _refined(
    pieces: list[_Stretch], bounds: list[tuple[float, float]], measure: _Measure, every: float
) -> list[tuple[float, float]]:
    """Cuts moved to where, around them, the two sides' levels add up to what was used."""
    cuts = [begin for begin, _ in bounds[1:]]
    inner = [_inner(pieces, begin, end, every) for begin, end in bounds]
    for place, cut in enumerate(cuts):
        before, after = inner[place], inner[place + 1]
        rows = [
            (abs(a - b) / s, a, b, n) for n, (a, b, s) in enumerate(zip(before, after, measure.scale, strict=True))
        ]
        _, left, right, column = max(rows)
        if min(cut - bounds[place][0], bounds[place + 1][1] - cut) < LONG * every:
            continue
        low, high = cut - 1.5 * every, cut + 1.5 * every
        near = [
            (inside, piece.values[column])
            for piece in pieces
            if (inside := min(piece.end, high) - max(piece.begin, low)) > 0
        ]
        seen = sum(inside for inside, _ in near)
        # Not where something in between was not observed.
        if left != right and seen > 0.99 * (high - low):
            part = (sum(inside * value for inside, value in near) / seen - right) / (left - right)
            cuts[place] = low + min(1.0, max(0.0, part)) * (high - low)
    return list(zip([bounds[0][0], *cuts], [*cuts, bounds[-1][1]], strict=True))


def _inner(pieces: list[_Stretch], begin: float, end: float, every: float) -> tuple[float, ...]:
    """The level of a phase away from its borders."""
    whole = [piece for piece in pieces if piece.begin >= begin - 1e-6 and piece.end <= end + 1e-6]
    away = [piece for piece in whole if piece.begin >= begin + every and piece.end <= end - every]
    chosen = away or whole or [piece for piece in pieces if piece.end > begin and piece.begin < end]
    return tuple(median(piece.values[n] for piece in chosen) for n in range(len(chosen[0].values)))


def _phase(levels: list[Level], begin: float, end: float, every: float, cpus: int | None) -> Phase | None:
    # A sample that holds a change is of two phases.
    far = (begin + every, end - every) if end - begin > LONG * every else (begin, end)
    cores = _mean(levels, *far, "cores")
    if cores is None:
        return None
    read, written = _mean(levels, *far, "read"), _mean(levels, *far, "written")
    return Phase(begin, end, kind(cores, read, written, cpus), cores, read, written)


def _mean(levels: list[Level], begin: float, end: float, name: str) -> float | None:
    amount = seconds = 0.0
    for level in levels:
        inside = min(level.end, end) - max(level.start, begin)
        value = getattr(level, name)
        if inside > 0 and value is not None:
            amount += inside * value
            seconds += inside
    return amount / seconds if seconds else None


def kind(cores: float, read: float | None, written: float | None, cpus: int | None) -> str:
    """What a phase does, by what it uses most."""
    given, moved = cpus or 1, max(read or 0.0, written or 0.0)
    if moved >= LEAST_TRAFFIC and moved >= STREAMING * cores and cores < (0.5 * given if given > 1 else 0.85):
        return "reading" if (read or 0.0) >= (written or 0.0) else "writing"
    if cores < max(0.05, 0.005 * given):
        return "waiting"
    return "one core" if given >= 4 and 0.25 <= cores <= 1.3 else "computing"
