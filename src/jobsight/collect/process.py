"""Processes, each with the job it belongs to.

Source: /proc/PID/{stat,statm,io,cgroup,uid_map,cmdline,environ,mountinfo}, see proc(5). The job is the one its
control group names; where none does it is the session, so that all that a login or a service started counts as one.

Most processes sleep, and are not read again: `jobsight.roster` knows them. Kernel threads and excluded users are
skipped by name; a process whose `stat` has not moved is not parsed. A collector started cold gives the same rows.
"""

from collections.abc import Iterator
from sys import intern
from typing import Any, NamedTuple

from jobsight.collector import ParseError, collector
from jobsight.containers import outside
from jobsight.exclusion import Unwanted
from jobsight.formats import cpulist, procstat
from jobsight.host import Host
from jobsight.rollup import rolled_up
from jobsight.roster import Roster, Seen
from jobsight.schema.record import counter, gauge, label, record
from jobsight.schema.units import Bytes, Count, Seconds
from jobsight.sleepers import REST

# More pages or bytes than any process has: a damaged line, not a number.
MOST = 2**50
# CPU time after which it is worth a look whether a process is in a container: most never come that far.
WORKING = 1.0
# Of a command line. Some are megabytes of file names.
ARGUMENTS = 1024

PTRACE = "CAP_SYS_PTRACE with CAP_DAC_READ_SEARCH (or root) shows the I/O of other people's processes"
IMAGE = "CAP_SYS_PTRACE with CAP_DAC_READ_SEARCH (or root) shows the images of other people's containers"
HIDDEN = "/proc is mounted with hidepid: CAP_SYS_PTRACE or the group named in its `gid=` shows everybody's"


@record
class Process:
    """One process since it started."""

    pid: int = label("The kernel's number for the process; reused after it ended.", grant=HIDDEN)
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
    memory_data: Bytes | None = gauge("Writable memory it asked for: data and stack, touched or not.", default=None)
    memory_virtual: Bytes = gauge("Address space.")
    read: Bytes | None = counter("Bytes read from storage, ended children included.", default=None, grant=PTRACE)
    written: Bytes | None = counter("Bytes sent to storage, ended children included.", default=None, grant=PTRACE)
    container: str | None = label(
        "What contains it: docker, podman, apptainer …; namespace if it has users of its own and nobody says whose.",
        default=None,
    )
    merged: Count | None = gauge(
        "Further processes in this row: same parent, job, user and command, no children. Only with `rollup`.",
        default=None,
    )
    arguments: str | None = label("The command line, shortened. Only where it is asked for.", default=None)
    container_id: str | None = label("The first twelve digits of its container's id.", default=None)
    container_name: str | None = label(
        "What its container is called; of Kubernetes' the namespace, the pod and the container.", default=None
    )
    image: str | None = label(
        "The image its container was made from: name, file or directory.", default=None, grant=IMAGE
    )


class Options(NamedTuple):
    """What to leave out, and what to add."""

    exclude_users: tuple[str, ...] = ()
    exclude_uids: tuple[str, ...] = ()
    """Ranges such as `0-999`: what the system runs. Containers' processes are none of that, whoever they run as."""
    exclude_commands: tuple[str, ...] = ()
    minimum_cpu: Seconds = Seconds(0)
    """Processes that have used less, children included, are left out."""
    rollup: bool = False
    """Identical processes of jobs with a control group in one row; that group has their exact total."""
    arguments: bool = False
    """Command lines may hold secrets and people's data."""


def check(options: Options) -> None:
    """ValueError for ranges that are none."""
    for text in options.exclude_uids:
        try:
            cpulist.spans(text)
        except ParseError:
            raise ValueError(f"exclude_uids: expected a range such as 0-999, got {text!r}") from None


@collector("proc/self/stat")
def process(host: Host, options: Options) -> Iterator[Process]:
    rows = every_one(host, options)
    if options.minimum_cpu:
        least = options.minimum_cpu
        rows = [row for row in rows if row.cpu_user + row.cpu_system + row.cpu_children >= least]
    yield from rolled_up(rows) if options.rollup else rows


def every_one(host: Host, options: Options) -> list[Process]:
    """All that is wanted, as the kernel lists them."""
    rows: list[Any] = []
    roster = host.keep(Roster)
    names = roster.begin(host, host.names("proc"))
    excluded = options.exclude_users, options.exclude_commands, options.exclude_uids
    unwanted = Unwanted(*excluded, arguments=options.arguments)
    met, turn, peek = roster.seen, roster.turn, host.peek
    for name in names:
        before = met.get(name)
        try:
            seen = before or roster.meet(host, name)
            if seen.asleep >= 0 and seen.turn != turn:
                if hash(peek(seen.asleep)) == seen.slept:
                    rows.append(seen.row)
                    continue
                roster.wake(host, name, seen)
            line = peek(seen.held) if seen.held >= 0 else host.piece(f"proc/{name}/stat")
            # Most processes sleep: for them this comparison is all.
            row = seen.row
            if hash(line) != seen.mark or seen.turn == turn:
                row = update(host, roster, name, seen, line, unwanted)
            else:
                settle(host, roster, name, seen)
        except PermissionError:
            # There, and not for us: /proc mounted with hidepid=1.
            roster.hidden = True
            roster.forget(host, name)
            continue
        except OSError:
            # Gone between listing and reading. If we knew it, its number may already be another's: look again, last.
            if before is not None:
                names.append(name)
            roster.forget(host, name)
            continue
        if row is not None:
            rows.append(row)
    if roster.hidden and not roster.torn:
        host.miss("pid", "forbidden")
    if roster.forbidden:
        host.miss("read", "forbidden")
        host.miss("written", "forbidden")
    if roster.sealed:
        host.miss("image", "forbidden")
    return rows


def update(host: Host, roster: Roster, name: str, seen: Seen, line: bytes, unwanted: Unwanted) -> Process | None:
    """A fresh row of a process that is new, moved, or whose turn it is."""
    try:
        stat = procstat.parse(line)
    except ParseError:
        # One torn line must not lose the others; an empty one is a process that is just going. The server must hear
        # that it is not gone, also where others are hidden all the time.
        host.miss("pid", "failed")
        roster.torn = True
        return None
    if stat.flags & procstat.KERNEL_THREAD:
        roster.skip(host, name, for_good=True)
        return None
    before: Process | None = seen.row  # type: ignore[assignment]
    due = seen.turn == roster.turn
    young = stat.started > roster.young
    same = before is not None and before.started == stat.started
    if before is not None and not same:
        # Another process under an old number: what was held of the first must not be asked about the second.
        roster.forget(host, name)
        seen = roster.meet(host, name)
    if due or young or not same:
        # Of the directory, not of a file in it: files of a program that changed its user belong to root.
        uid = host.uid(f"proc/{name}")
        roster.place(host, name, seen)
        if unwanted.has(host, uid, stat, contained=seen.contained):
            roster.skip(host, name, for_good=not young)
            return None
        seen.owner = outside(host, name, uid)
        if unwanted.arguments:
            seen.arguments = arguments(host, name)
    if not seen.contained and stat.user + stat.system >= WORKING:
        roster.search(host, name, seen, stat.command, again=due)
    # The address space too: memory that is asked for and not touched makes no fault.
    resting = (
        before is not None
        and same
        and (stat.faults, stat.resident, stat.virtual) == (seen.faults, seen.resident, before.memory_virtual)
    )
    row = row_of(host, roster, name, seen, stat, before if resting else None, due=due)
    seen.row, seen.faults, seen.resident = row, stat.faults, stat.resident
    roster.moved(seen)
    # A young one is looked at every time: it may be moved to its job's control group in its sleep.
    seen.mark = None if young else hash(line)
    return row


def settle(host: Host, roster: Roster, name: str, seen: Seen) -> None:
    """Another sample without a move: after some of them it may be left asleep."""
    seen.calm += 1
    row: Process = seen.row  # type: ignore[assignment]
    if seen.calm % REST == 0 and row.state == "S" and row.threads == 1 and seen.held >= 0:
        roster.rest(host, name, seen, row.parent)


def row_of(
    host: Host,
    roster: Roster,
    name: str,
    seen: Seen,
    stat: procstat.ProcStat,
    before: Process | None,
    *,
    due: bool,
) -> Process:
    """`before`: the row since which its memory has not moved."""
    anon, shared, data = (
        (before.memory_anon, before.memory_shared, before.memory_data) if before else memory(host, roster, name, seen)
    )
    read, written = traffic(host, roster, name, seen, due=due)
    group, inside = seen.group, seen.container
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
        memory_data=data,
        memory_virtual=stat.virtual,
        read=read,
        written=written,
        container=inside.runtime if inside else None,
        arguments=seen.arguments,
        container_id=inside.id or None if inside else None,
        container_name=inside.name or None if inside else None,
        image=inside.image or None if inside else None,
    )


def arguments(host: Host, name: str) -> str | None:
    """The command line with spaces between its words; None for those who have none or may not be read."""
    try:
        words = host.piece(f"proc/{name}/cmdline", ARGUMENTS)
    except OSError:
        return None
    return words.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "backslashreplace")[:ARGUMENTS] or None


def memory(host: Host, roster: Roster, name: str, seen: Seen) -> tuple[Bytes | None, Bytes | None, Bytes | None]:
    """Own and shared resident memory and data, from `size resident shared text lib data dt` in pages."""
    try:
        text, seen.held_statm = roster.look(host, f"proc/{name}/statm", seen.held_statm)
        words = text.split()
        resident, shared, data = int(words[1]), int(words[2]), int(words[5])
    except (OSError, ValueError, IndexError):
        return None, None, None
    if not (0 <= shared <= resident < MOST and 0 <= data < MOST):
        return None, None, None
    page = host.page()
    return Bytes((resident - shared) * page), Bytes(shared * page), Bytes(data * page)


def traffic(host: Host, roster: Roster, name: str, seen: Seen, *, due: bool) -> tuple[Bytes | None, Bytes | None]:
    """Bytes read from and written to storage, from lines `read_bytes: 4096` and, further down, `write_bytes: 0`."""
    if name in roster.forbidden and not due:
        return None, None
    roster.forbidden.discard(name)
    try:
        text, seen.held_io = roster.look(host, f"proc/{name}/io", seen.held_io)
        words = text.split()
        at = words.index(b"read_bytes:")
        read, written = int(words[at + 1]), int(words[words.index(b"write_bytes:", at) + 1])
        if 0 <= read < MOST and 0 <= written < MOST:
            return Bytes(read), Bytes(written)
    except PermissionError:
        roster.forbidden.add(name)
    except (OSError, ValueError, IndexError):
        pass
    return None, None
