"""A program that answers each line with a line, held to some of the CPUs."""

import os
import subprocess
import threading
from typing import Self

PATIENCE = 120.0


class Program:
    def __init__(self, *arguments: str, cpus: set[int]) -> None:
        self._name = " ".join(arguments)
        self._process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        os.sched_setaffinity(self._process.pid, cpus)

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

    def ask(self) -> str:
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self.answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        self._process.stdout.close()
