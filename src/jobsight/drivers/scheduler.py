"""Asking a batch system, gently: one program at a time, within one time limit a run, less often when it is slow, and
with the rights that show most.

Rights, the first that is there: root or the scheduler's own user as we are; `setpriv`, where the agent was given
CAP_SETUID and CAP_SETGID as ambient capabilities; `sudo` where it needs no password; else as we are, and then we see
what our user may see.
"""

from typing import Any

from jobsight.clock import Clock, SystemClock
from jobsight.collector import AbsentError
from jobsight.command import CommandError
from jobsight.drivers.calls import Calls
from jobsight.host import Host

# A call that took more than this share of the time between runs is slow: the next runs rest.
SLOW = 0.2
# Runs rest for at most so many intervals.
LONGEST_REST = 15
# Before a second run tells how far apart they are; and the least that counts: a call of two seconds is never slow.
INTERVAL = 60.0
SHORTEST = 10.0
# Whether the daemon is here is looked up anew after so many runs.
LOOK_AGAIN = 30
PROBE = 5.0
# What Slurm's programs say where nobody set them up, whoever else's daemon runs here.
UNCONFIGURED = "Could not establish a configuration source"
# Bits of CAP_SETGID and CAP_SETUID, see capabilities(7).
SET_IDENTITY = 1 << 6 | 1 << 7

THROUGH = ("setpriv", "sudo")
"""Programs by which others are run with other rights."""

_clock = SystemClock()


class Pace:
    """How one collector's calls went lately."""

    def __init__(self) -> None:
        self.rest = 0
        """Runs still to be left out."""
        self.pause = 0
        """How many were left out last time."""
        self.last: float | None = None
        self.every = INTERVAL


class Paces:
    """By collector; lives with a host."""

    def __init__(self) -> None:
        self.known: dict[str, Pace] = {}
        self.ways: dict[str, tuple[str, ...]] = {}
        self.here: dict[str, tuple[int, bool]] = {}


class Errand:
    """What one run of a collector asks. `limit` is for all of it together."""

    def __init__(self, host: Host, name: str, limit: float, user: str, clock: Clock = _clock) -> None:
        self._host = host
        self._user = user
        self._clock = clock
        self._kept = host.keep(Paces)
        self._pace = self._kept.known.setdefault(name, Pace())
        self._calls = host.keep(Calls)
        self._began = clock.steady()
        self._deadline = self._began + limit
        self._spent = 0.0
        self._before = self._pace.pause

    def rests(self) -> bool:
        """Whether this run asks nothing because the last answer was slow to come."""
        pace = self._pace
        if pace.last is not None:
            pace.every = max(SHORTEST, self._began - pace.last)
        pace.last = self._began
        if pace.rest:
            pace.rest -= 1
            return True
        return False

    def ask(self, command: tuple[str, ...], **options: Any) -> str:
        """What a program prints. CommandError if it does not end well within what is left of the time."""
        words = (*self._way(command), *command)
        began = self._clock.steady()
        good = False
        try:
            text = self._host.run(words, max(0.1, self._deadline - began), **options).text
            good = True
        except CommandError as error:
            if UNCONFIGURED in str(error):
                raise AbsentError(str(error)) from None
            raise
        finally:
            took = self._clock.steady() - began
            self._calls.add(took, good=good)
            self._mind(took)
        return text

    def _mind(self, took: float) -> None:
        """Twice as long a rest after each run that was slow, none after a quick one."""
        pace = self._pace
        self._spent += took
        slow = self._spent > SLOW * pace.every or self._clock.steady() >= self._deadline
        pace.pause = min(2 * self._before + 1, LONGEST_REST) if slow else 0
        pace.rest = pace.pause

    def _way(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """The words before a program's own, found out once."""
        if not self._host.live:
            return ()
        program = command[0]
        if program not in self._kept.ways:
            self._kept.ways[program], self._calls.way = way(self._host, command, self._user)
        return self._kept.ways[program]


def way(host: Host, command: tuple[str, ...], user: str) -> tuple[tuple[str, ...], str]:
    """The words to put before a program's, and what to call that."""
    me = host.user(host.uid("proc/self"))
    if me in ("root", user):
        return (), f"as {me}"
    if host.has("setpriv") and ambient(host.glimpse("proc/self/status") or "") & SET_IDENTITY == SET_IDENTITY:
        return ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"), f"setpriv to {user}"
    if host.has("sudo"):
        try:
            # All words: sudo may allow a program with some of them only.
            host.run(("sudo", "-n", "-l", "-u", user, *command), PROBE)
        except CommandError:
            pass
        else:
            return ("sudo", "-n", "-u", user), f"sudo to {user}"
    return (), f"as {me}, who may not see everything"


def ambient(status: str) -> int:
    """Capabilities that programs we run will have, from /proc/self/status."""
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name == "CapAmb":
            return int(value, 16)
    return 0


def check_here(host: Host, here: bool | None, daemon: str) -> None:
    """AbsentError where it is not for this machine to ask: one in a cluster is enough. Without a setting it is the
    one the daemon runs on.
    """
    if here is None and host.live:
        known = host.keep(Paces).here
        runs, found = known.get(daemon, (0, False))
        if runs <= 0:
            runs, found = LOOK_AGAIN, host.has(daemon) and runs_here(host, daemon)
        known[daemon] = (runs - 1, found)
        here = found
    if here is False:
        raise AbsentError(f"{daemon} does not run here, and no setting says `here: true`")


def runs_here(host: Host, daemon: str) -> bool:
    # The kernel keeps 15 characters of a name.
    return any(
        (host.glimpse(f"proc/{pid}/comm") or "").strip() == daemon[:15]
        for pid in host.names("proc")
        if pid.isdecimal()
    )
