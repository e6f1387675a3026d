"""How full a site is and was: what there was, what was given and used, by whom and when.

In every time the parts add up to the whole: what jobs used, what was idle and what was down is what there was. What
was counted beyond a node's own time (clocks that differ, CPUs given twice) is told as such and taken off.
"""

from collections import defaultdict
from typing import Any

from msgspec import Struct

from jobsight.analyse.calendar import WEEKDAYS, Span
from jobsight.analyse.late import HOUR
from jobsight.analyse.sites import Asked, Site, chosen
from jobsight.analyse.waiting import Wait, demand, waits
from jobsight.store.protocol import Store
from jobsight.store.sight import Sight

STEPS = ("hour", "day", "month", "weekday", "hour-of-day")
COLUMNS = {"user": "owner", "account": "account", "partition": "partition", "program": "command"}
DIMENSIONS = ("user", "account", "partition", "program", "node", *STEPS)
# Days from which on a history is shown by the day.
LONG = 4
FIGURES = ("total", "used", "allocated", "down", "idle", "free")
SUMS = ", ".join(f"sum({name})" for name in FIGURES)
HOURLY = f"SELECT time, {SUMS} FROM capacity WHERE time >= ? AND time < ? AND {{}} GROUP BY time ORDER BY time"
NODES = f"SELECT node, {SUMS} FROM capacity WHERE time >= ? AND time < ? AND node <> '' AND {{}} GROUP BY node"
OWN = """SELECT time, sum(used), sum(allocated) FROM tally WHERE time >= ? AND time < ? AND {} GROUP BY time"""
PARTS = """SELECT {0}, sum(used), sum(allocated), sum(gpu_used), sum(gpu_allocated) FROM tally
WHERE time >= ? AND time < ? AND {1} GROUP BY {0}"""


class Whole(Struct):
    """A time of a site, in CPU time. `total` = `used` + `idle` + `down` − `beyond_used`, and the same for what was
    given: `allocated`, `free`, `beyond_allocated`.
    """

    total: float = 0.0
    used: float = 0.0
    allocated: float = 0.0
    down: float = 0.0
    idle: float = 0.0
    free: float = 0.0
    own_used: float | None = None
    """Of what is chosen, or of what the reader may see; None if that is all."""
    own_allocated: float | None = None
    demand: float | None = None
    """CPU time that jobs waited for; None where no queue is known."""

    @property
    def beyond_used(self) -> float:
        return self.used + self.idle + self.down - self.total

    @property
    def beyond_allocated(self) -> float:
        return self.allocated + self.free + self.down - self.total

    def add(self, other: "Whole") -> None:
        """Written out: a year has nine thousand hours."""
        self.total += other.total
        self.used += other.used
        self.allocated += other.allocated
        self.down += other.down
        self.idle += other.idle
        self.free += other.free
        if other.own_used is not None and other.own_allocated is not None:
            self.own_used = (self.own_used or 0.0) + other.own_used
            self.own_allocated = (self.own_allocated or 0.0) + other.own_allocated
        if other.demand is not None:
            self.demand = (self.demand or 0.0) + other.demand


class Row(Struct):
    """One line of a report. `kind` is `part` for what has a name of its own; else `others`, `idle`, `down`, `beyond`
    or `whole`. Parts, others, idle, down and beyond add up to the whole.
    """

    name: str
    kind: str
    used: float
    allocated: float
    total: float | None = None
    idle: float | None = None
    free: float | None = None
    down: float | None = None
    own_used: float | None = None
    own_allocated: float | None = None
    gpu_used: float | None = None
    gpu_allocated: float | None = None
    demand: float | None = None
    time: float | None = None
    """When it begins, of a step of time."""


class Cell(Struct):
    """One hour of one weekday, as ratios of what there was."""

    weekday: str
    hour: int
    used: float | None
    allocated: float | None


class Usage(Struct):
    """A report."""

    since: float
    until: float
    zone: str
    by: str
    whole: Whole
    rows: list[Row]
    steps: list[Row]
    """Over time, by hour or by day."""
    step: str
    heat: list[Cell]
    counted: float | None
    """Until when hours have been counted; None if there are none."""
    waits: list[Wait]


def usage(store: Store, site: Site, asked: Asked, now: float, sight: Sight | None = None) -> Usage:
    """ValueError with a sentence for what cannot be asked."""
    by = asked.by or "user"
    if by not in DIMENSIONS:
        raise ValueError(f"no way to report by {by!r}; there are {', '.join(DIMENSIONS)}")
    span = asked.span(site, now)
    hours = _hours(store, site, asked, span, sight)
    waited = demand(store, span, now, asked.cluster)
    if any(waited.values()):
        for time, hour in hours.items():
            hour.demand = waited.get(time, 0.0)
    whole = Whole()
    for hour in hours.values():
        whole.add(hour)
    step = "day" if span.until - span.since > LONG * 24 * HOUR else "hour"
    if by in STEPS:
        rows = steps(site, hours, by)
    elif by == "node":
        rows = _nodes(store, asked, span)
    else:
        rows = _parts(store, site, asked, span, sight)
    if by not in STEPS and by != "node":
        rows += _rest(whole, rows)
    return Usage(
        since=span.since, until=span.until, zone=str(site.calendar.zone), by=by, whole=whole, rows=rows,
        steps=steps(site, hours, step), step=step, heat=heat(site, hours),
        counted=max(hours) + HOUR if hours else None, waits=waits(store, asked, span, sight),
    )  # fmt: skip


def _hours(store: Store, site: Site, asked: Asked, span: Span, sight: Sight | None) -> dict[float, Whole]:
    """Each hour of the whole site, with what is chosen of it."""
    found: dict[float, Whole] = {}
    where, values = _placed(asked)
    for time, *figures in store.query(HOURLY.format(where), [span.since, span.until, *values], _between(span)):
        found[time] = Whole(*figures)
    if sight is None and not (asked.owner or asked.account or asked.partition or asked.program):
        return found
    where, values = _where(site, asked, sight, store, span)
    for hour in found.values():
        hour.own_used = hour.own_allocated = 0.0
    asking = [span.since, span.until, *values]
    for time, used, allocated in store.query(OWN.format(where), asking, _between(span)):
        if time in found:
            found[time].own_used, found[time].own_allocated = used, allocated
    return found


def _where(site: Site, asked: Asked, sight: Sight | None, store: Store, span: Span) -> tuple[str, list[Any]]:
    where, values = chosen(asked, sight)
    if not asked.program:
        return where, values
    known = site.maps.current()
    rows = store.query("SELECT DISTINCT command FROM tally WHERE time >= ? AND time < ?", span[:2], _between(span))
    commands = [command for (command,) in rows if (found := known[command]) and found.name == asked.program]
    return f"{where} AND command IN (SELECT unnest(?))", [*values, commands]


def _between(span: Span) -> tuple[float, float]:
    return span.since, span.until - 1


def steps(site: Site, hours: dict[float, Whole], step: str) -> list[Row]:
    """Hours put together by the site's clock."""
    found: dict[str, Whole] = defaultdict(Whole)
    first: dict[str, float] = {}
    if step == "weekday":
        found |= {name: Whole() for name in WEEKDAYS}
    for time in sorted(hours):
        name = site.calendar.named(time, step)
        found[name].add(hours[time])
        first.setdefault(name, time)
    names = sorted(found) if step == "hour-of-day" else found
    dated = step in ("hour", "day", "month")
    return [_row(name, found[name], first[name] if dated else None) for name in names]


def _row(name: str, whole: Whole, time: float | None = None) -> Row:
    return Row(
        name=name, kind="part", used=whole.used, allocated=whole.allocated, total=whole.total, idle=whole.idle,
        free=whole.free, down=whole.down, own_used=whole.own_used, own_allocated=whole.own_allocated,
        demand=whole.demand, time=time,
    )  # fmt: skip


def _placed(asked: Asked) -> tuple[str, list[str]]:
    """Of which cluster: what belongs to nobody has no more to be chosen by. The row of no node is every cluster's."""
    return ("cluster IN (?, '')", [asked.cluster]) if asked.cluster else ("1 = 1", [])


def _nodes(store: Store, asked: Asked, span: Span) -> list[Row]:
    where, values = _placed(asked)
    rows = store.query(NODES.format(where), [span.since, span.until, *values], _between(span))
    return [_row(node, Whole(*figures)) for node, *figures in sorted(rows)]


def _parts(store: Store, site: Site, asked: Asked, span: Span, sight: Sight | None) -> list[Row]:
    """By whom or what, largest first."""
    column = COLUMNS[asked.by or "user"]
    where, values = _where(site, asked, sight, store, span)
    rows = store.query(PARTS.format(column, where), [span.since, span.until, *values], _between(span))
    known = site.maps.current() if asked.by == "program" else None
    sums: dict[str, list[float | None]] = {}
    for name, *figures in rows:
        if known is not None:
            program = known[name]
            name = program.name if program else ""  # noqa: PLW2901
        sums[name] = [_plus(one, other) for one, other in zip(sums.get(name, [None] * 4), figures, strict=True)]
    made = [
        Row(name, "part", used or 0.0, allocated or 0.0, gpu_used=gpu, gpu_allocated=held)
        for name, (used, allocated, gpu, held) in sums.items()
    ]
    return sorted(made, key=lambda row: (-row.allocated, -row.used, row.name))


def _rest(whole: Whole, parts: list[Row]) -> list[Row]:
    """What makes parts the whole."""
    used, allocated = sum(row.used for row in parts), sum(row.allocated for row in parts)
    found = []
    if whole.own_used is not None:
        found.append(Row("others", "others", whole.used - used, whole.allocated - allocated))
    return [
        *found,
        Row("idle", "idle", whole.idle, whole.free),
        Row("down", "down", whole.down, whole.down),
        Row("counted beyond", "beyond", -whole.beyond_used, -whole.beyond_allocated),
        Row("all there was", "whole", whole.total, whole.total),
    ]


def heat(site: Site, hours: dict[float, Whole]) -> list[Cell]:
    """Weekday by hour of day. Where nothing was counted there is nothing, and not zero."""
    found: dict[tuple[int, int], Whole] = defaultdict(Whole)
    for time, hour in hours.items():
        found[site.calendar.weekday(time), site.calendar.clock(time)].add(hour)
    cells = []
    for day, name in enumerate(WEEKDAYS):
        for clock in range(24):
            one = found.get((day, clock))
            total = one.total if one else 0.0
            cells.append(
                Cell(name, clock, one.used / total if one and total else None,
                     one.allocated / total if one and total else None)
            )  # fmt: skip
    return cells


def _plus(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else one + other
