"""What one job used on one node between two samples: the table that lists, pages and summaries are made of."""

from collections.abc import Sequence
from math import fsum
from typing import Any, NamedTuple

from jobsight.analyse.growth import Gain, growth
from jobsight.analyse.sample import column
from jobsight.ingest.accept import Accepted
from jobsight.schema.record import counter, gauge, label, record
from jobsight.schema.units import Bytes, Count, Seconds


@record
class Usage:
    """One job on one node, from one sample to the next."""

    job_key: str = label("The job.")
    source: str = label(
        "Who counted: `cgroup` for the job as a whole, `process` for the sum over its processes, `gpu` for its cards."
    )
    seconds: Seconds = gauge("Length of the interval that ends at this row's time.")
    covered: Seconds = gauge("Of that, how much was observed. Less than `seconds` where messages are missing.")
    cpu_time: Seconds | None = counter("CPU time used in the interval.", default=None)
    cpus: Count | None = gauge("Logical CPUs the job may use here.", default=None)
    memory: Bytes | None = gauge("Memory of its own at the end of the interval.", default=None)
    memory_cache: Bytes | None = gauge("Page cache charged to it.", default=None)
    memory_limit: Bytes | None = gauge("What it may use here.", default=None)
    threads: Count | None = gauge("Threads.", default=None)
    processes: Count | None = gauge("Processes.", default=None)
    read: Bytes | None = counter("Bytes read from storage in the interval.", default=None)
    written: Bytes | None = counter("Bytes written to storage in the interval.", default=None)
    oom_kills: Count | None = counter("Processes killed for want of memory in the interval.", default=None)
    gpus: Count | None = gauge("Cards it held.", default=None)
    gpu_time: Seconds | None = counter("Time in which they computed in the interval, added up.", default=None)
    gpu_memory: Bytes | None = gauge("Their memory in use at the end of the interval, added up.", default=None)


class Machine(NamedTuple):
    """What a node has: the bound of a job that has no other."""

    cpus: Count | None = None
    memory: Bytes | None = None


class Interval(NamedTuple):
    """The time a usage row stands for."""

    seconds: float
    covered: float


def of_processes(
    key: str, interval: Interval, sample: Accepted, rows: list[int], used: list[Gain], on: Machine
) -> Usage:
    """A job's use as the sum over its processes."""
    memory, threads, merged = column(sample, "memory_anon"), sample.columns["threads"], sample.columns.get("merged")
    cpu, read, written = zip(*used, strict=True)
    return Usage(
        job_key=key,
        source="process",
        seconds=Seconds(interval.seconds),
        covered=Seconds(interval.covered),
        # Rounded once: rows come back from files in another order, and must give the same sum.
        cpu_time=Seconds(fsum(cpu)),
        cpus=on.cpus,
        memory=_sum([memory[row] for row in rows]),
        memory_limit=on.memory,
        threads=Count(sum([threads[row] for row in rows])),
        processes=Count(len(rows) + (sum([merged[row] or 0 for row in rows]) if merged else 0)),
        read=_sum(read),
        written=_sum(written),
    )


def of_group(key: str, interval: Interval, before: dict[str, Any], now: dict[str, Any], on: Machine) -> Usage:
    """A job's use as its control group counted it."""
    return Usage(
        job_key=key,
        source="cgroup",
        seconds=Seconds(interval.seconds),
        covered=Seconds(interval.covered),
        cpu_time=_gained(before, now, "cpu_time"),
        cpus=now["cpus"] if now["cpus"] is not None else on.cpus,
        memory=now["memory_anon"],
        memory_cache=now["memory_file"],
        memory_limit=now["memory_limit"] if now["memory_limit"] is not None else on.memory,
        threads=now["processes"],
        read=_gained(before, now, "read"),
        written=_gained(before, now, "written"),
        oom_kills=_gained(before, now, "oom_kills"),
    )


def _gained(before: dict[str, Any], now: dict[str, Any], name: str) -> Any:
    """Growth of a counter since the last sample; since it began if there was none."""
    if now[name] is None:
        return None
    return growth([before.get(name) or 0, now[name]])


def _sum(values: Sequence[int | None]) -> Bytes | None:
    """What those that are known add up to; nothing if there are none, or if the sum is beyond what a table holds."""
    known = [value for value in values if value is not None] if None in values else values
    total = sum(known)  # type: ignore[arg-type]
    return Bytes(total) if known and total < 2**63 else None
