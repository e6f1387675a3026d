"""Energy between two readings: of meters, counters and sensors, each with how sure it is. Pure.

Grades: A, a meter of the whole node; B, counters of its parts; C, averages of sensors; D, a model. A counter knows
what lay between two readings however long that was; a meter shows a moment, and stands for the time since the one
before. What cannot be is refused: then nothing is known of that time, which is not the same as none.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from jobsight.formats.rollover import risen

# A shorter time makes absurd watts of a clock's breath (seconds).
SHORTEST = 1.0
# Nobody knows what a meter would have shown in a longer pause.
BRIDGED = 600.0
# Up to so many of the usual steps a reading stands for all the time since the last one.
USUAL = 1.5
# The most a processor or its memory takes (watts): what rises faster was reset.
FASTEST = {"processor": 700.0, "memory": 300.0, "platform": 3000.0}
# A board may draw a little more than its limit; one that does not tell it has this.
OVER, BOARD = 1.1, 1500.0


class Span(NamedTuple):
    """Energy taken from one instant to another."""

    start: float
    end: float
    energy: float
    unsure: float = 0.0
    """By how much more or less it may be."""
    grade: str = "B"


class Reading(NamedTuple):
    """One look at a card."""

    time: float
    energy: float | None
    power: float | None
    limit: float | None


def metered(looks: Iterable[tuple[float, float | None]], limit: float, grade: str = "A") -> list[Span]:
    """From times and watts. A step longer than usual is bridged by the mean of its ends, and the less sure the more
    they differ.
    """
    good = sorted({time: watts for time, watts in looks if watts is not None and 0 < watts <= limit}.items())
    steps = [(before, after) for before, after in pairwise(good) if after[0] - before[0] >= SHORTEST]
    if not steps:
        return []
    usual = USUAL * median(after[0] - before[0] for before, after in steps)
    found = []
    for (start, low), (end, high) in steps:
        seconds = end - start
        if seconds <= min(usual, BRIDGED):
            found.append(Span(start, end, high * seconds, 0.0, grade))
        elif seconds <= BRIDGED:
            found.append(Span(start, end, (low + high) / 2 * seconds, abs(high - low) / 2 * seconds, grade))
    return found


def counted(looks: Sequence[tuple[float, float | None, float | None]], fastest: float) -> list[Span]:
    """From times, a counter and its range: see `formats.rollover`."""
    found: list[Span] = []
    last: tuple[float, float] | None = None
    for time, energy, span in looks:
        if energy is None:
            continue
        if last is None:
            last = time, energy
        elif time - last[0] >= SHORTEST:
            joules = risen(last[1], energy, span, time - last[0], fastest) if span else _grown(last[1], energy)
            if joules is not None and joules <= fastest * (time - last[0]):
                found.append(Span(last[0], time, joules))
            last = time, energy
    return found


def _grown(before: float, after: float) -> float | None:
    """Of a counter without a range: one that fell was reset."""
    return after - before if after >= before else None


def carded(looks: Sequence[Reading]) -> list[Span]:
    """A card's energy: by its own counter, else by the power it tells."""
    found: list[Span] = []
    last: Reading | None = None
    for look in looks:
        if last is not None and look.time - last.time < SHORTEST:
            continue
        if last is not None and (span := _taken(last, look)) is not None:
            found.append(span)
        last = look
    return found


def _taken(before: Reading, after: Reading) -> Span | None:
    seconds = after.time - before.time
    most = OVER * (after.limit or before.limit or BOARD)
    if before.energy is not None and after.energy is not None:
        joules = _grown(before.energy, after.energy)
        if joules is not None and joules <= most * seconds:
            return Span(before.time, after.time, joules)
    known = [watts for watts in (before.power, after.power) if watts is not None and 0 <= watts <= most]
    if len(known) < 2 or seconds > BRIDGED:
        return None
    mean, spread = sum(known) / 2, abs(known[0] - known[1]) / 2
    return Span(before.time, after.time, mean * seconds, spread * seconds, "C")


class Bins:
    """Energy in even steps of time: each span gives each step its part."""

    def __init__(self, since: float, until: float, step: float) -> None:
        self.since, self.until, self.step = since, until, step
        self.number = max(1, -int(-(until - since) // step))
        self.energy = [0.0] * self.number
        self.covered = [0.0] * self.number
        self.unsure = [0.0] * self.number
        self.grades: list[str] = [""] * self.number

    def add(self, spans: Iterable[Span]) -> "Bins":
        for span in spans:
            for place, inside in self.places(span.start, span.end):
                part = inside / (span.end - span.start)
                self.energy[place] += span.energy * part
                self.unsure[place] += span.unsure * part
                self.covered[place] += inside
                self.grades[place] = max(self.grades[place], span.grade)
        return self

    def places(self, start: float, end: float) -> Iterable[tuple[int, float]]:
        """The steps that a time reaches over, and by how many seconds."""
        low, high = max(start, self.since), min(end, self.until)
        if low >= high:
            return
        place = int((low - self.since) // self.step)
        while place < self.number:
            begin = self.since + place * self.step
            inside = min(high, begin + self.step) - max(low, begin)
            if inside > 0:
                yield place, inside
            if begin + self.step >= high:
                return
            place += 1

    def seconds(self, place: int) -> float:
        """How long a step is: the last one may be cut."""
        begin = self.since + place * self.step
        return min(begin + self.step, self.until) - begin


def together(parts: Sequence[Bins]) -> Bins:
    """The sum of what is measured apart. Of a time that one of them does not know, the whole is not known."""
    first = parts[0]
    found = Bins(first.since, first.until, first.step)
    for place in range(first.number):
        covered = min(part.covered[place] for part in parts)
        found.covered[place] = covered
        for part in parts:
            # As if each had been seen for the same time.
            share = covered / part.covered[place] if part.covered[place] else 0.0
            found.energy[place] += part.energy[place] * share
            found.unsure[place] += part.unsure[place] * share
        found.grades[place] = max((part.grades[place] for part in parts), default="") if covered else ""
    return found
