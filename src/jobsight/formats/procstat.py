"""/proc/PID/stat, see proc_pid_stat(5): `pid (command) state parent …`.

The command may hold anything, brackets and newlines included; it ends at the last closing bracket.
"""

from typing import NamedTuple

from jobsight.collector import ParseError

USER_HZ = 100
# PF_KTHREAD in the flags field: the kernel's own threads.
KERNEL_THREAD = 0x00200000


class ProcStat(NamedTuple):
    """The fields we use, times in seconds."""

    pid: int
    command: str
    state: str
    parent: int
    process_group: int
    session: int
    flags: int
    user: float
    system: float
    children: float
    threads: int
    started: float
    virtual: int
    resident: int
    """In pages."""


def parse(line: bytes) -> ProcStat:
    """One line of the file."""
    opened, closed = line.find(b"("), line.rfind(b")")
    rest = line[closed + 2 :].split(None, 22)
    try:
        return ProcStat(
            int(line[:opened]),
            line[opened + 1 : closed].decode("utf-8", "backslashreplace"),
            rest[0].decode("ascii"),
            int(rest[1]),
            int(rest[2]),
            int(rest[3]),
            int(rest[6]),
            int(rest[11]) / USER_HZ,
            int(rest[12]) / USER_HZ,
            (int(rest[13]) + int(rest[14])) / USER_HZ,
            int(rest[17]),
            int(rest[19]) / USER_HZ,
            int(rest[20]),
            int(rest[21]),
        )
    except (ValueError, IndexError):
        raise ParseError(f"/proc/PID/stat: expected 24 fields and more, got {line[:120]!r}") from None
