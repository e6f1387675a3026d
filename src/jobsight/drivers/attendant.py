"""A process of its own for a vendor's library. One that crashes, hangs or leaks then takes nobody with it.

The attendant is an interpreter that loads one driver and answers each line with one line of JSON. It is asked and not
waited for longer than a sample may take: what comes too late is thrown away. One that has not answered for long is
ended; one that ended is started again, after a pause that grows.
"""

import json
import os
import select
import signal
import sys
from contextlib import suppress
from typing import Any

from jobsight.clock import Clock, SystemClock
from jobsight.command import environment, inheritable, pipe

# The other finds modules where this one does, in a zipapp or an environment too.
SCRIPT = "import sys; name, *sys.path = sys.argv[1:]; from jobsight.drivers import attendant; attendant.serve(name)"
# Seconds for an answer; until one that gives none is ended: to wake a card may take a minute.
ANSWER, PATIENCE = 4.0, 120.0
# Seconds before the second start, and the most before any.
PAUSE, LONGEST_PAUSE = 30.0, 3600.0
MOST = 16 * 2**20


class AttendantError(RuntimeError):
    """No answer, and why."""


class LateError(AttendantError):
    """No answer yet."""


class Attendant:
    """The driver `name`, in another process."""

    def __init__(self, name: str, clock: Clock | None = None) -> None:
        self.name = name
        self._clock = clock or SystemClock()
        self.pid = 0
        # One that was killed and is not gone: it hangs in the kernel.
        self._left = 0
        self._asking = self._hearing = -1
        self._asked = 0.0
        self._owed = 0
        self._heard = b""
        self._starts = 0
        self._rests_until = 0.0
        self._why = ""

    def ask(self) -> None:
        """Ask for a reading; start it if need be."""
        if not self.pid:
            self._start()
        if not self._owed:
            self._asked = self._clock.steady()
        try:
            os.write(self._asking, b"\n")
            self._owed += 1
        except OSError:
            self._end()
            raise AttendantError(self._why) from None

    def answer(self, until: float) -> Any:
        """The answer to the last question, at the latest at that time of the steady clock."""
        while True:
            *lines, self._heard = self._heard.split(b"\n")
            self._owed -= len(lines)
            if lines and not self._owed:
                return self._read(lines[-1])
            if lines:
                # Of an earlier time; but it lives.
                self._asked = self._clock.steady()
            self._hear(until)

    def close(self) -> None:
        if self.pid:
            self._kill()

    def _read(self, line: bytes) -> Any:
        try:
            found = json.loads(line)
        except ValueError:
            raise AttendantError(f"{self.name}: expected JSON, got {line[:60]!r}") from None
        if "error" in found:
            raise AttendantError(f"{self.name}: {found['error']}")
        self._starts = 0
        return found["reading"]

    def _hear(self, until: float) -> None:
        poll = select.poll()
        poll.register(self._hearing, select.POLLIN)
        left = until - self._clock.steady()
        if left <= 0 or not poll.poll(1000 * left):
            silent = self._clock.steady() - self._asked
            if silent > PATIENCE:
                self._why = f"{self.name}: no answer for {silent:.0f} s: ended"
                self._kill()
                raise AttendantError(self._why)
            raise LateError(f"{self.name}: no answer within {ANSWER:g} s")
        piece = os.read(self._hearing, 65536)
        if not piece or len(self._heard) > MOST:
            self._end()
            raise AttendantError(self._why)
        self._heard += piece

    def _start(self) -> None:
        if self._clock.steady() < self._rests_until or not self._left_alone():
            raise AttendantError(self._why)
        pause = min(PAUSE * 2.0**self._starts, LONGEST_PAUSE)
        self._starts += 1
        self._rests_until = self._clock.steady() + pause
        theirs, self._asking = pipe()
        self._hearing, their = pipe()
        actions: list[tuple[Any, ...]] = [
            (os.POSIX_SPAWN_DUP2, theirs, 0),
            (os.POSIX_SPAWN_DUP2, their, 1),
            (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0),
            *((os.POSIX_SPAWN_CLOSE, number) for number in inheritable()),
        ]
        command = (sys.executable, "-I", "-S", "-c", SCRIPT, self.name, *sys.path)
        try:
            self.pid = os.posix_spawn(
                sys.executable, command, environment({}), file_actions=actions, setsid=True, setsigmask=[]
            )
        except OSError as error:
            os.close(self._asking)
            os.close(self._hearing)
            raise AttendantError(f"{self.name}: cannot be started: {error.strerror}") from None
        finally:
            os.close(theirs)
            os.close(their)
        self._owed, self._heard = 0, b""

    def _end(self) -> None:
        """It is gone, or as good as: why, and take leave of it."""
        with suppress(ChildProcessError):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            code = os.waitstatus_to_exitcode(status) if pid else None
            how = "stopped to answer" if code is None else f"was killed by signal {-code}" if code < 0 else "ended"
            self._why = f"{self.name}: its process {how}"
            if pid:
                self.pid = 0
        self._kill()

    def _kill(self) -> None:
        if self.pid:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._left = self.pid
        for end in (self._asking, self._hearing):
            if end >= 0:
                os.close(end)
        self._asking = self._hearing = -1
        self.pid = 0

    def _left_alone(self) -> bool:
        """Whether the last one is gone: two would hang for the same reason."""
        with suppress(ChildProcessError):
            if self._left and not os.waitpid(self._left, os.WNOHANG)[0]:
                return False
        self._left = 0
        return True


def serve(name: str) -> None:
    """The other side: answers until nobody asks any more."""
    import importlib
    import threading

    from jobsight.drivers.card import plain

    threading.Thread(target=_leave_with, args=(0,), daemon=True).start()
    os.set_blocking(0, True)
    # Libraries print what they like: the answers' way is ours alone.
    answers = os.dup(1)
    os.dup2(2, 1)
    reader: Any = None
    while os.read(0, 1):
        try:
            driver = importlib.import_module(f"jobsight.drivers.{name}")
            reader = reader or driver.Reader()
            said: dict[str, Any] = {"reading": plain(reader.read())}
        except Exception as error:  # noqa: BLE001
            said = {"error": f"{type(error).__name__}: {error}"[:500]}
            reader = None
        os.write(answers, json.dumps(said).encode() + b"\n")


def _leave_with(end: int) -> None:
    """End when nobody can ask any more, also while a library hangs."""
    poll = select.poll()
    poll.register(end, 0)
    poll.poll()
    os._exit(0)
