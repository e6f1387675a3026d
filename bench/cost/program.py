"""A program that answers each line with a line, and what it costs."""

import os
import subprocess
import threading
import time
from collections.abc import Mapping
from typing import Self

PATIENCE = 300.0


def cpu_clock(pid: int) -> float:
    """CPU seconds of all threads of another process, from the kernel's own clock for it: to the nanosecond, where
    /proc has ticks. The number of such a clock is the complement of the pid and a kind, see clock_getcpuclockid(3).
    """
    return time.clock_gettime((~pid << 3) | 2)


def pinned(cpu: int, command: tuple[str, ...]) -> tuple[str, ...]:
    """The command held to one CPU from its first instruction: programs in Go count CPUs when they start."""
    return ("taskset", "-c", str(cpu), *command)


class Program:
    def __init__(self, *command: str, environment: Mapping[str, str] | None = None) -> None:
        self._name = " ".join(command)
        # In a session of its own: Ctrl-C is for the bench, which then ends its programs in order.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=None if environment is None else {**os.environ, **environment},
        )
        self._spent = 0.0

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """Its next line. One that hangs must not hang the bench: without an answer in time it is ended."""
        assert self._process.stdout
        watch = threading.Timer(PATIENCE, self._process.kill)
        watch.start()
        line = self._process.stdout.readline()
        watch.cancel()
        if not line:
            raise SystemExit(f"{self._name}: ended, or gave no answer within {PATIENCE:.0f} s")
        return line

    def ask(self, line: str = "") -> str:
        self.tell(line)
        return self.answer()

    def sample(self) -> float:
        """CPU seconds from the last answer to this one, so that work in the background counts."""
        self.ask()
        before, self._spent = self._spent, cpu_clock(self.pid)
        return self._spent - before

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
