"""Exit records of tasks, see taskstats.rst of the kernel and <linux/taskstats.h>.

A netlink message of nested attributes; inside, a structure that grows at its end with its version. A task is a
thread: a process is all tasks of one group, and the last of them to go says so. Numbers are in the machine's own
byte order.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from jobsight.collector import ParseError

# nlmsghdr, then genlmsghdr, then attributes of (length, type), each padded to four bytes.
HEADER = struct.Struct("=IHHII")
ATTRIBUTE = struct.Struct("=HH")
START = 20
# Smaller message types are netlink's own: 2 answers a request.
FIRST_TYPE, ANSWER = 16, 2

FAMILY = 1
PID, STATS, OF_TASK = 1, 3, 4

# From version 12 (Linux 5.19) on a record tells its group and whether it was the last of it. Before, threads and
# processes look alike.
VERSION = 12
LAST = 0x20
# version, ac_flag, cpu_count, cpu_delay_total, cpu_run_virtual_total, ac_comm, ac_uid, ac_pid, ac_ppid, ac_etime,
# ac_utime, ac_stime, hiwater_rss, read_bytes, write_bytes, nvcsw, ac_tgid, ac_tgetime
FIELDS = struct.Struct("=H6xB7xQQ40xQ32s8xI4xII8xQQQ32xQ40xQQ8xQ88xI4xQ")
# What nearly always stands in front of them: the message's type; length and type of the task's attribute, of the
# pid's with the pid, of theirs.
USUAL = struct.Struct("=4xH14xHHHHIHH")
PLACE = 36

# More than a task ever has, in any unit here: damage, not a number.
MOST = 2**50
MICROSECONDS = 1_000_000
# Microseconds between two ticks of the clock on most machines.
TICK = 4000
# Two accounts of when a process started differ by the time a record waits, and by rounding.
SAME = 2.0
# Processes of which some threads ended.
GROUPS = 4096


class Task(NamedTuple):
    """One task that ended; after `merged`, all of a group so far. Times in microseconds, sizes in bytes."""

    group: int
    """Pid of the process."""
    leads: bool
    """Whether the command is the process's own: a thread may have another."""
    last: bool
    parent: int
    uid: int
    command: str
    elapsed: int
    """Since the process started."""
    cpu: int
    user: int
    """What it was doing whenever the clock ticked: not exact enough for a sum, but for the shares of it."""
    system: int
    read: int
    written: int
    peak: int
    """Of the memory that all tasks of the process share."""


class UnfitError(ParseError):
    """Records of this kernel do not say what we need, and none that follow will."""


def attributes(message: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Type, start and end of each attribute between `start` and `end`."""
    while start + 4 <= end:
        length, kind = ATTRIBUTE.unpack_from(message, start)
        if length < 4 or start + length > end:
            raise ParseError(f"netlink: expected an attribute of 4 to {end - start} bytes, got {length}")
        yield kind, start + 4, start + length
        start += (length + 3) & ~3


def answer(message: bytes) -> int | None:
    """The error number that answers a request, 0 if it was granted; None if the message is no answer."""
    if len(message) < START or HEADER.unpack_from(message)[1] != ANSWER:
        return None
    number: int = struct.unpack_from("=i", message, 16)[0]
    return -number


def family(message: bytes) -> int:
    """The message type that records have, from the answer to a question for it."""
    for kind, start, end in attributes(message, START, len(message)):
        if kind == FAMILY and end - start >= 2:
            number: int = struct.unpack_from("=H", message, start)[0]
            return number
    raise ParseError(f"netlink: expected the number of a family, got {message[:80].hex()}")


def task(message: bytes, tick: int = TICK) -> Task:
    """The task of one record of a machine with such a tick. What is said of its group beside it is left out: it holds
    no more than delays.
    """
    size = len(message)
    if size >= PLACE + FIELDS.size:
        # Half of the work would be to look for what is nearly always in the same place.
        kind, whole, outer, length, inner, pid, room, third = USUAL.unpack_from(message)
        usual = kind >= FIRST_TYPE and (outer, length, inner, third) == (OF_TASK, 8, PID, STATS)
        if usual and PLACE - 4 + room <= START + whole <= size:
            return _fields(message, PLACE, PLACE - 4 + room, pid, tick)
    if size < START or HEADER.unpack_from(message)[1] < FIRST_TYPE:
        raise ParseError(f"taskstats: expected a record, got {message[:20].hex()}")
    for kind, start, end in attributes(message, START, size):
        if kind == OF_TASK:
            return _task(message, start, end, tick)
    raise ParseError(f"taskstats: expected the record of a task, got {message[:40].hex()}")


def _task(message: bytes, start: int, end: int, tick: int) -> Task:
    pid = None
    for kind, begin, stop in attributes(message, start, end):
        if kind == PID and stop - begin >= 4:
            (pid,) = struct.unpack_from("=I", message, begin)
        elif kind == STATS:
            return _fields(message, begin, stop, pid, tick)
    raise ParseError(f"taskstats: expected a pid and its statistics, got {message[start : start + 40].hex()}")


def _fields(message: bytes, start: int, end: int, pid: int | None, tick: int) -> Task:
    if end - start < 2:
        raise ParseError("taskstats: expected a version, got nothing")
    (version,) = struct.unpack_from("=H", message, start)
    if version < VERSION or end - start < FIELDS.size:
        raise UnfitError(f"taskstats: expected version {VERSION} or later, got {version} of {end - start} bytes")
    (_, flags, turns, waited, run, command, uid, own, parent, lived, user, system, peak, read, written, sleeps, group,
     elapsed) = FIELDS.unpack_from(message, start)  # fmt: skip
    if own != pid:
        # Version 15 put new fields between the old ones: everything after them stands elsewhere.
        raise UnfitError(f"taskstats: version {version} has no pid {pid} in its place, got {own}")
    if max(run, waited, lived, user, system, peak, read, written, elapsed) >= MOST:
        raise ParseError(f"taskstats: impossible numbers of pid {pid}")
    return Task(
        group,
        group == pid,
        bool(flags & LAST),
        parent,
        uid,
        command.partition(b"\0")[0].decode("utf-8", "backslashreplace"),
        elapsed,
        # A kernel built without the account of turns has samples only.
        cpu_time(run // 1000, turns, waited // 1000, sleeps, lived, tick) if turns else user + system,
        user,
        system,
        read,
        written,
        peak * 1024,
    )


def cpu_time(run: int, turns: int, waited: int, sleeps: int, lived: int, tick: int) -> int:
    """CPU time of a task until it ended; all in microseconds but its turns on a CPU and how often it slept.

    The time it was seen running is exact up to the last tick of the clock or the beginning of its last turn. For a
    short task that is next to nothing, so the rest counts. A task that never slept ran whenever it did not wait for a
    CPU. Of others the last turn is taken to have been as long as those before it.
    """
    rest = max(0, min(lived - waited - run, tick))
    if sleeps:
        rest = min(rest, tick // 2, run // max(1, turns - 1))
    return run + rest


def merged(before: Task, now: Task) -> Task:
    """Two parts of one process as one; who ended last knows best whose child it is, the leader what it is called."""
    return now._replace(
        command=now.command if now.leads or not before.leads else before.command,
        leads=now.leads or before.leads,
        cpu=before.cpu + now.cpu,
        user=before.user + now.user,
        system=before.system + now.system,
        read=before.read + now.read,
        written=before.written + now.written,
        peak=max(before.peak, now.peak),
    )


class Groups:
    """Puts the threads of each process together."""

    def __init__(self) -> None:
        self.lost = 0
        self._parts: dict[int, tuple[float, Task]] = {}

    def whole(self, task: Task, now: float) -> Task | None:
        """The process, when this was the last of its threads. `now` is when the record was read."""
        before = self._parts.pop(task.group, None)
        if before is None and task.last:
            return task
        started = now - task.elapsed / MICROSECONDS
        if before is not None:
            if abs(before[0] - started) < SAME:
                task = merged(before[1], task)
            else:
                self.lost += 1  # of an earlier process of that number, whose last record never came
        if task.last:
            return task
        if len(self._parts) >= GROUPS:
            del self._parts[next(iter(self._parts))]
            self.lost += 1
        self._parts[task.group] = (started, task)
        return None
