"""What stands in a Sonar `sample`: the node's totals, and its processes by user and job.

Sizes are KiB, CPU times whole seconds, shares percent of one core. Zeros are left out.
"""

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from jobsight.compat import cpushare
from jobsight.compat.text import clean
from jobsight.formats.cgrouppath import CONTAINERS

KIB = 1024
# The kernel's clock tick: what all our CPU times are whole multiples of, though floats do not look it.
TICKS = 100
# 2020-01-01: where Sonar's epochs begin.
FIRST_EPOCH = 1_577_836_800
# Jobanalyzer keeps job numbers in 32 bits.
MOST_JOBS = 2**32

# What a disk must tell before it can be passed on; the record has not always kept all of it.
DISK = (
    *("device", "major", "minor", "reads", "reads_merged", "read", "read_time"),
    *("writes", "writes_merged", "written", "write_time", "queue", "busy_time", "queue_time"),
)
SECTOR = 512

Rows = Mapping[str, Sequence[Any]]


class Circumstance(NamedTuple):
    """What a process's entry depends on besides its row."""

    boot: int
    numbers: Mapping[tuple[str, str], int]
    """A job's number, where its name is not one."""
    before: cpushare.Sample | None
    now: cpushare.Sample


class Process(NamedTuple):
    """One row of ours. A column it lacks is None: records grow, and older agents do not send all we know today."""

    pid: int
    started: float
    parent: int
    process_group: int
    scheduler: str
    job: str
    owner: str
    command: str
    state: str
    threads: int
    cpu_user: float
    cpu_system: float
    cpu_children: float
    memory_anon: int | None
    memory_data: int | None
    read: int | None
    written: int | None
    container: str | None
    merged: int | None


def table(rows: Rows, names: Sequence[str]) -> Any:
    """The rows, each a tuple of the named columns."""
    if not rows:
        return iter(())
    length = len(next(iter(rows.values())))
    return zip(*(rows[name] if name in rows else repeat(None, length) for name in names), strict=True)


def totals(rows: Rows) -> dict[str, Sequence[Any]]:
    """The columns that the next sample will be compared with."""
    length = len(next(iter(rows.values()))) if rows else 0
    return {name: rows[name] if name in rows else (None,) * length for name in cpushare.COLUMNS}


def numbers(rows: Rows) -> dict[tuple[str, str], int]:
    """Job numbers by scheduler and name, from `allocation` rows."""
    return {
        (scheduler, job): int(number)
        for scheduler, job, number in table(rows, ("scheduler", "job", "number"))
        if number is not None and _is_number(str(number))
    }


def jobs(rows: Rows, circumstance: Circumstance) -> list[dict[str, Any]]:
    """One entry for each user and job; number 0 says that there is none, and such entries are never merged."""
    shares = cpushare.shares(circumstance.before, circumstance.now)
    found: list[dict[str, Any]] = []
    known: dict[tuple[str, int, int], dict[str, Any]] = {}
    for values in table(rows, Process._fields):
        row = Process._make(values)
        number, epoch = job_of(row, circumstance)
        user = user_of(row.owner)
        entry = known.get((user, number, epoch)) if number else None
        if entry is None:
            entry = {"job": number, "user": user, **_nonzero(epoch=epoch), "processes": []}
            found.append(entry)
            known[user, number, epoch] = entry
        share = shares[cpushare.Ident(row.pid, row.started)]
        entry["processes"].append(process(row, share, circumstance.now.lifetime(row.started)))
    return found


def job_of(row: Process, circumstance: Circumstance) -> tuple[int, int]:
    """Number and epoch. Slurm's number is the same on every node; any other is a process group of this boot."""
    if row.scheduler == "slurm":
        number = int(row.job) if _is_number(row.job) else circumstance.numbers.get((row.scheduler, row.job), 0)
        if number:
            return number, 0
    else:
        number = row.process_group if 0 < row.process_group < MOST_JOBS else 0
    # Never 0, which would say Slurm: a clock that was never set is before 2020.
    return number, max(1, circumstance.boot - FIRST_EPOCH)


def process(row: Process, share: float, lifetime: float) -> dict[str, Any]:
    """One process. `cpu_avg` is its own work alone; `cpu_time` and `cpu_util` count the children it waited for."""
    own = _ticks(row.cpu_user, row.cpu_system)
    used = own + _ticks(row.cpu_children)
    merged = row.merged or 0
    return _nonzero(
        resident_memory=(row.memory_anon or 0) // KIB,
        virtual_memory=(row.memory_data or 0) // KIB,
        cmd=clean(row.command) + (" <defunct>" if row.state == "Z" else ""),
        pid=row.pid,
        ppid=max(0, row.parent),
        in_container=row.container is not None or row.scheduler in CONTAINERS,
        num_threads=max(0, row.threads - 1 - merged),
        # Ticks are hundredths of a second: by the second they are percent.
        cpu_avg=number(round(cpushare.ratio(own, lifetime), 1)),
        cpu_util=number(round(100 * share, 3)),
        cpu_time=(used + TICKS // 2) // TICKS,
        data_read=-(-(row.read or 0) // KIB),
        data_written=-(-(row.written or 0) // KIB),
        rolledup=merged,
    )


def system(parts: Mapping[str, Rows]) -> dict[str, Any]:
    """The node's totals, as far as they are known."""
    found: dict[str, Any] = {}
    if cpu := parts.get("cpu"):
        found["cpus"] = cpus(cpu)
    if disk := parts.get("disk"):
        found |= _nonzero(disks=disks(disk))
    for total, available in table(parts.get("memory", {}), ("total", "available")):
        found |= _nonzero(used_memory=max(0, total - available) // KIB)
    names = ("load1", "load5", "load15", "runnable", "existing")
    for one, five, fifteen, runnable, existing in table(parts.get("load", {}), names):
        found |= {"load1": number(one), "load5": number(five), "load15": number(fifteen)}
        found |= _nonzero(runnable_entities=runnable, existing_entities=existing)
    return found


def cpus(rows: Rows) -> list[int]:
    """Busy seconds since boot, by the CPU's number; 0 for one that is switched off."""
    names = ("cpu", "user_time", "nice_time", "system_time", "interrupt_time")
    busy = {cpu: _ticks(*times) // TICKS for cpu, *times in table(rows, names)}
    return [busy.get(cpu, 0) for cpu in range(max(busy) + 1)]


def disks(rows: Rows) -> list[dict[str, Any]]:
    """The kernel's eleven columns in its order. Readers go by position, so without all of them a disk is left out."""
    found = []
    for device, major, minor, *columns in table(rows, DISK):
        if None in (major, minor, *columns):
            continue
        reads, reads_merged, read, reading, writes, writes_merged, written, writing, queue, busy, queued = columns
        stats = [reads, reads_merged, read // SECTOR, _milliseconds(reading)]
        stats += [writes, writes_merged, written // SECTOR, _milliseconds(writing)]
        stats += [queue, _milliseconds(busy), _milliseconds(queued)]
        found.append({"name": clean(device), "major": major, "minor": minor, "stats": stats})
    return found


def user_of(owner: str) -> str:
    """Our owner is the uid where nobody has that uid."""
    return f"_user_{owner}" if owner.isascii() and owner.isdecimal() else clean(owner)


def number(value: float) -> float:
    """Whole values without a fraction."""
    return int(value) if value == int(value) else value


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) < MOST_JOBS


def _ticks(*seconds: float) -> int:
    return sum(round(time * TICKS) for time in seconds)


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _nonzero(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}
