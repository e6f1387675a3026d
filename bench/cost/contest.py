"""The rounds: each contender takes one sample of the same machine, in turn, all on one core."""

import os
import statistics
import subprocess
from collections.abc import Callable
from typing import NamedTuple

from bench.cost.farm import say
from bench.cost.program import pinned

PS = ("ps", "-eo", "pid,ppid,pgid,sid,cputimes,nlwp,lstart,rss,vsz,stat,uid,comm,cgroup")
# The first samples of a resident program meet every process for the first time, and those that sleep on through eight
# of them are left alone: what is promised is what it costs from then on, for months.
WARM_UP = 12
# More than that, and somebody else has started or ended processes while we measured.
UNSTEADY = 1.15


class Cost(NamedTuple):
    """CPU seconds of one sample."""

    median: float
    least: float


class Census:
    """How many processes there were: ratios of rounds with different numbers of them say nothing."""

    def __init__(self) -> None:
        self._counts: list[int] = []

    def count(self) -> None:
        self._counts.append(sum(name.isdecimal() for name in os.listdir("/proc")))

    @property
    def steady(self) -> bool:
        return max(self._counts) <= min(self._counts) * UNSTEADY

    def __str__(self) -> str:
        return f"{min(self._counts)} to {max(self._counts)} processes in all"


def rounds(
    takers: dict[str, Callable[[], float]], count: int, before: Callable[[], None], census: Census
) -> dict[str, Cost]:
    """What a sample cost, by contender. `before` is done before each round and counted for nobody."""
    spent: dict[str, list[float]] = {name: [] for name in takers}
    for number in range(WARM_UP + count):
        before()
        census.count()
        # Who comes first finds the caches coldest: everybody does in turn.
        first = number % len(takers)
        for name in (*list(takers)[first:], *list(takers)[:first]):
            spent[name].append(takers[name]())
        if number % 5 == 4:
            say(f"round {number + 1} of {WARM_UP + count}")
    return {name: Cost(statistics.median(costs[WARM_UP:]), min(costs[WARM_UP:])) for name, costs in spent.items()}


def once(cpu: int, *command: str, environment: dict[str, str] | None = None) -> float:
    """CPU seconds of a command from start to end. Its output goes nowhere, which is the cheapest for it."""
    process = subprocess.Popen(
        pinned(cpu, command), stdout=subprocess.DEVNULL, env={**os.environ, **(environment or {})}
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return used.ru_utime + used.ru_stime
