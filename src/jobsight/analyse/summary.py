"""A job's figures as everybody is shown them: list, page, terminal and files, all from here."""

from typing import Any

from msgspec import Struct, convert

from jobsight.analyse.job import Job, Part
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
    state: str
    """`running`; `ended`; `silent` if its node has not been heard of since."""
    started: float
    seen: float
    every: float
    """Seconds between samples when it was last seen."""
    elapsed: float
    coverage: float | None
    """Share of the elapsed time that was observed."""
    source: str
    """Who counted the totals: `cgroup` or `process`."""
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
    commands: dict[str, float]


def summary(document: dict[str, Any], now: float) -> Summary:
    """Figures of a stored job."""
    job = convert(document, Job)
    # The control group is the truth for totals: it counts what came and went between two samples.
    source = "cgroup" if any(p.source == "cgroup" and p.cpu_time is not None for p in job.parts) else "process"
    parts = [part for part in job.parts if part.source == source]
    processes = [part for part in job.parts if part.source == "process"]
    elapsed = max(0.0, job.seen - job.started)
    cpu_time = _sum(part.cpu_time for part in parts)
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
        nodes=job.nodes,
        state=state(job, now),
        started=job.started,
        seen=job.seen,
        every=job.every,
        elapsed=elapsed,
        coverage=_coverage(parts),
        source=source,
        cpus=_sum(part.cpus for part in parts),
        cpu_time=cpu_time,
        cpu_time_processes=_sum(part.cpu_time for part in processes),
        # Of a group nobody saw begin, the use before it was seen has no time to be spread over.
        cores_mean=cpu_time / elapsed if cpu_time is not None and elapsed and not job.guessed else None,
        memory_mean=_memory_mean(parts),
        memory_peak=_max(part.memory_peak for part in parts),
        memory_peak_group=_max(part.group_peak for part in parts),
        memory_limit=_max(part.memory_limit for part in parts),
        threads_peak=_max(part.threads_peak for part in parts),
        processes_peak=_max(part.processes_peak for part in processes),
        read=_either([part.read for part in parts], [part.read for part in processes]),
        written=_either([part.written for part in parts], [part.written for part in processes]),
        oom_kills=_sum(part.oom_kills for part in parts),
        commands=job.commands,
    )


def state(job: Job, now: float) -> str:
    if not job.alive:
        return "ended"
    return "running" if fresh(job.seen, job.every, now) else "silent"


def _coverage(parts: list[Part]) -> float | None:
    seconds = sum(part.seconds for part in parts)
    return min(1.0, sum(part.covered for part in parts) / seconds) if seconds else None


def _memory_mean(parts: list[Part]) -> float | None:
    """Over time on each node, then summed over nodes."""
    means = [part.memory_seconds / part.memory_covered for part in parts if part.memory_covered]
    return sum(means) if means else None


def _either(best: list[int | None], other: list[int | None]) -> Any:
    """A control group does not count everything on every kernel; what it does not, its processes may."""
    found = _sum(best)
    return _sum(other) if found is None else found


def _sum(values: Any) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _max(values: Any) -> Any:
    return max((value for value in values if value is not None), default=None)
