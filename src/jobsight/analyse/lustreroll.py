"""Lustre's tables are made as its rows come in: steps in which something was read are made (again), whole.

Messages mark the steps they tell of, in `lustredue`. What is made of a step depends on what was read before it and
next after it; so a bit more is read and made than was marked. Rows that come late, twice or in another order then
change nothing wrongly, and everything made again is the same.
"""

import pwd
from collections.abc import Iterable
from functools import lru_cache
from math import ceil, inf
from typing import Any

import msgspec

from jobsight.analyse import lustresql
from jobsight.analyse.increment import REACH
from jobsight.analyse.job import LOCAL, Job, given_nodes
from jobsight.analyse.lustre import HOUR, SOURCES, STEP, TABLES
from jobsight.analyse.lustrewhose import NAMES, Life, Line, Whose, life
from jobsight.ingest.accept import Accepted
from jobsight.schema.message import Status
from jobsight.schema.series import series_id
from jobsight.serving import Lustre
from jobsight.store.protocol import JobQuery, Store

Span = tuple[float, float]
# An entry that was not told of in so many good scans in a row has gone: the kernel drops idle ones after 10 minutes,
# which are 5 scans, or a little later. Where a site keeps them longer see `_reads`.
SCANS = 10
# The least that is read before a span (seconds).
BEFORE = 1500.0
# After a span, where no later scan is known.
AFTER = 900.0
# No longer span is made at once (seconds).
MANY = 4 * HOUR

ASKED = """SELECT min(time) FROM (
  SELECT time, row_number() OVER (PARTITION BY cluster, target ORDER BY time DESC) AS number FROM lustrescan
  WHERE ok AND time < ? AND target IN (SELECT target FROM lustrescan WHERE time >= ?)) AS numbered
WHERE number <= ?"""
NEXT = """SELECT max(time) FROM (
  SELECT time, row_number() OVER (PARTITION BY cluster, target ORDER BY time) AS number FROM lustrescan
  WHERE ok AND time >= ?) AS numbered WHERE number = 1"""
# Of entries without a row before the span: since when they may have had some.
OLDER = """SELECT min(absent) FROM (SELECT min(time) AS oldest, min(absent_at) AS absent FROM {0}
  WHERE time >= ? AND time < ? GROUP BY cluster, target, entry) AS entries WHERE oldest >= ? AND absent < ?"""
# When entries of a span are read the next time, if they had not gone meanwhile.
FOLLOWED = """SELECT DISTINCT next_time FROM (SELECT cluster, target, entry, min(time) AS next_time FROM {0}
  WHERE time >= ? AND time < ? AND (absent_at IS NULL OR absent_at < ?) GROUP BY cluster, target, entry) AS followed
JOIN (SELECT DISTINCT cluster, target, entry FROM {0} WHERE time >= ? AND time < ?) AS told
  USING (cluster, target, entry) WHERE next_time >= ?"""
LINES = """SELECT cluster, target, entry, job, uid, host, format, min(time), max(time), executable FROM {0}
WHERE time >= ? AND time < ? GROUP BY cluster, target, entry, job, uid, host, format, executable"""


def marks(messages: Iterable[Accepted]) -> list[tuple[Any, ...]]:
    """Rows of `lustredue` for messages that came in."""
    told = (m for m in messages if m.collector in SOURCES and m.status == Status.OK)
    steps = {(m.cluster, m.time // STEP * STEP, m.collector) for m in told}
    return [(cluster, "", "", time, collector) for cluster, time, collector in sorted(steps)]


def roll(store: Store, options: Lustre | None = None) -> int:
    """Make what is due; how many steps."""
    marked = store.query("SELECT DISTINCT cluster, time FROM lustredue ORDER BY time")
    if not marked:
        return 0
    clusters = sorted({cluster for cluster, _ in marked})
    horizon = max(store.horizon(table) for table in TABLES.values())
    edge = ceil((horizon + BEFORE) / STEP) * STEP if horizon else 0.0
    times = {time for _, time in marked}
    made = 0
    for since, until in _spans(sorted(times)):
        with store.still() as free:
            if not free:
                return made
            # Of what is gone nothing can be made; what was made of it stays.
            if since >= edge:
                later = _spans(sorted(_followed(store, since, until) - times))
                for part in [(since, until), *later]:
                    begin, end = _widened(store, *part)
                    made += _make(store, (max(begin, edge), end), options)
            store.unmark("lustredue", [(cluster, "", since, until - 1) for cluster in clusters])
    return made


def _make(store: Store, span: Span, options: Lustre | None) -> int:
    """An hour at a time: then hours and what is made of their steps are whole."""
    first, last = int(span[0] // HOUR), ceil(span[1] / HOUR)
    for hour in range(first, last):
        part = max(span[0], hour * HOUR), min(span[1], (hour + 1) * HOUR)
        _steps(store, part, options)
        whole = hour * HOUR, (hour + 1) * HOUR
        store.refill("lustreshare", whole, lustresql.shares(whole), [], reads=whole)
        store.refill("lustredensity", whole, lustresql.densities(whole), [], reads=whole)
    return round((span[1] - span[0]) / STEP)


def _steps(store: Store, span: Span, options: Lustre | None) -> None:
    reads = _reads(store, span)
    lines = _lines(store, (span[0], reads[1]))
    whose = Whose(_lives(store, span), user_name, options)
    labels = whose.labels([line for line, _ in lines], span)
    dropped = options is not None and options.system == "drop"
    store.refill("lustreslice", span, lustresql.slices(span, reads, dropped=dropped), labels, NAMES, reads)
    store.refill("lustretotal", span, lustresql.totals(span, reads), [], NAMES, (span[0] - REACH, reads[1]))
    _describe(store, lines)


def _spans(times: list[float]) -> list[Span]:
    """Steps that follow each other, or nearly, as one: not too long, for nothing is digested meanwhile."""
    found: list[Span] = []
    for time in sorted(set(times)):
        if found and time - found[-1][1] <= BEFORE and time - found[-1][0] < MANY:
            found[-1] = (found[-1][0], time + STEP)
        else:
            found.append((time, time + STEP))
    return found


def _followed(store: Store, since: float, until: float) -> set[float]:
    """Steps long after a span that are made of its rows, too: where an entry held still, and did not go."""
    span = (since, until + REACH)
    asked = [until, span[1], until, since, until, until + BEFORE]
    rows = [row for table in TABLES.values() for row in store.query(FOLLOWED.format(table), asked, span)]
    return {time // STEP * STEP for (time,) in rows}


def _widened(store: Store, since: float, until: float) -> Span:
    """What changes with rows of a time: from the scan before it to where entries are read the next time."""
    ((before,),) = store.query(ASKED, [since, since, 1], (since - REACH, until + REACH))
    reach = (until, until + BEFORE)
    late = [
        newest
        for table in SOURCES
        for (newest,) in store.query(f"SELECT max(time) FROM {table} WHERE time >= ? AND time < ?", reach, reach)
        if newest is not None
    ]
    end = max([until, *late])
    start = since - STEP if before is None else max(before, since - REACH)
    return start // STEP * STEP, ceil(end / STEP) * STEP


def _reads(store: Store, span: Span) -> Span:
    """Rows of which time are needed to make steps of a span: some before it, and the next after it."""
    since, until = span
    ((before,),) = store.query(ASKED, [since, since, SCANS], (since - REACH, until + REACH))
    ((after,),) = store.query(NEXT, [until], (until, until + REACH))
    kept = "SELECT min(cleanup_interval), max(cleanup_interval) FROM lustrescan WHERE time >= ? AND time < ?"
    ((least, longest),) = store.query(kept, [since - HOUR, until], (since - HOUR, until))
    # Nothing ever goes where it is 0.
    lasts = REACH if least == 0 else max(BEFORE, 2 * (longest or 0.0))
    first = min(since - lasts, inf if before is None else before)
    last = max(until + AFTER, (after or until) + 1.0)
    # Entries whose last row is older, because nothing ever goes: they carry since when there were none.
    for table in TABLES.values():
        ((older,),) = store.query(OLDER.format(table), [first, last, since, first], (first, last))
        first = min(first, inf if older is None else older)
    return max(first, since - REACH), min(last, until + REACH)


def _lines(store: Store, span: Span) -> list[tuple[Line, str | None]]:
    """The series that have rows in a time, with their programs' names."""
    rows = [row for table in TABLES.values() for row in store.query(LINES.format(table), span, span)]
    # Servers may read one identifier by other formats, or by others than before: one line, else it counts twice.
    last = {row[:3]: row for row in sorted(rows, key=lambda row: (row[8], str(row)))}
    first: dict[tuple[str, ...], float] = {}
    for row in rows:
        first[row[:3]] = min(row[7], first.get(row[:3], inf))
    return [(Line(*row[:9])._replace(first=first[place]), row[9]) for place, row in last.items()]


def _lives(store: Store, span: Span) -> list[Life]:
    found = []
    for document in store.jobs(JobQuery(since=span[0] - HOUR, until=span[1] + HOUR, limit=10**9), span[1]):
        # A session's number is no job's that a client could name, and who logs in to look does not share the work.
        if document["scheduler"] in LOCAL:
            continue
        job = msgspec.convert(document, Job)
        uid = None if job.batch is None else job.batch.uid
        found.append(life(document, job.nodes or given_nodes(job.batch), uid))
    return found


def _describe(store: Store, lines: list[tuple[Line, str | None]]) -> None:
    """Enter series that were not met before: each once."""
    names = sorted({line.entry for line, _ in lines})
    asked = "SELECT cluster, target, entry FROM lustreseries WHERE entry IN (SELECT unnest(?))"
    known = set(store.query(asked, [names])) if names else set()
    namespace = store.namespace()
    fresh = {}
    for line, executable in lines:
        if (line.cluster, line.target, line.entry) not in known:
            identifier = str(series_id(namespace, f"{line.target}:{line.entry}"))
            said = (identifier, line.target, line.entry, line.job, line.uid, line.host, executable, line.form)
            fresh[line.cluster, line.target, line.entry] = (line.cluster, "", "", line.first, *said)
    if fresh:
        store.mark("lustreseries", list(fresh.values()))


@lru_cache(100_000)
def user_name(uid: int) -> str:
    """By name where this machine knows it, as collectors write owners."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
