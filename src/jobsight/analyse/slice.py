"""Usage in even steps of time, kept for years: five minutes of a job on a node, an hour of a node by whose and what.

An interval of usage is cut where a step ends, and its counters are shared out by time, so that the parts add up to
the whole: whole numbers stay whole. Gauges are means over the time that was observed, and peaks.
"""

from collections.abc import Callable
from typing import Any

from jobsight.analyse.late import HOUR
from jobsight.analyse.summary import source_of
from jobsight.schema.record import counter, gauge, label, record
from jobsight.schema.units import Bytes, Count, Seconds
from jobsight.store.protocol import LABEL, REACH, JobQuery, Store

STEP = 300.0
# How long after its end an hour is still filling: what nodes send late, and the interval that reaches over its end.
SETTLES = 300.0
# Hours made in one commit, and slices: with more of them it is fewer hours. Each takes half a kilobyte of memory
# while they are made.
MANY = 24
HEAVY = 1_000_000


@record
class Slice:
    """Five minutes, which begin at this row's time, of one job on one node."""

    job_key: str = label("The job.")
    source: str = label("Who counted: `cgroup` for the job as a whole, `process` for the sum over its processes.")
    seconds: Seconds = gauge("Time of it that intervals of usage reach over.")
    covered: Seconds = gauge("Of that, how much was observed.")
    cpu_time: Seconds | None = counter("CPU time used.", default=None)
    cpus: Count | None = gauge("Logical CPUs the job may use here, at the most.", default=None)
    memory: Bytes | None = gauge("Memory of its own, mean over the time observed.", default=None)
    memory_peak: Bytes | None = gauge("The most of it.", default=None)
    memory_cache: Bytes | None = gauge("Page cache charged to it, mean over the time observed.", default=None)
    memory_limit: Bytes | None = gauge("What it may use here, at the most.", default=None)
    threads: Count | None = gauge("Threads, at the most.", default=None)
    processes: Count | None = gauge("Processes, at the most.", default=None)
    read: Bytes | None = counter("Bytes read from storage.", default=None)
    written: Bytes | None = counter("Bytes written to storage.", default=None)
    oom_kills: Count | None = counter("Processes killed for want of memory.", default=None)
    gpus: Count | None = gauge("Cards it held, at the most.", default=None)
    gpu_time: Seconds | None = counter("Time in which they computed, added up.", default=None)
    gpu_memory_peak: Bytes | None = gauge("The most of their memory in use.", default=None)


@record
class Share:
    """An hour, which begins at this row's time, of one node: what one owner used for one account, in one partition,
    with one main command. Of each job the source counts that its totals are from.
    """

    owner: str = label("Whose jobs; empty if unknown.")
    account: str = label("For which account; empty if unknown.")
    partition: str = label("In which partition; empty if unknown.")
    command: str = label("What used the most in each of these jobs, as far as it was known then.")
    jobs: Count = gauge("How many jobs.")
    seconds: Seconds = gauge("Time of these jobs that intervals of usage reach over, added up.")
    covered: Seconds = gauge("Of that, how much was observed.")
    cpu_time: Seconds | None = counter("CPU time used.", default=None)
    cpu_held: Seconds | None = counter(
        "CPU time these jobs could have used: their logical CPUs times seconds.", default=None
    )
    memory: Bytes | None = gauge("Memory of their own, mean over the whole hour.", default=None)
    memory_peak: Bytes | None = gauge("The most one of them had.", default=None)
    read: Bytes | None = counter("Bytes read from storage.", default=None)
    written: Bytes | None = counter("Bytes written to storage.", default=None)
    oom_kills: Count | None = counter("Processes killed for want of memory.", default=None)
    gpu_time: Seconds | None = counter("Time in which their cards computed, added up.", default=None)
    gpu_held: Seconds | None = counter("Time in which they held cards: cards times seconds.", default=None)


def cut(since: float, until: float, step: float) -> str:
    """Intervals of usage, cut into steps of a time: `bucket` is the step's number; `early` and `upto` say which part
    of the interval lies before the step and before its end; `over` and `observed` are seconds in it.
    """
    return f"""(
SELECT *,
  CASE WHEN length > 0 THEN (greatest(bucket * {step!r}, begin_time) - begin_time) / length ELSE 0 END AS early,
  CASE WHEN length > 0 THEN (least((bucket + 1) * {step!r}, time) - begin_time) / length ELSE 1 END AS upto,
  least((bucket + 1) * {step!r}, time) - greatest(bucket * {step!r}, begin_time) AS over,
  greatest(0, least((bucket + 1) * {step!r}, time) - greatest(bucket * {step!r}, time - covered)) AS observed
FROM (SELECT *, time - begin_time AS length FROM (
  SELECT *, time - least(seconds, {REACH!r}) AS begin_time FROM usage
  WHERE time >= {since!r} AND time - least(seconds, {REACH!r}) < {until!r}) AS near) AS interval_rows
CROSS JOIN LATERAL generate_series(
  CAST(greatest(floor(begin_time / {step!r}), {since / step!r}) AS BIGINT),
  CAST(least(greatest(ceil(time / {step!r}) - 1, floor(begin_time / {step!r})), {until / step - 1!r}) AS BIGINT))
  AS steps (bucket)) AS piece"""


def shared(name: str) -> str:
    """A whole number's part in a step: what is not counted here is counted in the next one."""
    return f"CAST(sum(CAST(floor({name} * upto) AS BIGINT) - CAST(floor({name} * early) AS BIGINT)) AS BIGINT)"


def mean(name: str, over: str = "") -> str:
    """Over the seconds observed, or over so many."""
    weight = over or f"nullif(sum(CASE WHEN {name} IS NOT NULL THEN observed END), 0)"
    return f"CAST(floor(sum({name} * observed) / {weight} + 0.5) AS BIGINT)"


def peak(name: str) -> str:
    return f"max(CASE WHEN observed > 0 OR upto = 1 THEN {name} END)"


def counted(name: str) -> str:
    """By who counts the job as a whole: its cards are counted beside that."""
    return f"CASE WHEN piece.source <> 'gpu' THEN {name} END"


def slices(since: float, until: float) -> str:
    return f"""SELECT cluster, node, boot, bucket * {STEP!r}, job_key, source, sum(over), sum(observed),
  sum(cpu_time * (upto - early)), max(cpus), {mean("memory")}, {peak("memory")}, {mean("memory_cache")},
  max(memory_limit), {peak("threads")}, {peak("processes")}, {shared("read")}, {shared("written")},
  {shared("oom_kills")}, max(gpus), sum(gpu_time * (upto - early)), {peak("gpu_memory")}
FROM {cut(since, until, STEP)} GROUP BY cluster, node, boot, bucket, job_key, source"""


def shares(since: float, until: float) -> str:
    return f"""SELECT cluster, node, '', bucket * {HOUR!r}, owner, account, partition, command,
  count(DISTINCT piece.job_key), coalesce(sum({counted("over")}), 0), coalesce(sum({counted("observed")}), 0),
  sum(cpu_time * (upto - early)), sum(cpus * over),
  {mean("memory", repr(HOUR))}, {peak("memory")}, {shared("read")}, {shared("written")}, {shared("oom_kills")},
  sum(gpu_time * (upto - early)), sum(gpus * over)
FROM {cut(since, until, HOUR)} JOIN label ON label.job_key = piece.job_key AND label.source = piece.source
GROUP BY cluster, node, bucket, owner, account, partition, command"""


def roll(store: Store, now: float, also: Callable[[Store, float, float], None] | None = None) -> int:
    """Make the slices and shares that are due, of hours that are over, and what is made `also`; how many hours."""
    horizon = store.horizon("usage")
    marked = store.query(
        "SELECT DISTINCT cluster, time FROM due WHERE time <= ? ORDER BY time", [now - HOUR - SETTLES]
    )
    clusters = sorted({cluster for cluster, _ in marked})
    spans = _spans(sorted({time for _, time in marked}))
    for since, until in (part for span in spans for part in _parts(store, *span)):
        with store.still() as free:
            if not free:
                return 0
            # Of what is gone nothing can be made; what was made of it stays.
            if since >= horizon:
                store.refill("slice", (since, until), slices(since, until), [])
                labels = _labels(store, since, until)
                if not _forgotten(store, since, until, labels):
                    store.refill("share", (since, until), shares(since, until), labels)
                    if also is not None:
                        also(store, since, until)
            store.unmark("due", [(cluster, "", since, until - 1) for cluster in clusters])
    return sum(round((until - since) / HOUR) for since, until in spans)


def _parts(store: Store, since: float, until: float) -> list[tuple[float, float]]:
    """A span as it is made in one commit each. What is met for the first time may be of yesterday: ten thousand nodes
    then make ten million slices at once, which are made hour by hour.
    """
    begun = f"time - least(seconds, {REACH!r})"
    ((weight,),) = store.query(
        f"SELECT sum((least(time, {until!r}) - greatest({begun}, {since!r})) / {STEP!r} + 1) "
        f"FROM usage WHERE time >= {since!r} AND {begun} < {until!r}",
        (),
        (since, until + REACH),
    )
    hours = round((until - since) / HOUR)
    many = max(1, int(hours / max(1.0, (weight or 0.0) / HEAVY)))
    return [(since + first * HOUR, min(until, since + (first + many) * HOUR)) for first in range(0, hours, many)]


def _spans(hours: list[float]) -> list[tuple[float, float]]:
    """Hours that follow each other as one."""
    found: list[tuple[float, float]] = []
    for hour in hours:
        if found and found[-1][1] == hour and hour - found[-1][0] < MANY * HOUR:
            found[-1] = (found[-1][0], hour + HOUR)
        else:
            found.append((hour, hour + HOUR))
    return found


def _forgotten(store: Store, since: float, until: float, labels: list[tuple[Any, ...]]) -> bool:
    """Whether shares of a time are there, and jobs they are made of are no longer known: what `store.keep_jobs` has
    dropped. Made again they would lack these; as they are, they lack no more than what came late.
    """
    if not store.query("SELECT 1 FROM share WHERE time >= ? AND time < ? LIMIT 1", [since, until], (since, until)):
        return False
    begun = f"time - least(seconds, {REACH!r})"
    asked = f"SELECT DISTINCT job_key FROM usage WHERE time >= {since!r} AND {begun} < {until!r}"
    place = LABEL.index("job_key")
    missing = {key for (key,) in store.query(asked, (), (since, until + REACH))} - {row[place] for row in labels}
    return any(store.job(key) is None for key in missing)


def _labels(store: Store, since: float, until: float) -> list[tuple[Any, ...]]:
    """What is said of the jobs of a time. See `store.protocol.LABEL`."""
    # What was last seen a little earlier may reach into it.
    found = store.jobs(JobQuery(since=since, until=until, limit=10**9), until)
    return [
        (job["key"], source, job["owner"], job["account"], job["partition"], _main(job["commands"]))
        for job in found
        for source in (source_of(job["parts"]), "gpu")
    ]


def _main(commands: dict[str, float]) -> str:
    return max(commands, key=lambda name: commands[name], default="")
