"""Processes, each with the job it belongs to.

Source: /proc/PID/{stat,statm,io,cgroup}, see proc(5). The job is the one its control group names; on a machine
with no batch system it is the session, so that everything a login or a service started counts as one.

The kernel's work on /proc is most of the cost, so what is known is not read again: kernel threads and excluded
users are skipped by name; `stat` is kept open; a process whose line has not moved is not parsed, and its other
files are read again only every now and then. A collector started cold gives the same rows.
"""

from collections.abc import Iterator
from errno import EMFILE, ENFILE
from sys import intern
from typing import NamedTuple

from jobsight.collector import ParseError, collector
from jobsight.formats import cgrouppath, procstat
from jobsight.host import Host
from jobsight.schema.record import counter, gauge, label, record
from jobsight.schema.units import Bytes, Count, Seconds

# Every so many samples a process is looked at anew: it may have changed its user or its control group, or moved
# bytes without using a tick of CPU time. Both are rare once it is no longer young. The turns are spread by pid. A
# look anew costs ten times a glance: every sixteenth sample it would be a sixth of all.
TURN = 64
# Each held file pins 4.4 KiB of kernel memory.
HELD = 4096
# A job's first process is started as root and outside the job's control group: look again while it is young.
YOUTH = 60.0
# One line for each of a dozen hierarchies, with paths that containers make long.
CGROUP = 16384

# More pages or bytes than any process has: a damaged line, not a number.
MOST = 2**50

PTRACE = "CAP_SYS_PTRACE (or root) shows the I/O of other people's processes"


@record
class Process:
    """One process since it started."""

    pid: int = label("The kernel's number for the process; reused after it ended.")
    started: Seconds = label("Start after boot. With pid and boot it names the process for ever.")
    parent: int = label("Pid of the parent.")
    session: int = label("Session: shared by all that one login or daemon started.")
    process_group: int = label("Process group: one pipeline of a shell.")
    scheduler: str = label("Who named the job: slurm, docker, podman, systemd, or session if nobody did.")
    job: str = label("The job's id there.")
    owner: str = label("The user it runs as.")
    command: str = label("The command's name, at most 15 bytes; bytes that are not UTF-8 as \\xNN.")
    state: str = gauge("R runs, S sleeps, D waits for a device, Z is dead and not yet reaped, T is stopped.")
    threads: Count = gauge("Threads.")
    cpu_user: Seconds = counter("CPU time in the program.")
    cpu_system: Seconds = counter("CPU time in the kernel for it.")
    cpu_children: Seconds = counter("CPU time of its children that ended and were waited for.")
    memory_anon: Bytes | None = gauge("Memory of its own: resident and not shared with a file.", default=None)
    memory_shared: Bytes | None = gauge("Resident memory shared with files and other processes.", default=None)
    memory_virtual: Bytes = gauge("Address space.")
    read: Bytes | None = counter("Bytes read from storage, ended children included.", default=None, grant=PTRACE)
    written: Bytes | None = counter("Bytes sent to storage, ended children included.", default=None, grant=PTRACE)


class Options(NamedTuple):
    """What to leave out."""

    exclude_users: tuple[str, ...] = ()
    exclude_commands: tuple[str, ...] = ()


class Seen:
    """One process as it was last seen."""

    __slots__ = ("group", "held", "line", "owner", "row", "turn")

    def __init__(self, held: int, turn: int) -> None:
        self.held = held
        self.turn = turn
        self.owner = ""
        self.group: cgrouppath.JobGroup | None = None
        self.line: bytes | None = None
        self.row: Process | None = None


class Known:
    """All processes as they were last seen, by the name of their directory."""

    def __init__(self) -> None:
        self.seen: dict[str, Seen] = {}
        self.skipped: set[str] = set()
        self.forbidden: set[str] = set()
        self.groups: dict[bytes, cgrouppath.JobGroup | None] = {}
        self.held = 0
        self.room = -1
        self.turn = 0
        self.young = 0.0


@collector("proc/self/stat")
def process(host: Host, options: Options) -> Iterator[Process]:
    known = host.keep(Known)
    # The kernel lists by pid, and so do we: neighbours are alike, which packs a message better.
    names = host.names("proc")
    begin(host, known, set(names))
    met, skipped, turn, peek = known.seen, known.skipped, known.turn, host.peek
    for name in names:
        if name in skipped:
            continue
        before = met.get(name)
        try:
            seen = before or meet(host, known, name)
            if seen is None:
                continue
            line = peek(seen.held) if seen.held >= 0 else host.piece(f"proc/{name}/stat")
            # Most processes sleep: for them this comparison is all.
            row = seen.row
            if line != seen.line or seen.turn == turn:
                row = update(host, known, name, seen, line, options)
        except PermissionError:
            # There, and not for us: /proc mounted with hidepid.
            host.miss("pid", "forbidden")
            forget(host, known, name)
            continue
        except OSError:
            # Gone between listing and reading. If we knew it, its number may already be another's: look again, last.
            if before is not None:
                names.append(name)
            forget(host, known, name)
            continue
        if row is not None:
            yield row
    if known.forbidden:
        host.miss("read", "forbidden")
        host.miss("written", "forbidden")


def begin(host: Host, known: Known, names: set[str]) -> None:
    """Another turn: forget who is gone; now and then doubt what was skipped."""
    known.turn = (known.turn + 1) % TURN
    known.young = host.uptime() - YOUTH
    if known.room < 0:
        known.room = min(HELD, host.room())
    for gone in known.seen.keys() - names:
        forget(host, known, gone)
    known.skipped &= names
    if known.turn == 0:
        known.skipped.clear()
        known.groups.clear()


def meet(host: Host, known: Known, name: str) -> Seen | None:
    """A name not seen before; None if it is no process."""
    if not (name.isascii() and name.isdecimal()):
        known.skipped.add(name)
        return None
    seen = known.seen[name] = Seen(hold(host, known, name), int(name) % TURN)
    return seen


def hold(host: Host, known: Known, name: str) -> int:
    """Its `stat`, kept open; -1 if enough are."""
    if known.held >= known.room:
        return -1
    try:
        held = host.hold(f"proc/{name}/stat")
    except OSError as error:
        if error.errno not in (EMFILE, ENFILE):
            raise
        known.room = known.held  # others need files too: these are all we get
        return -1
    known.held += 1
    return held


def forget(host: Host, known: Known, name: str) -> None:
    seen = known.seen.pop(name, None)
    known.forbidden.discard(name)
    if seen is not None and seen.held >= 0:
        host.let_go(seen.held)
        known.held -= 1


def update(host: Host, known: Known, name: str, seen: Seen, line: bytes, options: Options) -> Process | None:
    """A fresh row of a process that is new, moved, or whose turn it is."""
    try:
        stat = procstat.parse(line)
    except ParseError:
        # One torn line must not lose the others; an empty one is a process that is just going.
        host.miss("pid", "failed")
        return None
    due = seen.turn == known.turn
    young = stat.started > known.young
    kernel = bool(stat.flags & procstat.KERNEL_THREAD)
    same = seen.row is not None and seen.row.started == stat.started
    if not kernel and (due or young or not same):
        identify(host, known, name, seen)
    if kernel or seen.owner in options.exclude_users or stat.command in options.exclude_commands:
        forget(host, known, name)
        if kernel or not young:
            known.skipped.add(name)
        return None
    resting = same and not due and procstat.paging(seen.line or b"") == procstat.paging(line)
    seen.row = row_of(host, known, name, seen, stat, resting=resting, due=due)
    # A young one is looked at every time: it may be moved to its job's control group in its sleep.
    seen.line = None if young else line
    return seen.row


def identify(host: Host, known: Known, name: str, seen: Seen) -> None:
    """Owner and control group. Of the directory, not of a file in it: files of a program that changed its user
    belong to root.
    """
    seen.owner = host.user(host.uid(f"proc/{name}"))
    try:
        text = host.piece(f"proc/{name}/cgroup", CGROUP)
    except OSError:
        text = b""
    if text not in known.groups:
        known.groups[text] = cgrouppath.job_of_process(text.decode("utf-8", "backslashreplace"))
    seen.group = known.groups[text]


def row_of(
    host: Host, known: Known, name: str, seen: Seen, stat: procstat.ProcStat, *, resting: bool, due: bool
) -> Process:
    """`resting`: its memory has not moved since the last row."""
    before = seen.row if resting else None
    anon, shared = (before.memory_anon, before.memory_shared) if before else memory(host, name)
    read, written = traffic(host, known, name, due=due)
    group = seen.group
    return Process(
        pid=stat.pid,
        started=stat.started,
        parent=stat.parent,
        session=stat.session,
        process_group=stat.process_group,
        scheduler=group.scheduler if group else "session",
        # Many processes share a job and a command; one text for all keeps a large machine's state small.
        job=group.job if group else intern(str(stat.session or stat.process_group or stat.pid)),
        owner=seen.owner,
        command=intern(stat.command),
        state=stat.state,
        threads=stat.threads,
        cpu_user=stat.user,
        cpu_system=stat.system,
        cpu_children=stat.children,
        memory_anon=anon,
        memory_shared=shared,
        memory_virtual=stat.virtual,
        read=read,
        written=written,
    )


def memory(host: Host, name: str) -> tuple[Bytes | None, Bytes | None]:
    """Own and shared resident memory, from `size resident shared …` in pages."""
    try:
        _, resident, shared = map(int, host.piece(f"proc/{name}/statm").split(None, 3)[:3])
    except (OSError, ValueError):
        return None, None
    if not 0 <= shared <= resident < MOST:
        return None, None
    page = host.page()
    return Bytes((resident - shared) * page), Bytes(shared * page)


def traffic(host: Host, known: Known, name: str, *, due: bool) -> tuple[Bytes | None, Bytes | None]:
    """Bytes read from and written to storage, from lines `read_bytes: 4096`."""
    if name in known.forbidden and not due:
        return None, None
    known.forbidden.discard(name)
    try:
        words = host.piece(f"proc/{name}/io").split()
        read = int(words[words.index(b"read_bytes:") + 1])
        written = int(words[words.index(b"write_bytes:") + 1])
        if 0 <= read < MOST and 0 <= written < MOST:
            return Bytes(read), Bytes(written)
    except PermissionError:
        known.forbidden.add(name)
    except (OSError, ValueError, IndexError):
        pass
    return None, None
