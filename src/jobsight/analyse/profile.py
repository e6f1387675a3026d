"""One job over time: its figures, its series summed over nodes, its processes."""

import json
from typing import Any

from msgspec import Struct

from jobsight.analyse.steps import Step, thin, total
from jobsight.analyse.summary import Summary, summary
from jobsight.formats.number import cores, size
from jobsight.store.protocol import Store

POINTS = 800


class Series(Struct):
    """A step function in columns; where one step ends and the next begins later, nothing is known."""

    start: list[float]
    end: list[float]
    value: list[float]


class ProcessUse(Struct):
    """One process of a job over its life, as far as it was seen."""

    node: str
    pid: int
    command: str
    owner: str
    started: float
    seen: float
    cpu_time: float
    memory_peak: int | None
    threads_peak: int
    read: int | None
    written: int | None


class Profile(Struct):
    """Everything about one job."""

    summary: Summary
    verdict: str
    series: dict[str, Series]
    processes: list[ProcessUse]
    processes_total: int
    missing: dict[str, str]
    """Columns that some rows lacked when the job was last seen, and why, in words."""


# Chart series from usage rows. Rates hold over the interval that ends at the row's time, and so do gauges: a value
# read at its end is the best we know of the interval.
RATES: dict[str, str] = {"cpu": "cpu_time", "read": "read", "written": "written"}
GAUGES: dict[str, str] = {
    "cpus": "cpus",
    "memory": "memory",
    "memory_cache": "memory_cache",
    "memory_limit": "memory_limit",
    "threads": "threads",
}


def profile(store: Store, document: dict[str, Any], now: float, points: int = POINTS) -> Profile:
    """Of a stored job."""
    figures = summary(document, now)
    listed, count = processes(store, document)
    return Profile(
        summary=figures,
        verdict=verdict(figures),
        series=series(store, figures, points),
        processes=listed,
        processes_total=count,
        missing=missing(store, figures),
    )


# Why a value is missing, as people say it.
REASONS = {
    "absent": "not on this machine",
    "forbidden": "no permission",
    "failed": "could not be read",
    "late": "came too late",
}


def missing(store: Store, figures: Summary) -> dict[str, str]:
    """What the nodes said they could not see when they last saw the job."""
    rows = store.query(
        "SELECT missing FROM run WHERE collector IN ('process', 'cgroup') AND cluster = ? AND time BETWEEN ? AND ? "
        "AND missing <> '{}' AND list_contains(?, node)",
        [figures.cluster, figures.seen - 1, figures.seen, figures.nodes],
        (figures.seen - 1, figures.seen),
    )
    found = {column: reason for (text,) in rows for column, reason in json.loads(text).items()}
    return {column: REASONS.get(reason, reason) for column, reason in found.items()}


def series(store: Store, figures: Summary, points: int = POINTS) -> dict[str, Series]:
    """All charts' columns, each from the source that counted the totals, or from processes where it has none."""
    names = [*dict.fromkeys([*RATES.values(), *GAUGES.values()])]
    rows = store.query(
        f"SELECT source, node, time, seconds, covered, {', '.join(names)} FROM usage "
        "WHERE job_key = ? AND seconds > 0 AND covered > 0 ORDER BY node, time",
        [figures.key],
        # With a day to spare on both sides, for clocks that were wrong.
        (figures.started - 86400, figures.seen + 86400),
    )
    place = {name: index for index, name in enumerate(names, 5)}
    best = [row for row in rows if row[0] == figures.source]
    others = [row for row in rows if row[0] == "process"]
    found = {}
    for shown, name in (RATES | GAUGES).items():
        known = [row for row in best if row[place[name]] is not None]
        known = known or [row for row in others if row[place[name]] is not None]
        found[shown] = _series(known, place[name], points, per_second=shown in RATES)
    return found


def _series(rows: list[tuple[Any, ...]], column: int, points: int, *, per_second: bool) -> Series:
    by_node: dict[str, list[Step]] = {}
    for row in rows:
        _, node, time, seconds, covered = row[:5]
        # A counter's growth belongs to the whole interval; only the observed end of it is drawn.
        value = row[column] / seconds if per_second else row[column]
        known = by_node.setdefault(node, [])
        # Intervals are measured by the time since boot and placed by the clock. The two differ by a breath, and a
        # node must never be added to itself.
        start = max(time - covered, known[-1].end) if known else time - covered
        if start < time:
            known.append(Step(start, time, value))
    steps = thin(total(by_node.values()), points)
    return Series([s.start for s in steps], [s.end for s in steps], [s.value for s in steps])


PROCESSES = """
SELECT node, pid, arg_max(command, time), arg_max(owner, time),
  any_value(run.time - run.uptime) + started, max(process.time),
  max(cpu_user + cpu_system), max(memory_anon), max(threads), max(read), max(written)
FROM process JOIN run USING (cluster, node, boot, time)
WHERE run.collector = 'process' AND process.cluster = ? AND scheduler = ? AND job = ?
  AND process.time BETWEEN ? AND ? AND (? = '' OR node || '/' || boot = ?)
GROUP BY node, boot, pid, started
"""


def processes(store: Store, document: dict[str, Any], limit: int = 200) -> tuple[list[ProcessUse], int]:
    """The job's processes that used the most CPU time, and how many there were in all."""
    values = [
        document["cluster"], document["scheduler"], document["id"],
        document["started"], document["seen"], document["scope"], document["scope"],
    ]  # fmt: skip
    between = (document["started"], document["seen"])
    (count,) = store.query(f"SELECT count(*) FROM ({PROCESSES}) AS found", values, between)[0]
    rows = store.query(f"{PROCESSES} ORDER BY 7 DESC, pid LIMIT {limit}", values, between)
    return [ProcessUse(*row) for row in rows], count


def verdict(figures: Summary) -> str:
    """What happened, in a sentence or two."""
    if figures.cores_mean is None:
        return "Nothing is known yet of what this job used: the next sample will tell."
    used = cores(figures.cores_mean)
    said = f"{'Uses' if figures.state == 'running' else 'Used'} {used}"
    said += f" of {figures.cpus} cores" if figures.cpus else " core" if used == "1" else " cores"
    if figures.memory_peak is not None:
        limit = f" of {size(figures.memory_limit)}" if figures.memory_limit else ""
        where = " on one node" if len(figures.nodes) > 1 else ""
        said += f" and at most {size(figures.memory_peak)}{limit} of memory{where}"
    said += "."
    if figures.oom_kills:
        was = "was" if figures.oom_kills == 1 else "were"
        said += f" {figures.oom_kills} of its processes {was} killed for want of memory."
    return said
