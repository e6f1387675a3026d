"""/proc/PID/stat, see proc_pid_stat(5): `pid (command) state parent …`.

The command may hold anything, brackets and newlines included; it ends at the last closing bracket.
"""

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


def parse(line: bytes) -> ProcStat:
    """One line of the file."""
    opened, closed = line.find(b"("), line.rfind(b")")
    state, *rest = line[closed + 2 :].split(None, 22) or (b"",)
    try:
        # Any: what is a time and what a size is said by the fields of ProcStat. From field 4, the parent, on.
        numbers: list[Any] = [*map(int, rest[:21])]
        found = ProcStat(
            int(line[:opened]),
            line[opened + 1 : closed].decode("utf-8", "backslashreplace"),
            state.decode("ascii"),
            numbers[0],
            numbers[1],
            numbers[2],
            numbers[5],
            numbers[6] + numbers[8],
            numbers[10] / USER_HZ,
            numbers[11] / USER_HZ,
            (numbers[12] + numbers[13]) / USER_HZ,
            numbers[16],
            numbers[18] / USER_HZ,
            numbers[19],
            numbers[20],
        )
    except (ValueError, IndexError):
        raise ParseError(f"/proc/PID/stat: expected 24 fields and more, got {line[:120]!r}") from None
    # One field too few moves rsslim, 2**64 - 1, into a place that we send.
    if not -LIMIT < min(numbers) <= max(found.pid, *numbers) < LIMIT:
        raise ParseError(f"/proc/PID/stat: impossible numbers in {line[:120]!r}")
    return found
