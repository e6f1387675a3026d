"""Processes that ended, counted one by one: also those that lived too short to be sampled.

Source: the kernel's exit records, see `drivers.taskstats`, which are listened to between runs; on a recorded machine
`exits.hex`, one record a line. Whose a process was is told by `jobsight.lineage`; what cannot be told is counted as
unknown. The first run only begins to listen.
"""

from collections.abc import Iterator
from errno import EAFNOSUPPORT, EINVAL, ENOENT, EPROTONOSUPPORT

from jobsight.collect.agent import Tally
from jobsight.collect.process import Process
from jobsight.collector import ParseError, collector
from jobsight.drivers.taskstats import Listener, Source, tick
from jobsight.formats import taskstats
from jobsight.formats.taskstats import MICROSECONDS, Task
from jobsight.host import Host
from jobsight.lineage import UNKNOWN, Job, Lineage, Member, Sample
from jobsight.roster import Roster
from jobsight.schema.record import counter, gauge, label, record
from jobsight.schema.units import Bytes, Count, Seconds

CPUS = "sys/devices/system/cpu/possible"
RECORDED = "exits.hex"
NET_ADMIN = "CAP_NET_ADMIN shows processes that live too short to be sampled"
# A kernel without exit records, or a container that is not shown them.
NONE_HERE = (ENOENT, EINVAL, EAFNOSUPPORT, EPROTONOSUPPORT)

# Commands that come when there are more rows are counted as one.
ROWS = 1024
REST = "…"
# Seconds; a row that held still for so long has been sent often enough.
IDLE = 600.0
# The kernel's own threads are its children.
KERNEL = 2


@record
class Exited:
    """Processes of one job, owner and command that ended since the agent began to count them."""

    scheduler: str = label("Who named the job, as for processes; unknown where nobody can tell whose they were.")
    job: str = label("The job's id there.")
    owner: str = label("The user they ran as.")
    command: str = label("The command's name, at most 15 bytes; … for those that came when there were too many.")
    processes: Count = counter("Processes that ended.", grant=NET_ADMIN)
    cpu_user: Seconds = counter("CPU time in the programs, all threads.")
    cpu_system: Seconds = counter("CPU time in the kernel for them, all but the taking down.")
    read: Bytes | None = counter("Bytes read from storage; of each thread whole KiB.", default=None)
    written: Bytes | None = counter("Bytes sent to storage; of each thread whole KiB.", default=None)
    memory_peak: Bytes | None = gauge("The most resident memory that any one of them had.", default=None)


class Total:
    """What the processes of one row have used, in microseconds and bytes."""

    __slots__ = ("in_user", "peak", "processes", "read", "sampled", "seen", "system", "user", "written")

    def __init__(self) -> None:
        self.processes = self.user = self.system = self.read = self.written = self.peak = 0
        # Of the clock's samples: one process may have none, all of a row give the share.
        self.sampled = self.in_user = 0
        self.seen = 0.0


class Account:
    """All processes that ended, by row: scheduler, job, user and command."""

    def __init__(self, tick: int = taskstats.TICK) -> None:
        self.totals: dict[tuple[str, str, int, str], Total] = {}
        self.lineage = Lineage()
        self._groups = taskstats.Groups()
        self._damaged = 0
        self._tick = tick

    @property
    def lost(self) -> int:
        """Records that came and could not be counted."""
        return self._damaged + self._groups.lost

    def take(self, host: Host, messages: list[bytes], gap: bool) -> None:
        """Count what a batch of records says. UnfitError if this kernel's say too little."""
        now = host.uptime()
        if gap:
            self.lineage.doubt()
        ended = []
        for message in messages:
            try:
                task = taskstats.task(message, self._tick)
            except taskstats.UnfitError:
                raise
            except ParseError:
                self._damaged += 1
                continue
            if task.parent != KERNEL and (whole := self._groups.whole(task, now)) is not None:
                ended.append(whole)
        for job, process in self.lineage.placed(host, ended, now):
            self._add(job, process, now)

    def _add(self, job: Job, process: Task, now: float) -> None:
        total = self.totals.get((*job, process.uid, process.command)) or self._new(job, process)
        total.processes += 1
        total.in_user += process.user
        total.sampled += process.user + process.system
        user = process.cpu * total.in_user // total.sampled if total.sampled else process.cpu
        total.user += user
        total.system += process.cpu - user
        total.read += process.read
        total.written += process.written
        total.peak = max(total.peak, process.peak)
        total.seen = now

    def _new(self, job: Job, process: Task) -> Total:
        """Where there are too many, older rows stay as they are: what was sent of one is not counted in another."""
        key = (*job, process.uid, process.command)
        if len(self.totals) >= ROWS:
            key = (*job, process.uid, REST)
        if len(self.totals) >= 2 * ROWS:
            key = (*UNKNOWN, 0, REST)
        return self.totals.setdefault(key, Total())

    def rows(self, host: Host) -> list[Exited]:
        """All rows. Those that held still for long are then dropped, and begin anew if they come back."""
        moved = host.exists("proc/self/io")  # whether this kernel counts I/O
        found = [
            Exited(
                scheduler=scheduler,
                job=job,
                owner=host.user(uid),
                command=command,
                processes=Count(total.processes),
                cpu_user=Seconds(total.user / MICROSECONDS),
                cpu_system=Seconds(total.system / MICROSECONDS),
                read=Bytes(total.read) if moved else None,
                written=Bytes(total.written) if moved else None,
                memory_peak=Bytes(total.peak) if total.peak else None,
            )
            for (scheduler, job, uid, command), total in self.totals.items()
        ]
        old = host.uptime() - IDLE
        for key in [key for key, total in self.totals.items() if total.seen < old]:
            del self.totals[key]
        return found


class Watch:
    """What lives as long as the host does."""

    def __init__(self) -> None:
        self.account = Account(tick())
        self.listener: Listener | None = None
        self.told = 0


@collector(CPUS, RECORDED)
def exited(host: Host) -> Iterator[Exited]:
    if not host.live:
        yield from recorded(host)
        return
    watch = host.keep(Watch)
    account, listener = watch.account, watch.listener
    if listener is None or not listener.listens():
        host.miss("processes", listen(host, watch))
        return
    # Not under the lock: to ask a directory for a name may take long.
    for key in list(account.totals):
        host.user(key[2])
    sample = sampled(host.keep(Roster))
    with listener.lock:
        account.lineage.look_around(sample)
        found, lost = account.rows(host), listener.dropped + account.lost
    if lost > watch.told:
        host.miss("processes", "failed")
    watch.told = host.keep(Tally).exits_lost = lost
    yield from found


def listen(host: Host, watch: Watch) -> str:
    """Begin to listen, and say why nothing was counted until now."""
    before = watch.listener
    if before is not None and before.unfit:
        return "absent"
    try:
        source = Source(host.read(CPUS).strip())
    except PermissionError:
        return "forbidden"
    except OSError as error:
        if error.errno not in NONE_HERE:
            raise
        return "absent"
    watch.listener = Listener(host, source, watch.account.take)
    return "absent" if before is None else "failed"


def sampled(roster: Roster) -> Sample:
    # The list is made in one go: a sample that runs late, in another thread, cannot get between.
    rows = [seen.row for seen in list(roster.seen.values())]
    return Sample(
        Member(row.pid, row.started, row.parent, (row.scheduler, row.job)) for row in rows if isinstance(row, Process)
    )


def recorded(host: Host) -> list[Exited]:
    """Rows of a machine whose records were kept."""
    if not host.exists(RECORDED):
        host.miss("processes", "absent")
        return []
    lines, account = host.read(RECORDED).split(), Account()
    try:
        account.take(host, [bytes.fromhex(line) for line in lines], gap=False)
        account.take(host, [], gap=False)
    except taskstats.UnfitError:
        host.miss("processes", "absent")
        return []
    except ValueError:
        raise ParseError(f"{RECORDED}: expected lines of hexadecimal digits, got {lines[:1]!r:.120}") from None
    if account.lost:
        host.miss("processes", "failed")
    return account.rows(host)
