"""/proc/PID/stat, see proc_pid_stat(5): `pid (command) state parent …`.

The command may hold anything, brackets and newlines included; it ends at the last closing bracket.
"""

from operator import itemgetter
from typing import Any, NamedTuple

from jobsight.collector import ParseError
from jobsight.schema.units import Bytes, Count, Seconds

USER_HZ = 100
# Larger than any true value of a field we use, small enough for a table.
LIMIT = 2**62
# PF_KTHREAD in the flags field: the kernel's own threads.
KERNEL_THREAD = 0x00200000


class ProcStat(NamedTuple):
    """The fields we use."""

    pid: int
    command: str
    state: str
    parent: int
    process_group: int
    session: int
    flags: int
    faults: int
    """Page faults, minor and major: they move when memory does."""
    user: Seconds
    system: Seconds
    children: Seconds
    threads: Count
    started: Seconds
    virtual: Bytes
    resident: int
    """In pages."""


# Of the words after the command: state, then numbers from field 4, the parent, on.
_used = itemgetter(1, 2, 3, 6, 7, 9, 11, 12, 13, 14, 17, 19, 20, 21)


def parse(line: bytes) -> ProcStat:
    """One line of the file. A few microseconds, most of them in `int`: what is not used is not converted."""
    opened, closed = line.find(b"("), line.rfind(b")")
    try:
        words = line[closed + 2 :].decode("ascii").split(None, 22)
        # Any: what is a time and what a size is said by the fields of ProcStat.
        numbers: tuple[Any, ...] = tuple(map(int, _used(words)))
        pid = int(line[:opened])
    except (ValueError, IndexError):
        raise ParseError(f"/proc/PID/stat: expected 24 fields and more, got {line[:120]!r}") from None
    # One field too few moves rsslim, 2**64 - 1, into a place that we send.
    if not (0 <= pid < LIMIT and min(numbers) > -LIMIT and max(numbers) < LIMIT):
        raise ParseError(f"/proc/PID/stat: impossible numbers in {line[:120]!r}")
    parent, process_group, session, flags, minor, major, user, system, gone_user, gone_system, *rest = numbers
    threads, started, virtual, resident = rest
    return ProcStat(
        pid,
        line[opened + 1 : closed].decode("utf-8", "backslashreplace"),
        words[0],
        parent,
        process_group,
        session,
        flags,
        minor + major,
        user / USER_HZ,
        system / USER_HZ,
        (gone_user + gone_system) / USER_HZ,
        threads,
        started / USER_HZ,
        virtual,
        resident,
    )
