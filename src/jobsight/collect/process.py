"""Processes, each with the job it belongs to.

Source: /proc/PID/{stat,statm,io,cgroup}, see proc(5). The job is the one its control group names; on a machine
with no batch system it is the session, so that everything a login or a service started counts as one.

The kernel's work on /proc is most of the cost, so what is known is not read again: kernel threads and excluded
users are skipped by name; `stat` is kept open; a process whose line has not moved is not parsed, and its other
files are read again only every now and then. A collector started cold gives the same rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from jobsight.collector import ParseError, collector
from jobsight.formats import cgrouppath, procstat
from jobsight.host import Host
from jobsight.schema.record import counter, gauge, label, record
from jobsight.schema.units import Bytes, Count, Seconds

# Every so many samples a process is looked at anew: it may have changed its user or its control group, or moved
# bytes without using a tick of CPU time. The turns are spread by pid.
TURN = 16
# Each held file pins 4.4 KiB of kernel memory.
HELD = 4096
# A job's first process is started outside the job's control group and moved there: look again while it is young.
YOUTH = 60.0

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


@dataclass(frozen=True)
class Options:
    """What to leave out."""

    exclude_users: tuple[str, ...] = ()
    exclude_commands: tuple[str, ...] = ()


class Seen:
    """One process as it was last seen."""

    __slots__ = ("group", "held", "line", "owner", "row")

    def __init__(self, held: int, owner: str, group: cgrouppath.JobGroup | None) -> None:
        self.held = held
        self.owner = owner
        self.group = group
        self.line = b""
        self.row: Process | None = None


class Known:
    """All processes as they were last seen, by the name of their directory."""

    def __init__(self) -> None:
        self.seen: dict[str, Seen] = {}
        self.skipped: set[str] = set()
        self.forbidden: set[str] = set()
        self.held = 0
        self.room = -1
        self.turn = 0
        self.young = 0.0


@collector("proc/self/stat")
def process(host: Host, options: Options) -> Iterator[Process]:
    known = host.keep(Known)
    known.turn += 1
    known.young = host.uptime() - YOUTH
    if known.room < 0:
        known.room = min(HELD, host.room())
    names = set(host.names("proc"))
    for gone in known.seen.keys() - names:
        forget(host, known, gone)
    known.skipped &= names
    if known.turn % TURN == 0:
        known.skipped.clear()
    names -= known.skipped
    for name in names:
        row = look(host, known, name, options)
        if row is not None:
            yield row
    if known.forbidden:
        host.miss("read", "forbidden")
        host.miss("written", "forbidden")


def look(host: Host, known: Known, name: str, options: Options) -> Process | None:
    """One process now: its row, or None if it is gone or left out."""
    met = known.seen.get(name)
    try:
        seen = met or meet(host, known, name)
        if seen is None:
            return None
        line = host.peek(seen.held) if seen.held >= 0 else host.read_bytes(f"proc/{name}/stat")
        due = (known.turn + int(name)) % TURN == 0
        if line == seen.line and not due:
            return seen.row
        return update(host, known, name, seen, line, options, due=due)
    except OSError:
        # Gone between listing and reading; if we knew it, its number may already be another's.
        forget(host, known, name)
        return look(host, known, name, options) if met else None


def meet(host: Host, known: Known, name: str) -> Seen | None:
    """A name not seen before; None if it is no process."""
    if not (name.isascii() and name.isdecimal()):
        known.skipped.add(name)
        return None
    held = -1
    if known.held < known.room:
        held = host.hold(f"proc/{name}/stat")
        known.held += 1
    seen = known.seen[name] = Seen(held, "", None)
    identify(host, name, seen)
    return seen


def identify(host: Host, name: str, seen: Seen) -> None:
    """Owner and control group. Of the directory, not of a file in it: files of a program that changed its user
    belong to root.
    """
    seen.owner = host.user(host.uid(f"proc/{name}"))
    seen.group = cgrouppath.job_of_process(host.glimpse(f"proc/{name}/cgroup") or "")


def forget(host: Host, known: Known, name: str) -> None:
    seen = known.seen.pop(name, None)
    known.forbidden.discard(name)
    if seen is not None and seen.held >= 0:
        host.let_go(seen.held)
        known.held -= 1


def update(
    host: Host, known: Known, name: str, seen: Seen, line: bytes, options: Options, *, due: bool
) -> Process | None:
    """A fresh row of a process that moved or whose turn it is."""
    try:
        stat = procstat.parse(line)
    except ParseError:
        # One torn line must not lose the others; an empty one is a process that is just going.
        host.miss("pid", "failed")
        return None
    reused = seen.row is not None and seen.row.started != stat.started
    if due or reused or stat.started > known.young:
        identify(host, name, seen)
    if (
        stat.flags & procstat.KERNEL_THREAD
        or seen.owner in options.exclude_users
        or stat.command in options.exclude_commands
    ):
        forget(host, known, name)
        known.skipped.add(name)
        return None
    anon, shared = memory(host, name)
    read, written = traffic(host, known, name, due=due)
    group = seen.group
    seen.line = line
    seen.row = Process(
        pid=stat.pid,
        started=Seconds(stat.started),
        parent=stat.parent,
        session=stat.session,
        process_group=stat.process_group,
        scheduler=group.scheduler if group else "session",
        job=group.job if group else str(stat.session or stat.process_group or stat.pid),
        owner=seen.owner,
        command=stat.command,
        state=stat.state,
        threads=Count(stat.threads),
        cpu_user=Seconds(stat.user),
        cpu_system=Seconds(stat.system),
        cpu_children=Seconds(stat.children),
        memory_anon=anon,
        memory_shared=shared,
        memory_virtual=Bytes(stat.virtual),
        read=read,
        written=written,
    )
    return seen.row


def memory(host: Host, name: str) -> tuple[Bytes | None, Bytes | None]:
    """Own and shared resident memory, from `size resident shared …` in pages."""
    match (host.glimpse(f"proc/{name}/statm") or "").split(None, 3):
        case [_, resident, shared, *_] if resident.isdecimal() and shared.isdecimal():
            page = host.page()
            return Bytes((int(resident) - int(shared)) * page), Bytes(int(shared) * page)
    return None, None


def traffic(host: Host, known: Known, name: str, *, due: bool) -> tuple[Bytes | None, Bytes | None]:
    """Bytes read from and written to storage, from lines `read_bytes: 4096`."""
    if name in known.forbidden and not due:
        return None, None
    known.forbidden.discard(name)
    try:
        words = host.read_bytes(f"proc/{name}/io").split()
        return Bytes(int(words[words.index(b"read_bytes:") + 1])), Bytes(int(words[words.index(b"write_bytes:") + 1]))
    except PermissionError:
        known.forbidden.add(name)
    except (OSError, ValueError, IndexError):
        pass
    return None, None
