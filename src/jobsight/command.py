"""The one door through which other programs are run on a node, within a time and a size. Sampling runs none.

A program gets a session of its own, a clean environment, no input and no file of ours. When the call is over its
whole process group is ended, whatever became of the program itself. One that cannot be ended, because it hangs in
the kernel or is another user's, is left, and its name is refused until it is gone: nothing piles up.

By posix_spawn: a fork copies the state of all threads, and `subprocess` costs the agent 0.6 MiB for good. It cannot
change the directory; a service is at / already.
"""

import atexit
import os
import select
import signal
import time
from _thread import allocate_lock
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from jobsight.clock import Clock, SystemClock

MOST = 64 * 2**20
# Of what is said on stderr only the end is kept: the reason of a failure stands there.
ERROR_KEPT = 16384
LONGEST_REASON = 200
PIECE = 65536
# As much as a pipe holds at most; what a program wrote before it ended is read in one go.
PIPE = 2**20
# Between SIGTERM and SIGKILL, and between that and giving up.
GRACE = 1.0
# Between looks at a program that says nothing.
SHORTEST, LONGEST = 0.001, 0.05

FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# English and UTF-8, with decimal points; "C" where a system lacks it.
LOCALE = "C.UTF-8"
# What an administrator says to the agent and means for its programs.
INHERITED = ("SLURM_CONF", "TZ")


class CommandError(RuntimeError):
    """A program that could not be run to a good end: one sentence with its name."""


class Output(NamedTuple):
    """What a program left behind."""

    code: int
    text: str
    error: str
    """The end of what it said on stderr."""


class Child:
    """One program being run. `pid` is ours until it is waited for: nobody else can have the number."""

    def __init__(self, name: str, since: float) -> None:
        self.name = name
        self.since = since
        self.pid = 0
        self.pipes: dict[int, bytearray] = {}
        self.text = bytearray()
        self.error = bytearray()
        self.code: int | None = None
        self.left = False


_running: dict[str, Child] = {}
_lock = allocate_lock()
_clock = SystemClock()


def run(
    command: tuple[str, ...],
    limit: float,
    *,
    most: int = MOST,
    codes: tuple[int, ...] = (0,),
    variables: Mapping[str, str] | None = None,
    clock: Clock = _clock,
) -> Output:
    """Run a program to its end: at most `limit` seconds and `most` bytes. `codes` are the exit codes that are no
    failure; `variables` is added to its environment. CommandError says what else happened.
    """
    name = os.path.basename(command[0])
    path = find(command[0])
    if path is None:
        raise CommandError(f"{name} is not there: looked in {':'.join(folders())}")
    child = _enter(name, clock)
    try:
        _start(child, path, command, environment(variables or {}))
        trouble = _listen(child, limit, most, clock)
    finally:
        _end(child, clock)
    if trouble:
        raise CommandError(f"{trouble} and {'could not be' if child.left else 'was'} ended")
    error = child.error.decode("utf-8", "backslashreplace")
    if wrong := failure(child, codes, error):
        raise CommandError(wrong)
    return Output(child.code or 0, child.text.decode("utf-8", "backslashreplace"), error)


def find(program: str) -> str | None:
    """Where a program is, as a path that can be run; None if it is nowhere."""
    places = [program] if "/" in program else [f"{folder}/{program}" for folder in folders()]
    return next((path for path in places if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def folders() -> list[str]:
    """Where programs are looked for. Never where we happen to be: who may write there would be run as us."""
    return [folder for folder in os.environ.get("PATH", FOLDERS).split(":") if folder.startswith("/")]


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """All a program is told of ours."""
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {"PATH": ":".join(folders()), "LANG": LOCALE, "LC_ALL": LOCALE, **kept, **variables}


def failure(child: Child, codes: tuple[int, ...], error: str) -> str | None:
    """What went wrong with a program that ended; None if nothing did."""
    if child.code is None:
        return f"{child.name} ended and nobody knows how: its exit was waited for elsewhere"
    if child.code in codes:
        return None
    said = [line.strip() for line in error.splitlines() if line.strip()]
    reason = f": {said[-1][:LONGEST_REASON]}" if said else ""
    if child.code < 0:
        return f"{child.name} was killed by signal {-child.code}{reason}"
    return f"{child.name} ended with code {child.code}{reason}"


def _enter(name: str, clock: Clock) -> Child:
    """Take the name, or say who has it."""
    with _lock:
        before = _running.get(name)
        if before is not None and before.left and _ended(before.pid):
            _reap(before)
            before = None
        if before is not None:
            since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(before.since))
            raise CommandError(f"{name} is still running since {since}")
        child = _running[name] = Child(name, clock.wall())
        return child


def _start(child: Child, path: str, command: tuple[str, ...], variables: dict[str, str]) -> None:
    theirs: list[int] = []
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]
    try:
        for number, kept in ((1, child.text), (2, child.error)):
            ours, their = pipe()
            child.pipes[ours] = kept
            theirs.append(their)
            actions.append((os.POSIX_SPAWN_DUP2, their, number))
        actions += [(os.POSIX_SPAWN_CLOSE, number) for number in inheritable()]
        child.pid = os.posix_spawn(
            path,
            command,
            variables,
            file_actions=actions,
            setsid=True,
            setsigmask=[],
            # What Python or whoever started us ignores, a program must not.
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT, signal.SIGHUP],
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CommandError(f"{child.name} cannot be started: {reason}") from None
    finally:
        for their in theirs:
            os.close(their)


def pipe() -> tuple[int, int]:
    """To read without waiting, and to write. Above 2: a process may have been started without those three."""
    import fcntl

    ends = []
    for end in os.pipe2(os.O_CLOEXEC):
        ends.append(end if end > 2 else fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3))
        if ends[-1] != end:
            os.close(end)
    os.set_blocking(ends[0], False)
    return ends[0], ends[1]


def inheritable() -> list[int]:
    """Files that a library opened without a thought for our children; Python's own are closed on exec."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        # The file through which this list was read is gone.
        with suppress(OSError):
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
    return found


def _listen(child: Child, limit: float, most: int, clock: Clock) -> str | None:
    """Take what it says until it ends; what is wrong if it goes on too long or says too much.

    Its end is the end of the process, not of the pipe: somebody it started may hold that for ever.
    """
    poll = select.poll()
    for pipe in child.pipes:
        poll.register(pipe, select.POLLIN)
    deadline = clock.steady() + limit
    pause = SHORTEST
    while True:
        # Asked before reading: what it wrote is then in the pipe.
        ended = _ended(child.pid)
        heard = [pipe for pipe in list(child.pipes) if _hear(child, pipe, poll)]
        if len(child.text) > most:
            return f"{child.name} printed more than {most} bytes"
        if ended:
            return None
        remaining = deadline - clock.steady()
        if remaining <= 0:
            return f"{child.name} did not end within {limit:g} s"
        pause = SHORTEST if heard else min(2 * pause, LONGEST)
        poll.poll(1000 * min(remaining, pause))


def _hear(child: Child, pipe: int, poll: select.poll) -> bool:
    """Whether there was something in a pipe; takes it, at most a pipe's worth."""
    into = child.pipes[pipe]
    size = 0
    with suppress(BlockingIOError):
        while size < PIPE:
            piece = os.read(pipe, PIECE)
            if not piece:
                poll.unregister(pipe)
                del child.pipes[pipe]
                os.close(pipe)
                break
            into += piece
            size += len(piece)
    if into is child.error:
        del into[:-ERROR_KEPT]
    return size > 0


def _end(child: Child, clock: Clock) -> None:
    """End what is left of it, and only then wait for it: after that the number may be another's."""
    while child.pipes:
        os.close(child.pipes.popitem()[0])
    if child.pid:
        if not _ended(child.pid):
            _signal(child.pid, signal.SIGTERM)
            _await(child.pid, clock)
        _signal(child.pid, signal.SIGKILL)
        child.left = not _await(child.pid, clock)
    with _lock:
        if not child.left:
            _reap(child)


def _ended(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _await(pid: int, clock: Clock) -> bool:
    """Whether it ends within the grace."""
    deadline = clock.steady() + GRACE
    pause = SHORTEST
    while not _ended(pid):
        if clock.steady() > deadline:
            return False
        time.sleep(pause)
        pause = min(2 * pause, LONGEST)
    return True


def _signal(pid: int, number: int) -> None:
    """To its group, as long as the number is surely its own."""
    with suppress(ChildProcessError, ProcessLookupError, PermissionError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        os.killpg(pid, number)


def _reap(child: Child) -> None:
    """Wait for one that has ended and give back its name, under the lock: a pid that is listed is ours."""
    if child.pid:
        with suppress(ChildProcessError):
            child.code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
    del _running[child.name]


@atexit.register
def _end_all() -> None:
    """What still runs when the agent stops is not left behind."""
    with _lock:
        for child in _running.values():
            if child.pid:
                _signal(child.pid, signal.SIGKILL)
