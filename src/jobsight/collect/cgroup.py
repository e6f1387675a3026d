"""Control groups of jobs: what a job used as a whole, processes that came and went included.

Source: /sys/fs/cgroup, v2 (see the kernel's cgroup-v2.rst), v1, or both side by side. One row for each group that
`formats.cgrouppath` knows as a job's, and one for each of its steps and tasks.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

from jobsight.collector import collector
from jobsight.formats import blockio, cgrouppath, cpulist, keyvalue, pressure
from jobsight.host import Host
from jobsight.schema.record import counter, fields_of, gauge, label, record
from jobsight.schema.units import Bytes, Count, Seconds

ROOT = "sys/fs/cgroup"
USER_HZ = 100
# Larger than nearly any file of a group: io.stat has a line of a hundred bytes for each block device.
PIECE = 16384
# What is read of files that have many lines.
NAMES = frozenset({
    "usage_usec", "user_usec", "system_usec", "throttled_usec", "anon", "file", "shmem", "max", "oom_kill",
    "user", "system", "throttled_time", "total_rss", "rss", "total_cache", "cache", "total_shmem", "total_swap",
    "swap",
})  # fmt: skip
# v1 writes "no limit" as the largest multiple of the page size below 2**63.
NO_LIMIT = 2**62


@record
class Cgroup:
    """One job's control group since it was made."""

    scheduler: str = label("Who named the job: slurm, docker, podman, systemd.")
    job: str = label("The job's id there.")
    path: str = label("The group, below the mount of its hierarchy.")
    step: str | None = label("The step of the job; missing for the job as a whole.", default=None)
    task: str | None = label("The task of the step; missing for the step as a whole.", default=None)
    cpu_time: Seconds | None = counter("CPU time of all its processes, ended ones included.", default=None)
    cpu_user: Seconds | None = counter("Of that, in programs.", default=None)
    cpu_system: Seconds | None = counter("Of that, in the kernel.", default=None)
    cpus: Count | None = gauge("Logical CPUs the group may use.", default=None)
    memory_used: Bytes | None = gauge("All memory charged to the group, page cache included.", default=None)
    memory_anon: Bytes | None = gauge("Memory of programs' own.", default=None)
    memory_file: Bytes | None = gauge("Page cache.", default=None)
    memory_shmem: Bytes | None = gauge("Shared memory and tmpfs; part of the page cache.", default=None)
    memory_peak: Bytes | None = gauge("The most that was ever charged, page cache included.", default=None)
    memory_limit: Bytes | None = gauge("What it may use; missing if there is no limit.", default=None)
    swap: Bytes | None = gauge("Memory of the group that lies in swap.", default=None)
    limit_hits: Count | None = counter("Times memory ran against its limit and had to be freed first.", default=None)
    oom_kills: Count | None = counter("Processes killed for want of memory.", default=None)
    cpu_throttled: Seconds | None = counter("Time its CPU quota made it wait.", default=None)
    pressure_cpu: Seconds | None = counter("Time in which a task of it waited for a CPU.", default=None)
    pressure_memory: Seconds | None = counter("Time in which a task of it waited for memory.", default=None)
    pressure_memory_full: Seconds | None = counter("Time in which all its tasks waited for memory.", default=None)
    pressure_io: Seconds | None = counter("Time in which a task of it waited for I/O.", default=None)
    pressure_io_full: Seconds | None = counter("Time in which all its tasks waited for I/O.", default=None)
    read: Bytes | None = counter("Bytes read from storage.", default=None)
    written: Bytes | None = counter("Bytes written to storage.", default=None)
    reads: Count | None = counter("Read operations on storage.", default=None)
    writes: Count | None = counter("Write operations on storage.", default=None)
    processes: Count | None = gauge("Processes and threads in the group.", default=None)


class Tree(NamedTuple):
    """Where the controllers are mounted on this machine."""

    unified: str | None
    """The v2 mount, or None."""
    legacy: dict[str, str]
    """v1 mounts by controller."""


class Options(NamedTuple):
    """Which groups are rows."""

    steps: bool = True
    """Whether the steps and tasks of a job are, besides the job."""


@collector(f"{ROOT}/cgroup.controllers", f"{ROOT}/memory", f"{ROOT}/cpuacct", f"{ROOT}/cpu,cpuacct")
def cgroup(host: Host, options: Options) -> Iterator[Cgroup]:
    found = tree(host)
    for group, mounts in places(host, found, steps=options.steps).items():
        row = legacy(host, {name: mount for name, mount in found.legacy.items() if mount in mounts}, group)
        if found.unified in mounts:
            row = filled(unified(host, f"{found.unified}/{group.path}", group), row)
        if row is not None:
            yield row


def tree(host: Host) -> Tree:
    """v2 alone, v1 alone, or v1 with v2 at `unified`."""
    if host.exists(f"{ROOT}/cgroup.controllers"):
        return Tree(ROOT, {})
    mounts = {
        controller: f"{ROOT}/{name}"
        for name in sorted(host.names(ROOT))
        for controller in name.split(",")
        if controller not in ("unified", "systemd")
    }
    return Tree(f"{ROOT}/unified" if host.exists(f"{ROOT}/unified/cgroup.controllers") else None, mounts)


def places(host: Host, found: Tree, *, steps: bool = True) -> dict[cgrouppath.JobGroup, set[str]]:
    """Job groups, and the mounts they are below: a scheduler uses some controllers, not all."""
    merged: dict[cgrouppath.JobGroup, set[str]] = {}
    for mount in sorted({*found.legacy.values(), *filter(None, [found.unified])}):

        def names(path: str, mount: str = mount) -> list[str]:
            return host.names(f"{mount}/{path}")

        for job in cgrouppath.groups(names):
            for group in (job, *(cgrouppath.parts(job, names) if steps else ())):
                merged.setdefault(group, set()).add(mount)
    return merged


def filled(row: Cgroup | None, other: Cgroup | None) -> Cgroup | None:
    """A row with what it lacks from the other: where both hierarchies are mounted, each has some controllers only."""
    if row is None or other is None:
        return row or other
    names = (field.name for field in fields_of(Cgroup))
    pairs = zip(names, cast(Iterable[Any], row), cast(Iterable[Any], other), strict=True)
    return Cgroup(**{name: old if new is None else new for name, new, old in pairs})


def unified(host: Host, path: str, group: cgrouppath.JobGroup) -> Cgroup | None:
    """A v2 group; None if it has gone meanwhile."""
    cpu = _numbers(host, f"{path}/cpu.stat")
    if not cpu:
        return None
    memory = _numbers(host, f"{path}/memory.stat")
    events = _numbers(host, f"{path}/memory.events")
    storage = blockio.io_stat(_text(host, f"{path}/io.stat"))
    waited = {
        resource: pressure.totals(_text(host, f"{path}/{resource}.pressure") or "")
        for resource in ("cpu", "memory", "io")
    }
    return Cgroup(
        scheduler=group.scheduler,
        job=_shown(group.job),
        step=_shown(group.step) if group.step else None,
        task=_shown(group.task) if group.task else None,
        path=_shown(group.path),
        cpu_time=_seconds(cpu.get("usage_usec"), 1_000_000),
        cpu_user=_seconds(cpu.get("user_usec"), 1_000_000),
        cpu_system=_seconds(cpu.get("system_usec"), 1_000_000),
        cpus=_cpus(_text(host, f"{path}/cpuset.cpus.effective")),
        memory_used=_limit(_text(host, f"{path}/memory.current")),
        memory_anon=_bytes(memory.get("anon")),
        memory_file=_bytes(memory.get("file")),
        memory_shmem=_bytes(memory.get("shmem")),
        memory_peak=_limit(_text(host, f"{path}/memory.peak")),
        memory_limit=_limit(_text(host, f"{path}/memory.max")),
        swap=_limit(_text(host, f"{path}/memory.swap.current")),
        limit_hits=_count(events.get("max")),
        oom_kills=_count(events.get("oom_kill")),
        cpu_throttled=_seconds(cpu.get("throttled_usec"), 1_000_000),
        pressure_cpu=waited["cpu"].get("some"),
        pressure_memory=waited["memory"].get("some"),
        pressure_memory_full=waited["memory"].get("full"),
        pressure_io=waited["io"].get("some"),
        pressure_io_full=waited["io"].get("full"),
        read=storage.read,
        written=storage.written,
        reads=storage.reads,
        writes=storage.writes,
        processes=_count(_limit(_text(host, f"{path}/pids.current"))),
    )


def legacy(host: Host, mounts: dict[str, str], group: cgrouppath.JobGroup) -> Cgroup | None:
    """A v1 group; its parts lie in one directory for each controller. None if it has gone meanwhile."""

    def text(controller: str, file: str) -> str | None:
        return _text(host, f"{mounts[controller]}/{group.path}/{file}") if controller in mounts else None

    def numbers(controller: str, file: str) -> dict[str, int]:
        return keyvalue.chosen(text(controller, file) or "", NAMES)

    usage = text("cpuacct", "cpuacct.usage")
    times = numbers("cpuacct", "cpuacct.stat")
    memory = numbers("memory", "memory.stat")
    if usage is None and not memory:
        return None
    read = blockio.throttle(text("blkio", "blkio.throttle.io_service_bytes_recursive"), "Read")
    reads = blockio.throttle(text("blkio", "blkio.throttle.io_serviced_recursive"), "Read")
    quota = numbers("cpu", "cpu.stat")
    return Cgroup(
        scheduler=group.scheduler,
        job=_shown(group.job),
        step=_shown(group.step) if group.step else None,
        task=_shown(group.task) if group.task else None,
        path=_shown(group.path),
        cpu_time=_seconds(_limit(usage), 1_000_000_000),
        cpu_user=_seconds(times.get("user"), USER_HZ),
        cpu_system=_seconds(times.get("system"), USER_HZ),
        cpus=_cpus(text("cpuset", "cpuset.effective_cpus")),
        memory_used=_limit(text("memory", "memory.usage_in_bytes")),
        memory_anon=_bytes(memory.get("total_rss", memory.get("rss"))),
        memory_file=_bytes(memory.get("total_cache", memory.get("cache"))),
        memory_shmem=_bytes(memory.get("total_shmem", memory.get("shmem"))),
        memory_peak=_limit(text("memory", "memory.max_usage_in_bytes")),
        memory_limit=_limit(text("memory", "memory.limit_in_bytes")),
        swap=_bytes(memory.get("total_swap", memory.get("swap"))),
        limit_hits=_count(_limit(text("memory", "memory.failcnt"))),
        oom_kills=_count(numbers("memory", "memory.oom_control").get("oom_kill")),
        cpu_throttled=_seconds(quota.get("throttled_time"), 1_000_000_000),
        # What v1 says of writing is not used: it charges buffered writes to whoever flushes them.
        read=_bytes(read),
        reads=_count(reads),
        processes=_count(_limit(text("pids", "pids.current"))),
    )


def _shown(name: str) -> str:
    """A directory's name as text: other bytes are written as in a process's own cgroup file."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _text(host: Host, path: str) -> str | None:
    """A group's file, which the kernel gives in one piece; None if it is not there (any more) or not for us."""
    try:
        content = host.piece(path, PIECE)
        if len(content) == PIECE:
            content = host.read_bytes(path)
        return content.decode("utf-8", "backslashreplace")
    except PermissionError:
        host.miss("path", "forbidden")
    except OSError:
        pass
    return None


def _numbers(host: Host, path: str) -> dict[str, int]:
    return keyvalue.chosen(_text(host, path) or "", NAMES)


def _limit(text: str | None) -> Bytes | None:
    """A number alone in its file; `max`, or v1's largest number, is no limit."""
    if text is None or not keyvalue.whole(text.strip(), digits=19) or int(text) >= NO_LIMIT:
        return None
    return Bytes(int(text))


def _bytes(number: int | None) -> Bytes | None:
    return None if number is None else Bytes(number)


def _count(number: int | None) -> Count | None:
    return None if number is None else Count(number)


def _seconds(number: int | None, per_second: int) -> Seconds | None:
    return None if number is None else Seconds(number / per_second)


def _cpus(text: str | None) -> Count | None:
    return Count(len(cpulist.cpus(text))) if text and text.strip() else None
