"""What a job used from one sample to the next, on each of its nodes, and on all of them together."""

from bisect import bisect_right
from collections.abc import Iterable
from math import ceil
from typing import Any, NamedTuple

from jobsight.analyse.slice import STEP
from jobsight.analyse.steps import Step, total
from jobsight.analyse.summary import Summary
from jobsight.store.protocol import Store

# More rows than this are added up by the store before they come here: an answer must not take seconds.
MOST = 4000
# Parts into which a job's time is cut at the most.
PIECES = 1500
NAMES = ("cpu_time", "read", "written")


class Interval(NamedTuple):
    """One job on one node, from one sample to the next: what it did there in a second, on average."""

    start: float
    end: float
    cores: float | None
    read: float | None
    written: float | None

    @property
    def seconds(self) -> float:
        return self.end - self.start


class Level(NamedTuple):
    """The same of all its nodes together. What nobody told is None."""

    start: float
    end: float
    cores: float
    read: float | None
    written: float | None


Track = dict[str, list[Interval]]


def track(store: Store, figures: Summary, parts: list[dict[str, Any]]) -> Track:
    """By node, in the order of time; what was not observed is left out. Where the rows are gone their means of five
    minutes stand for them. `parts`: the job's, to see who told of its I/O.
    """
    told = any(part["read"] is not None for part in parts if part["source"] == figures.source)
    sources = [figures.source] if told else sorted({figures.source, "process"})
    width = _width(figures)
    old = figures.started < store.horizon("usage")
    table, end = ("slice", f"time + {STEP!r}") if old else ("usage", "time")
    columns = ", ".join(NAMES)
    if width:
        columns = ", ".join(f"sum({name})" for name in NAMES)
        asked = f"SELECT source, node, max({end}), sum(seconds), sum(covered), {columns} FROM {table} "
        tail = f"GROUP BY source, node, floor(time / {width!r}) ORDER BY 2, 3"
    else:
        asked, tail = f"SELECT source, node, {end}, seconds, covered, {columns} FROM {table} ", "ORDER BY node, time"
    rows = store.query(
        f"{asked} WHERE job_key = ? AND source IN (?, ?) AND seconds > 0 AND covered > 0 {tail}",
        [figures.key, sources[0], sources[-1]],
        # With a day to spare on both sides, for clocks that were wrong.
        (figures.started - 86400, figures.seen + 86400),
    )
    return intervals(rows, figures.source, figures.started)


def _width(figures: Summary) -> float:
    """Seconds that the store is to add up; 0 if rows are few enough as they are."""
    every = max(figures.every, 1.0)
    expected = len(figures.nodes) * figures.elapsed / every
    return ceil(expected / MOST) * every if expected > MOST else 0.0


def intervals(rows: Iterable[tuple[Any, ...]], source: str, started: float) -> Track:
    """From rows of source, node, time, seconds, covered, CPU time, bytes read and written. What the source that
    counts does not tell of I/O, the processes may.
    """
    rows = list(rows)
    mine = [row for row in rows if row[0] == source]
    told = any(row[6] is not None for row in mine)
    other = {(row[1], round(row[2])): row for row in rows if row[0] == "process"} if not told else {}
    found: Track = {}
    for row in mine:
        _, node, end, seconds, covered, cpu, read, written = row
        if not told and (near := other.get((node, round(end)))):
            read, written = near[6], near[7]
        if end > started:
            # A control group does not tell when it began, its processes do.
            seconds, covered = min(seconds, end - started), min(covered, end - started)
        known = found.setdefault(node, [])
        # Intervals are measured by the time since boot and placed by the clock: the two differ by a breath.
        start = max(end - covered, known[-1].end) if known else end - covered
        if start < end:
            rates = (None if value is None else value / seconds for value in (cpu, read, written))
            known.append(Interval(start, end, *rates))
    return found


def levels(by_node: Track, most: int = PIECES) -> list[Level]:
    """All nodes together, cut wherever one of them changes, or in so many equal pieces if those were more. Times in
    which no node was observed are left out.
    """
    if len(by_node) == 1:
        (alone,) = by_node.values()
        if len(alone) <= most:
            return [
                Level(one.start, one.end, one.cores, one.read, one.written) for one in alone if one.cores is not None
            ]
    cores = _together(by_node, "cores")
    if not cores:
        return []
    cuts = sorted({instant for step in cores for instant in (step.start, step.end)})
    if len(cuts) > most:
        width = (cuts[-1] - cuts[0]) / most
        cuts = [cuts[0] + width * place for place in range(most)] + [cuts[-1]]
    columns = [_means(_together(by_node, name), cuts) for name in ("cores", "read", "written")]
    pieces = zip(cuts, cuts[1:], *columns, strict=False)
    return [Level(start, end, used, read, written) for start, end, used, read, written in pieces if used is not None]


def _together(by_node: Track, name: str) -> list[Step]:
    return total(
        [Step(one.start, one.end, value) for one in intervals if (value := getattr(one, name)) is not None]
        for intervals in by_node.values()
    )


def _means(steps: list[Step], cuts: list[float]) -> list[float | None]:
    """The mean between each two cuts, over the seconds with a value; None where there are none."""
    amount, seconds = [0.0] * (len(cuts) - 1), [0.0] * (len(cuts) - 1)
    for step in steps:
        place = max(0, bisect_right(cuts, step.start) - 1)
        while place < len(amount) and cuts[place] < step.end:
            inside = min(step.end, cuts[place + 1]) - max(step.start, cuts[place])
            if inside > 0:
                amount[place] += inside * step.value
                seconds[place] += inside
            place += 1
    return [whole / time if time else None for whole, time in zip(amount, seconds, strict=True)]
