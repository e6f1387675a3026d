"""One job over time: its figures, its series summed over nodes, its processes."""

import json
from typing import Any, NamedTuple

from msgspec import Struct

from jobsight.analyse.container import ContainerUse
from jobsight.analyse.container import containers as containers_of
from jobsight.analyse.jobstep import Jobstep, jobsteps
from jobsight.analyse.outcome import outcome
from jobsight.analyse.slice import STEP
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
    container: str | None = None
    """The runtime of the container it was in."""
    container_id: str | None = None
    container_name: str | None = None
    image: str | None = None


class Profile(Struct):
    """Everything about one job."""

    summary: Summary
    verdict: str
    series: dict[str, Series]
    processes: list[ProcessUse]
    processes_total: int
    missing: dict[str, str]
    """Columns that some rows lacked when the job was last seen, and why, in words."""
    gone: str = ""
    """What is no longer kept of it, in a sentence; empty if all is there."""
    steps: list[Jobstep] = []
    """What its scheduler and its control groups say of each step."""
    containers: list[ContainerUse] = []
    """Those that its processes were in."""


# Chart series from usage rows. Rates hold over the interval that ends at the row's time, and so do gauges: a value
# read at its end is the best we know of the interval.
RATES: dict[str, str] = {"cpu": "cpu_time", "read": "read", "written": "written", "gpu": "gpu_time"}
GAUGES: dict[str, str] = {
    "cpus": "cpus",
    "memory": "memory",
    "memory_cache": "memory_cache",
    "memory_limit": "memory_limit",
    "threads": "threads",
    "gpus": "gpus",
    "gpu_memory": "gpu_memory",
}
# Of slices, columns that have another name.
PEAKS = {"gpu_memory": "gpu_memory_peak"}


def profile(store: Store, document: dict[str, Any], now: float, points: int = POINTS) -> Profile:
    """Of a stored job."""
    figures = summary(document, now)
    rows = processes(store, document)
    runs = heard(store, figures, {row[6] for row in rows})
    drawn = series(store, figures, points)
    used = used_by(rows, runs)
    return Profile(
        summary=figures,
        verdict=verdict(figures),
        series=drawn,
        processes=used,
        processes_total=rows[0][-1] if rows else 0,
        missing=missing(runs, figures.seen),
        gone=gone(store, figures, charts=any(one.start for one in drawn.values())),
        steps=[] if document["scope"] else jobsteps(store, document, figures.batch),
        containers=containers_of(used),
    )


def gone(store: Store, figures: Summary, *, charts: bool) -> str:
    """What became of rows that were dropped for their age."""
    if figures.started < store.horizon("usage"):
        if charts:
            return "It is some time ago: the charts show means of five minutes, and totals are all there is besides."
        return "It is long ago: its totals are kept, its charts and processes no longer."
    if figures.started < store.horizon("process"):
        return "It is some time ago: its processes are no longer kept one by one."
    return ""


# Why a value is missing, as people say it.
REASONS = {
    "absent": "not on this machine",
    "forbidden": "no permission",
    "failed": "could not be read",
    "late": "came too late",
}


# How long before a job was last seen its other nodes may have spoken last (seconds).
LATELY = 1.0


class Run(NamedTuple):
    """What a message said of itself."""

    collector: str
    node: str
    boot: str
    time: float
    uptime: float | None
    missing: str | None


def heard(store: Store, figures: Summary, times: set[float]) -> list[Run]:
    """The messages of a job's nodes at these times, and those with which it was last seen."""
    last = figures.seen - LATELY
    span = min([last, *times]), max([figures.seen, *times])
    exact = f"time IN ({', '.join('?' * len(times))}) OR " if times else ""
    rows = store.query(
        "SELECT collector, node, boot, time, uptime, missing FROM run WHERE collector IN ('process', 'cgroup') "
        f"AND cluster = ? AND time BETWEEN ? AND ? AND ({exact}time BETWEEN ? AND ?) "
        f"AND list_contains(?, node) AND {placed(figures.nodes)}",
        [figures.cluster, *span, *times, last, figures.seen, figures.nodes, *named(figures.nodes)],
        span,
    )
    return [Run(*row) for row in rows]


def missing(runs: list[Run], seen: float) -> dict[str, str]:
    """What the nodes said they could not see when they last saw the job."""
    last = [run.missing for run in runs if run.missing and run.time >= seen - LATELY]
    found = {column: reason for text in dict.fromkeys(last) for column, reason in json.loads(text).items()}
    return {column: REASONS.get(reason, reason) for column, reason in found.items()}


def series(store: Store, figures: Summary, points: int = POINTS) -> dict[str, Series]:
    """All charts' columns, each from the source that counted the totals, or from processes where it has none."""
    names = [*dict.fromkeys([*RATES.values(), *GAUGES.values()])]
    # Where usage is no longer kept from the beginning on, its slices are, whose time is when they begin.
    old = figures.started < store.horizon("usage")
    table, end = ("slice", f"time + {STEP}") if old else ("usage", "time")
    columns = ", ".join(PEAKS.get(name, name) if old else name for name in names)
    rows = store.query(
        f"SELECT source, node, {end}, seconds, covered, {columns} FROM {table} "
        "WHERE job_key = ? AND seconds > 0 AND covered > 0 ORDER BY node, time",
        [figures.key],
        # With a day to spare on both sides, for clocks that were wrong.
        (figures.started - 86400, figures.seen + 86400),
    )
    place = {name: index for index, name in enumerate(names, 5)}
    best = [row for row in rows if row[0] == figures.source]
    others, cards = ([row for row in rows if row[0] == source] for source in ("process", "gpu"))
    found = {}
    for shown, name in (RATES | GAUGES).items():
        counted = cards if name.startswith("gpu") else best
        known = [row for row in counted if row[place[name]] is not None]
        known = known or [row for row in others if row[place[name]] is not None]
        found[shown] = _series(known, place[name], points, figures.started, per_second=shown in RATES)
    return found


def _series(
    rows: list[tuple[Any, ...]], column: int, points: int, started: float = 0.0, *, per_second: bool
) -> Series:
    by_node: dict[str, list[Step]] = {}
    for row in rows:
        _, node, time, seconds, covered = row[:5]
        if time > started:
            # A control group does not tell when it began, its processes do.
            seconds, covered = min(seconds, time - started), min(covered, time - started)
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
SELECT node, boot, pid, started, arg_max(command, time), arg_max(owner, time), max(time),
  max(cpu_user + cpu_system), max(memory_anon), max(threads), max(read), max(written),
  max(container), max(container_id), max(container_name), max(image)
FROM process
WHERE cluster = ? AND scheduler = ? AND job = ?
  AND time BETWEEN ? AND ? AND (? = '' OR node || '/' || boot = ?) AND {place}
GROUP BY node, boot, pid, started
"""
# Nodes that are named one by one, so that files and their parts can be passed over that have none of them.
FEW = 50


def named(nodes: list[str]) -> list[str]:
    return nodes if len(nodes) <= FEW else []


def placed(nodes: list[str]) -> str:
    """A condition for being on one of some nodes, with a value for each that is `named`."""
    return f"node IN ({', '.join('?' * len(nodes))})" if named(nodes) else "1 = 1"


def processes(store: Store, document: dict[str, Any], limit: int = 200) -> list[tuple[Any, ...]]:
    """The job's processes that used the most CPU time, each with how many there were in all."""
    nodes = sorted({part["node"] for part in document["parts"]})
    values = [
        document["cluster"], document["scheduler"], document["id"],
        document["started"], document["seen"], document["scope"], document["scope"],
        *named(nodes),
    ]  # fmt: skip
    between = (document["started"], document["seen"])
    found = PROCESSES.format(place=placed(nodes))
    listed = f"SELECT *, count(*) OVER () FROM ({found}) AS found ORDER BY 8 DESC, pid LIMIT {limit}"
    return store.query(listed, values, between)


def used_by(rows: list[tuple[Any, ...]], runs: list[Run]) -> list[ProcessUse]:
    """Processes with the time they began at, which they tell by the time since boot. When that was is said by every
    message: to ask for it here is quicker than to join rows with messages there.
    """
    booted = {
        (run.node, run.boot): run.time - run.uptime
        for run in runs
        if run.collector == "process" and run.uptime is not None
    }
    return [
        ProcessUse(node, pid, command, owner, booted[node, boot] + started, *rest)
        for node, boot, pid, started, command, owner, *rest, _ in rows
        if (node, boot) in booted
    ]


def verdict(figures: Summary) -> str:
    """What happened, in a sentence or two."""
    if figures.batch is not None and (said := outcome(figures.batch)):
        return f"{said} {used(figures)}".strip()
    return used(figures)


def used(figures: Summary) -> str:
    """What it used, in a sentence or two."""
    if figures.cores_mean is None and figures.state in ("pending", "ended") and figures.batch is not None:
        return ""
    if figures.cores_mean is None:
        return "Nothing is known yet of what this job used: the next sample will tell."
    many = cores(figures.cores_mean)
    said = f"{'Uses' if figures.state == 'running' else 'Used'} {many}"
    said += f" of {figures.cpus} cores" if figures.cpus else " core" if many == "1" else " cores"
    if figures.gpus and (computed := figures.reserved["gpus"].used) is not None:
        said += f", {cores(computed)} of {figures.gpus} GPU{'' if figures.gpus == 1 else 's'}"
    if figures.memory_peak is not None:
        limit = f" of {size(figures.memory_limit)}" if figures.memory_limit else ""
        where = " on one node" if len(figures.nodes) > 1 else ""
        said += f" and at most {size(figures.memory_peak)}{limit} of memory{where}"
    said += "."
    if figures.oom_kills:
        was = "was" if figures.oom_kills == 1 else "were"
        said += f" {figures.oom_kills} of its processes {was} killed for want of memory."
    return said
