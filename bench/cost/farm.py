"""The farm: processes as on a node, in sessions of eight, in control groups as Slurm makes them."""

import sys
import time
from contextlib import ExitStack
from typing import NamedTuple, Self

from bench.cost.groups import Groups
from bench.cost.program import Program

SESSION = 8
USERS = 10
FIRST_USER = 20001
# The agent looks at processes younger than a minute at every sample, since a job's first process is moved to its
# group after it started. Jobs live for hours: a farm is measured when it is that old.
AGE = 61.0


class Plan(NamedTuple):
    """What lives on the node."""

    jobs: int
    """Processes of jobs."""
    system: int = 0
    """Processes of system users, which never work."""
    threads: int = 1

    def __str__(self) -> str:
        text = f"{self.jobs} job processes"
        if self.threads > 1:
            text += f" with {self.threads} threads each"
        return text + (f" and {self.system} of system users" if self.system else "")


class Farm:
    def __init__(self, program: str, plan: Plan) -> None:
        self.plan = plan
        self._path = program
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        say(f"farm: {self.plan}")
        with ExitStack() as stack:
            groups = stack.enter_context(Groups())
            self.kind = groups.kind
            self._program = stack.enter_context(Program(self._path))
            for start in range(0, self.plan.system, SESSION):
                self._session(start // SESSION * 7 % 1000, min(SESSION, self.plan.system - start), 1, [])
            for start in range(0, self.plan.jobs, SESSION):
                number = start // SESSION
                uid = FIRST_USER + number % USERS
                size = min(SESSION, self.plan.jobs - start)
                self._session(uid, size, self.plan.threads, groups.job(number, uid))
            self.pids = self._pids()
            self._born = time.monotonic()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def poke(self, percent: float) -> None:
        """So many of the jobs' processes use a tick of CPU time, touch a page and write one."""
        self._program.ask(f"poke {percent}")

    def churn(self, sessions: int) -> set[int]:
        """So many sessions, the oldest, end and are started anew. Returns the pids that ended."""
        self._program.ask(f"churn {sessions}")
        before, self.pids = self.pids, self._pids()
        return before - self.pids

    def grow_old(self) -> None:
        left = self._born + AGE - time.monotonic()
        if left > 0:
            say(f"farm: waiting {left:.0f} s until its processes are no longer young")
            time.sleep(left)

    def _session(self, uid: int, size: int, threads: int, paths: list[str]) -> None:
        self._program.tell(f"session {uid} {size} {threads} {' '.join(paths)}")

    def _pids(self) -> set[int]:
        return {int(pid) for pid in self._program.ask("pids").split()[1:]}


def say(text: str) -> None:
    """Progress, for those who wait."""
    print(f"  {text}", file=sys.stderr, flush=True)
