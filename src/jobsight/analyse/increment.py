"""What a Lustre entry's counters grew by between two readings, and how often they began anew meanwhile. Pure.

A counter is of an entry, and an entry may end and begin again: then all its counters begin from zero together. The
best evidence counts: it was surely absent in between; it began at another time; any of its counters fell, and nothing
says that it is still the same. Otherwise it went on. An increment belongs to the time from the reading before, or
from the last scan that saw nothing new, to the reading; so a lost scan costs resolution, never work done.

The law stands here twice: as a function, to be read and tested, and as SQL, for the rows are many.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

# No increment is spread further back than this, and what was last read longer ago is not gone on from (seconds).
REACH = 86400.0
Value = float | None


class Reading(NamedTuple):
    """An entry as it was read once."""

    time: float
    values: tuple[Value, ...]
    start: float | None = None
    """When this life of the entry began."""
    absent: float | None = None
    """A time at which it was surely not there."""


class Increment(NamedTuple):
    """What was done after `begin`, up to `end`."""

    begin: float
    end: float
    values: tuple[Value, ...]


def increments(readings: Iterable[Reading], scans: Sequence[float] = ()) -> list[Increment]:
    """Of one entry of one target, in whatever order its readings came. `scans`: when the target was read well."""
    # Two agents may both have read it: the same instant is one reading.
    once = {reading.time: reading for reading in sorted(readings, key=lambda reading: reading.time, reverse=True)}
    ordered: list[Reading | None] = [None, *sorted(once.values(), key=lambda reading: reading.time)]
    found = [increment(before, after) for before, after in pairwise(ordered) if after is not None]
    return [_sharpened(item, scans) for item in found if item is not None]


def increment(before: Reading | None, after: Reading) -> Increment | None:
    """From one reading to the next; None where nobody knows."""
    if before is not None and after.time - before.time > REACH:
        before = None
    absent = after.absent if after.absent is not None and after.absent < after.time else None
    # A reading says more than an absence before it: another server may have had the target then.
    if absent is not None and (before is None or absent > before.time):
        return Increment(max(absent, after.time - REACH), after.time, after.values)
    if before is None:
        return None
    renewed = before.start is not None and after.start is not None and before.start != after.start
    pairs = list(zip(before.values, after.values, strict=True))
    # Of one life what is less was read earlier, by a clock that was set back since.
    same = before.start is not None and before.start == after.start
    fell = not same and any(old is not None and new is not None and new < old for old, new in pairs)
    if renewed or fell:
        begun = after.start if renewed and after.start and before.time < after.start < after.time else before.time
        return Increment(begun, after.time, after.values)
    grown = tuple(None if old is None or new is None else max(new - old, 0) for old, new in pairs)
    return Increment(before.time, after.time, grown)


def _sharpened(item: Increment, scans: Sequence[float]) -> Increment:
    """An entry without a row in a good scan had not changed then. Only where the reading's own scan is known: another
    one's time says nothing.
    """
    if item.end not in scans:
        return item
    return item._replace(begin=max([item.begin, *(scan for scan in scans if scan < item.end)]))


def grown(table: str, own: Sequence[str], names: Sequence[str], reads: tuple[float, float], edge: float) -> str:
    """The same in SQL: a SELECT of the increments of a table's rows that end after `edge`. `own` are the table's
    counters; those of `names` that it has not are missing. `reads` is the time of the rows that are looked at. Of
    what was there before nothing is known: an entry that was first read in it and absent before it may be older, and
    is left out.
    """
    since, until = reads
    gone = "(absent_at < time AND (before_time IS NULL OR absent_at > before_time))"
    renewed = "(start_time <> before_start)"
    less = " OR ".join(f"{name} < before_{name}" for name in own)
    fell = f"({less}) AND coalesce(start_time <> before_start, true)"
    counted = [
        f"CASE WHEN {name} < 0 OR before_{name} < 0 THEN NULL WHEN zeroed THEN {name} "
        f"WHEN {name} < before_{name} THEN 0 ELSE {name} - before_{name} END AS {name}"
        if name in own
        else f"NULL AS {name}"
        for name in names
    ]
    lagged = ", ".join(f"lag({name}) OVER series AS before_{name}" for name in own)
    return f"""
SELECT cluster, target, entry, executable, uid, time,
  greatest(begun, coalesce(last_scan, begun)) AS begin_time, {", ".join(counted)}
FROM (SELECT *,
    CASE WHEN {gone} THEN greatest(absent_at, time - {REACH!r})
      WHEN {renewed} AND start_time > before_time AND start_time < time THEN start_time ELSE before_time END AS begun,
    coalesce({gone}, false) OR coalesce({renewed}, false) OR coalesce({fell}, false) AS zeroed
  FROM (SELECT cluster, target, entry, executable, uid, time, start_time,
      CASE WHEN absent_at >= {since!r} OR time - lag(time) OVER series <= {REACH!r} THEN absent_at END AS absent_at,
      CASE WHEN time - lag(time) OVER series <= {REACH!r} THEN lag(time) OVER series END AS before_time,
      lag(start_time) OVER series AS before_start, {", ".join(own)}, {lagged}
    FROM ({_rows(table, own, reads, edge)}) AS found WHERE copy = 1
    WINDOW series AS (PARTITION BY cluster, target, entry ORDER BY time)) AS paired) AS judged
LEFT JOIN (SELECT cluster AS at_cluster, target AS at_target, {_instant("scanned_at")} AS at_time,
    max(CASE WHEN ok THEN scanned_at END) OVER (PARTITION BY cluster, target ORDER BY scanned_at
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS last_scan
  FROM (SELECT cluster, target, scanned_at, bool_or(ok AND coalesce(postponed, 0) = 0) AS ok FROM lustrescan
    WHERE time >= {since!r} AND time < {until!r} AND scanned_at BETWEEN {since!r} AND {until!r}
    GROUP BY cluster, target, scanned_at) AS scans) AS own
  ON at_cluster = cluster AND at_target = target AND at_time = {_instant("time")}
WHERE begun IS NOT NULL AND time > {edge!r}"""


def _rows(table: str, own: Sequence[str], reads: tuple[float, float], edge: float) -> str:
    """Rows after the edge, and the last one before it of each series: all of them in the windows would take long."""
    since, until = reads
    names = ["cluster", "target", "entry", "executable", "uid", "time", "start_time", "absent_at", *own]
    copy = "row_number() OVER (PARTITION BY cluster, target, entry, time ORDER BY node, boot) AS copy"
    last = f"""SELECT cluster, target, entry, max(time) AS time FROM {table}
      WHERE time >= {since!r} AND time <= {edge!r} GROUP BY cluster, target, entry"""
    return f"""SELECT {", ".join(names)}, {copy} FROM {table} WHERE time > {edge!r} AND time < {until!r}
      UNION ALL SELECT {", ".join(names)}, {copy} FROM {table}
      JOIN ({last}) AS last USING (cluster, target, entry, time) WHERE time >= {since!r} AND time <= {edge!r}"""


def _instant(name: str) -> str:
    """A time as a number that can be compared: on its way it was a text."""
    return f"CAST(round({name} * 100) AS BIGINT)"
