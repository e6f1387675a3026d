"""The roster of processes: who is there, whose they are, which job they belong to.

The kernel's work on /proc is most of a sampler's cost, so what is known is not read again: `stat` is kept open, and
user and control group are looked up once a life and then only now and then. All of it only saves reading: an empty
roster leads to the same rows.
"""

from contextlib import suppress
from errno import EMFILE, ENFILE

from jobsight.containers import grouped, looked_for
from jobsight.formats import cgrouppath
from jobsight.formats.container import Container, of_cgroup
from jobsight.host import Host
from jobsight.sleepers import Sleepers, runs

# Every so many samples a process is looked at anew: it may have changed its user or its control group, or moved
# bytes without using a tick of CPU time. Both are rare once it is no longer young. The turns are spread by pid. A
# look anew costs six times a glance: every sixteenth sample it would be a third of all.
TURN = 64
# Each held file pins 4.4 KiB of kernel memory.
HELD = 4096
# A job's first process is started as root and outside the job's control group: look again while it is young.
YOUTH = 60.0
# One line for each of a dozen hierarchies, with paths that containers make long.
CGROUP = 16384
# Instead of a held file's number.
CLOSED, ONCE = -1, -2


class Seen:
    """One process as it was last seen."""

    __slots__ = (
        "arguments", "asleep", "calm", "contained", "container", "faults", "group", "held", "held_io", "held_statm",
        "looked", "mark", "owner", "parent", "resident", "row", "slept", "turn",
    )  # fmt: skip

    def __init__(self, held: int, turn: int) -> None:
        # Files kept open, by the kernel's number for them, or `CLOSED`, or `ONCE` if it was read once.
        self.held = held
        self.held_io = CLOSED
        self.held_statm = CLOSED
        # Of a process that is left asleep, the one file held; what it said; and who its parent is.
        self.asleep = CLOSED
        self.slept = 0
        self.parent = ""
        # Samples without a move.
        self.calm = 0
        self.turn = turn
        self.owner = ""
        self.group: cgrouppath.JobGroup | None = None
        # What contains it, whether its group says so, and by which command it went when others were asked.
        self.container: Container | None = None
        self.contained = False
        self.looked = ""
        self.arguments: str | None = None
        self.faults = -1
        self.resident = -1
        # Of the stat line, its hash: two thousand lines would be half a megabyte of the agent's memory.
        self.mark: int | None = None
        # The collector's row; what it holds is its own affair.
        self.row: object = None


class Roster:
    """All processes as they were last seen, by the name of their directory."""

    def __init__(self) -> None:
        self.seen: dict[str, Seen] = {}
        self.skipped: set[str] = set()
        self.forbidden: set[str] = set()
        # Those in containers whose image is not for us to see.
        self.sealed: set[str] = set()
        # Of this turn: whether there are processes that we are not shown, and one whose line could not be read.
        self.hidden = False
        self.torn = False
        self.turn = 0
        self.young = 0.0
        self._groups: dict[bytes, tuple[cgrouppath.JobGroup | None, Container | None]] = {}
        self._sleepers = Sleepers()
        self._last_pid = 0
        self.held = 0
        self._room = -1

    def begin(self, host: Host, listed: list[str]) -> list[str]:
        """Another turn: forget who is gone; now and then doubt what was skipped. The names to look at, in the order
        they were met, which is mostly that of their numbers: neighbours are alike, which packs a message better.
        """
        names = set(listed)
        # There is always a process 1. A list without it is not of everybody: /proc is mounted with hidepid=2. Of a
        # copy that says nothing: it holds what was read.
        self.hidden = host.live and "1" not in names
        self.torn = False
        self.turn = (self.turn + 1) % TURN
        self.young = host.uptime() - YOUTH
        if self._room < 0:
            self._room = min(HELD, host.room())
        gone = (self.seen.keys() | self.skipped) - names
        for name in gone & self.seen.keys():
            self.forget(host, name)
        for name in self._sleepers.begin(host, gone):
            with suppress(OSError):  # just gone: reading it will tell
                self.wake(host, name, self.seen[name])
        self.skipped -= gone
        self._doubt(host)
        if self.turn == 0:
            self.skipped.clear()
            self._groups.clear()
        fresh = names - self.seen.keys() - self.skipped
        return [*self.seen, *(name for name in listed if name in fresh and name.isascii() and name.isdecimal())]

    def _doubt(self, host: Host) -> None:
        """Take out of the skipped those whose number may be another's by now: the kernel gives numbers out in rising
        order and begins again, so they lie between the last one given out at the last sample and at this one.
        """
        try:
            last, now = self._last_pid, int(host.piece("proc/loadavg").split()[-1])
        except (OSError, ValueError, IndexError):
            return
        self._last_pid = now
        if 0 <= now - last < len(self.skipped):
            self.skipped.difference_update(map(str, range(last + 1, now + 1)))
        elif now >= last:
            self.skipped = {name for name in self.skipped if not last < int(name) <= now}
        else:
            self.skipped = {name for name in self.skipped if now < int(name) <= last}

    def meet(self, host: Host, name: str) -> Seen:
        """A process not seen before."""
        seen = self.seen[name] = Seen(self._hold(host, f"proc/{name}/stat"), int(name) % TURN)
        return seen

    def look(self, host: Host, path: str, held: int) -> tuple[bytes, int]:
        """What a file says, and how it is held from now on: who is read a second time works, and then opening and
        closing would be most of the cost.
        """
        # The last quarter of the room is for the one file of each that is read at every sample.
        if held == ONCE and self.held < 3 * self._room // 4:
            held = self._hold(host, path)
            try:
                return (host.peek(held) if held >= 0 else host.piece(path)), (held if held >= 0 else ONCE)
            except OSError:
                # The caller will not hear its number: nobody else would ever let go of it.
                self._drop(host, held)
                raise
        if held >= 0:
            return host.peek(held), held
        return host.piece(path), ONCE

    def forget(self, host: Host, name: str) -> None:
        seen = self.seen.pop(name, None)
        self.forbidden.discard(name)
        self.sealed.discard(name)
        if seen is not None:
            self._sleepers.drop(name, seen.parent)
            for held in (seen.held, seen.held_io, seen.held_statm, seen.asleep):
                self._drop(host, held)

    def rest(self, host: Host, name: str, seen: Seen, parent: int) -> None:
        """A process of one thread that sleeps and has not moved for a while: from now on ask only if it ran.

        If the machine leaves it alone, and if we would know of its parent's death.
        """
        above = str(parent)
        if not self._sleepers.safe or not (above in self.seen or above in self.skipped or above == "0"):
            return
        path = f"proc/{name}/schedstat"
        asleep = CLOSED
        try:
            asleep = self._hold(host, path)
            text = host.peek(asleep) if asleep >= 0 else b""
            # It may have run since it was looked at: what it says now must be older than the last look.
            if not runs(text) or hash(host.peek(seen.held)) != seen.mark:
                self._drop(host, asleep)
                return
        except OSError:
            self._drop(host, asleep)
            return
        for held in (seen.held, seen.held_io, seen.held_statm):
            self._drop(host, held)
        seen.held, seen.held_io, seen.held_statm = CLOSED, CLOSED, CLOSED
        seen.asleep, seen.slept, seen.parent = asleep, hash(text), above
        self._sleepers.add(name, above)

    def moved(self, seen: Seen) -> None:
        """It was read anew. If that was in its sleep, because its turn had come, no more is held than before."""
        seen.calm = 0
        if seen.asleep >= 0:
            seen.held_io = seen.held_statm = CLOSED

    def wake(self, host: Host, name: str, seen: Seen) -> None:
        """It ran, or something happened to it."""
        self._sleepers.drop(name, seen.parent)
        self._drop(host, seen.asleep)
        seen.asleep, seen.parent, seen.calm = CLOSED, "", 0
        # Who has been read once is read again soon.
        seen.held_io = seen.held_statm = ONCE
        seen.held = self._hold(host, f"proc/{name}/stat")

    def skip(self, host: Host, name: str, *, for_good: bool) -> None:
        """Nobody wants to know of it; not `for_good` if it may yet become somebody's."""
        self.forget(host, name)
        if for_good:
            self.skipped.add(name)

    def place(self, host: Host, name: str, seen: Seen) -> None:
        """Its control group, and the container that names."""
        try:
            text = host.piece(f"proc/{name}/cgroup", CGROUP)
        except OSError:
            text = b""
        if text not in self._groups:
            self._groups[text] = self._read(host, name, text.decode("utf-8", "backslashreplace"))
        seen.group, found = self._groups[text]
        if found or seen.contained:
            self._contain(name, seen, found)
        seen.contained = found is not None

    def _read(self, host: Host, name: str, text: str) -> tuple[cgrouppath.JobGroup | None, Container | None]:
        group, named = cgrouppath.job_of_process(text), of_cgroup(text)
        found = grouped(host, name, named) if named else None
        if found is None and group and group.scheduler in cgrouppath.CONTAINERS:
            found = Container(group.scheduler)
        return group, found

    def search(self, host: Host, name: str, seen: Seen, command: str, *, again: bool) -> None:
        """Whether it is in a container that its control group does not name. Once found it stays there; who is in
        none is asked `again` now and then, and when it became another program.
        """
        if seen.looked != command or (again and seen.container is None):
            seen.looked = command
            self._contain(name, seen, looked_for(host, name, command))

    def _contain(self, name: str, seen: Seen, found: Container | None) -> None:
        """It is in this container."""
        seen.container = found
        self.sealed.discard(name)
        if found and found.hidden:
            self.sealed.add(name)

    def _drop(self, host: Host, held: int) -> None:
        if held >= 0:
            host.let_go(held)
            self.held -= 1

    def _hold(self, host: Host, path: str) -> int:
        """A file kept open; `CLOSED` if enough are."""
        if self.held >= self._room:
            return CLOSED
        try:
            held = host.hold(path)
        except OSError as error:
            if error.errno not in (EMFILE, ENFILE):
                raise
            self._room = self.held  # others need files too: these are all we get
            return CLOSED
        self.held += 1
        return held
