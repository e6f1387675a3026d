"""How long jobs wait, by partition and size, and how much was waited for: demand against capacity."""

from collections import defaultdict
from typing import Any

from msgspec import Struct

from jobsight.analyse.calendar import Span
from jobsight.analyse.job import LOCAL
from jobsight.analyse.late import HOUR
from jobsight.analyse.sites import Asked, chosen
from jobsight.store.protocol import JobQuery, Store
from jobsight.store.sight import Sight

# Jobs by their CPUs: up to so many.
SIZES = ((1, "1 CPU"), (16, "2–16 CPUs"), (128, "17–128 CPUs"), (1024, "129–1024 CPUs"))
LARGEST = "more than 1024 CPUs"
# Jobs that wait or run now: so many are looked at.
MOST = 20_000
SIZE = f"CASE {' '.join(f'WHEN cpus <= {most} THEN {number}' for number, (most, _) in enumerate(SIZES))} ELSE 4 END"
WAITS = f"""SELECT partition, {SIZE} AS class, count(*),
  percentile_cont(ARRAY[0.5, 0.9]) WITHIN GROUP (ORDER BY waited), max(waited)
FROM stint WHERE time >= ? AND started >= ? AND started < ? AND waited IS NOT NULL AND cpus IS NOT NULL AND {{}}
GROUP BY partition, {SIZE}"""
# What came to wait in an hour, and what ceased to: CPUs, and CPUs times seconds since the time began. A job that
# waited when the time began waits from then on.
EVENTS = f"""SELECT kind, floor(instant / {HOUR!r}) * {HOUR!r}, sum(cpus), sum(cpus * (instant - ?))
FROM (SELECT kind, cpus, CASE WHEN kind = 1 THEN greatest(started - waited, {{since!r}}) ELSE started END AS instant
  FROM stint CROSS JOIN (SELECT 1 AS kind UNION ALL SELECT -1 AS kind) AS kinds
  WHERE time >= ? AND waited > 0 AND cpus > 0 AND started > ? AND started - waited < ?
    AND (? = '' OR cluster = ?)) AS events
GROUP BY kind, floor(instant / {HOUR!r})"""


class Wait(Struct):
    """Jobs of one partition and size that started in a time."""

    partition: str
    size: str
    jobs: int
    median: float
    ninth: float
    """Nine of ten waited for less."""
    longest: float


def waits(store: Store, asked: Asked, span: Span, sight: Sight | None = None) -> list[Wait]:
    """Of jobs that are over, by partition and size."""
    where, values = chosen(asked, sight)
    rows = store.query(WAITS.format(where), [span.since, span.since, span.until, *values], (span.since, float("inf")))
    names = [*(name for _, name in SIZES), LARGEST]
    return [
        Wait(partition, names[size], jobs, quantiles[0], quantiles[1], most)
        for partition, size, jobs, quantiles, most in sorted(rows)
    ]


def demand(store: Store, span: Span, now: float, cluster: str = "") -> dict[float, float]:
    """By hour, CPU time that was waited for: the CPUs of all jobs that could have run and did not, times seconds.

    Sums over what came before an instant give what waited until then; an hour is the difference of two.
    """
    events = _events(store, span, cluster)
    for begin, end, cpus in _now(store, span, now, cluster):
        for sign, instant in ((1, begin), (-1, end)):
            known = events[instant // HOUR * HOUR]
            known[0] += sign * cpus
            known[1] += sign * cpus * (instant - span.since)
    found = {}
    waiting = moments = before = 0.0
    # Before the first of them nobody waited, and there may be decades of that.
    hour = max(span.since, min(events, default=span.until))
    while hour < span.until:
        if hour in events:
            waiting += events[hour][0]
            moments += events[hour][1]
        whole = waiting * (hour + HOUR - span.since) - moments
        found[hour] = max(0.0, whole - before)
        before, hour = whole, hour + HOUR
    return found


def _events(store: Store, span: Span, cluster: str) -> dict[float, list[float]]:
    """By hour: CPUs that came to wait less those that ceased to, and their moments."""
    asked = [span.since, span.since, span.since, span.until, cluster, cluster]
    found: dict[float, list[float]] = defaultdict(lambda: [0.0, 0.0])
    rows = store.query(EVENTS.format(since=span.since), asked, (span.since, float("inf")))
    for kind, hour, cpus, moments in rows:
        found[hour][0] += kind * float(cpus)
        found[hour][1] += kind * float(moments)
    return found


def _now(store: Store, span: Span, now: float, cluster: str) -> list[tuple[float, float, int]]:
    """Jobs that are not over: from when to when each waited within a time, and for how many CPUs."""
    found = []
    for state in ("pending", "running"):
        for job in store.jobs(JobQuery(state=state, since=span.since, limit=MOST), now):
            batch: dict[str, Any] = job.get("batch") or {}
            free, start = batch.get("eligible") or batch.get("submit"), batch.get("start")
            cpus = batch.get("requested_cpus") or batch.get("cpus")
            if job["scheduler"] in LOCAL or free is None or not cpus:
                continue
            if cluster and job["cluster"] != cluster:
                continue
            begin, end = max(free, span.since), min(span.until, now, start or now)
            if begin < end:
                found.append((begin, end, cpus))
    return found
