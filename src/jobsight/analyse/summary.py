"""A job's figures as everybody is shown them: list, page, terminal and files, all from here."""

from typing import Any

from msgspec import Struct, convert

from jobsight.analyse.batch import Batch
from jobsight.analyse.job import Job, Part, given_nodes
from jobsight.analyse.reservation import Reserved, cpus, memory_on_a_node, reserved
from jobsight.store.protocol import fresh


class Summary(Struct):
    """One job in numbers. Missing is None, never zero."""

    key: str
    id: str
    scheduler: str
    cluster: str
    owner: str
    number: str
    """The scheduler's number, where `id` is not it; else empty."""
    name: str
    account: str
    partition: str
    allocated: str
    command: str
    nodes: list[str]
    """Those it was seen on; where it was not seen, those its scheduler names."""
    state: str
    """`pending`; `running`; `ended`; `silent` if neither its node nor its scheduler has been heard of since."""
    started: float
    """As its scheduler says, else as it was seen; of a job that waits, when it was submitted."""
    seen: float
    every: float
    """Seconds between samples when it was last seen."""
    elapsed: float
    coverage: float | None
    """Share of the elapsed time that was observed."""
    source: str
    """Who counted the totals: `cgroup` or `process`; `scheduler` for a job that was never seen."""
    cpus: int | None
    cpu_time: float | None
    cpu_time_processes: float | None
    """The same by summing processes, to be set against the control group's."""
    cores_mean: float | None
    memory_mean: float | None
    memory_peak: int | None
    """The most on one node."""
    memory_peak_group: int | None
    memory_limit: int | None
    threads_peak: int | None
    processes_peak: int | None
    read: int | None
    written: int | None
    oom_kills: int | None
    gpus: int | None
    """Cards it held at the most, on all nodes."""
    gpu_time: float | None
    """Time in which they computed, added up."""
    gpu_held: float | None
    """Time in which they were held, added up."""
    gpu_memory_peak: int | None
    """The most of their memory in use on one node."""
    commands: dict[str, float]
    reserved: dict[str, Reserved]
    """Asked for, given and used: cores, memory, gpus, time."""
    batch: Batch | None
    """What its scheduler says of it."""


def summary(document: dict[str, Any], now: float) -> Summary:
    """Figures of a stored job."""
    return summarised(convert(document, Job), now)


def summarised(job: Job, now: float) -> Summary:
    """The same of one that is no document any more."""
    cards = [part for part in job.parts if part.source == "gpu"]
    told = len(cards) == len(job.parts) and job.batch is not None
    source = "scheduler" if told else _source(job.parts)
    parts = [part for part in job.parts if part.source == source]
    processes = [part for part in job.parts if part.source == "process"]
    elapsed = _elapsed(job)
    cpu_time = job.batch.cpu_time if job.batch is not None and told else _sum(part.cpu_time for part in parts)
    # Of a group nobody saw begin, the use before it was seen has no time to be spread over.
    cores = cpu_time / elapsed if cpu_time is not None and elapsed and not job.guessed else None
    return Summary(
        key=job.key,
        id=job.id,
        scheduler=job.scheduler,
        cluster=job.cluster,
        owner=job.owner,
        number=job.number if job.number != job.id else "",
        name=job.name,
        account=job.account,
        partition=job.partition,
        allocated=job.allocated,
        command=job.command,
        nodes=job.nodes or given_nodes(job.batch),
        state=state(job, now),
        started=job.started,
        seen=job.seen,
        every=job.every,
        elapsed=elapsed,
        coverage=_coverage(job, parts),
        source=source,
        cpus=cpus(job.batch, parts),
        cpu_time=cpu_time,
        cpu_time_processes=_sum(part.cpu_time for part in processes),
        cores_mean=cores,
        memory_mean=_first(_memory_mean(parts), _memory_mean(processes)),
        memory_peak=_first(_max(p.memory_peak for p in parts), _max(p.memory_peak for p in processes)),
        memory_peak_group=_max(part.group_peak for part in parts),
        memory_limit=memory_on_a_node(job.batch, parts),
        threads_peak=_max(part.threads_peak for part in parts),
        processes_peak=_max(part.processes_peak for part in processes),
        read=_either([part.read for part in parts], [part.read for part in processes]),
        written=_either([part.written for part in parts], [part.written for part in processes]),
        oom_kills=_sum(part.oom_kills for part in parts),
        **_cards(cards),
        commands=job.commands,
        reserved=reserved(job.batch, [*parts, *cards], cores, None if job.waits else elapsed),
        batch=job.batch,
    )


def source_of(parts: list[dict[str, Any]]) -> str:
    """The control group is the truth for totals: it counts what came and went between two samples."""
    told = any(part["source"] == "cgroup" and part["cpu_time"] is not None for part in parts)
    return "cgroup" if told else "process"


def _cards(parts: list[Part]) -> dict[str, Any]:
    return {
        "gpus": _sum(part.gpus for part in parts),
        "gpu_time": _sum(part.gpu_time for part in parts),
        "gpu_held": _sum(part.gpu_held for part in parts),
        "gpu_memory_peak": _max(part.gpu_memory_peak for part in parts),
    }


def _source(parts: list[Part]) -> str:
    return "cgroup" if any(part.source == "cgroup" and part.cpu_time is not None for part in parts) else "process"


def state(job: Job, now: float) -> str:
    if not job.alive and not job.waits:
        return "ended"
    if not fresh(job.seen, job.pace, now):
        return "silent"
    return "pending" if job.waits else "running"


def _elapsed(job: Job) -> float:
    """How long it ran, without the time it was suspended, where its scheduler says so."""
    if job.waits:
        return 0.0
    if job.batch is not None and job.batch.over and job.batch.elapsed is not None:
        return job.batch.elapsed
    return max(0.0, job.seen - job.started)


def _coverage(job: Job, parts: list[Part]) -> float | None:
    """Of the time since it began on each node, also where it was first seen long after: a control group does not tell
    its age, but its processes and its scheduler do.
    """
    starts = [(part.node, part.began) for part in job.parts if part.began is not None]
    if job.batch is not None and job.batch.start is not None:
        starts += [(part.node, job.batch.start) for part in parts]
    began: dict[str, float] = {}
    for node, start in starts:
        began[node] = min(start, began.get(node, start))
    seconds = sum(max(part.seconds, part.time - began.get(part.node, part.time)) for part in parts)
    return min(1.0, sum(part.covered for part in parts) / seconds) if seconds else None


def _memory_mean(parts: list[Part]) -> float | None:
    """Over time on each node, then summed over nodes."""
    means = [part.memory_seconds / part.memory_covered for part in parts if part.memory_covered]
    return sum(means) if means else None


def _either(best: list[int | None], other: list[int | None]) -> Any:
    return _first(_sum(best), _sum(other))


def _first(best: Any, other: Any) -> Any:
    """A control group does not count everything on every kernel; what it does not, its processes may."""
    return other if best is None else best


def _sum(values: Any) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _max(values: Any) -> Any:
    return max((value for value in values if value is not None), default=None)
