"""The rounds: each contender takes one sample of the same processes, in turn, all on one core."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from bench.cost.place import Place
from bench.cost.program import Program

HERE = os.path.dirname(os.path.abspath(__file__))
PS = ("ps", "-eo", "pid,ppid,pgid,sid,cputimes,nlwp,lstart,rss,vsz,stat,uid,comm,cgroup")
# The first samples of a resident program meet every process for the first time.
WARM_UP = 3
AGENTS = ("directory", "http")


def rounds(farm: Program, place: Place, cpu: int, count: int) -> dict[str, list[float]]:
    """CPU seconds of every sample, by contender."""
    with ExitStack() as stack:
        takers: dict[str, Callable[[], float]] = {}
        for sink in AGENTS:
            agent = stack.enter_context(_sampler(cpu, "agent", place.settings(sink, 0.001, alone=True)))
            takers[f"agent, {sink} sink"] = partial(_ask, agent)
        takers["psutil"] = partial(_ask, stack.enter_context(_sampler(cpu, "psutil")))
        takers["ps"] = partial(ps, cpu)
        spent: dict[str, list[float]] = {name: [] for name in takers}
        for number in range(WARM_UP + count):
            farm.ask()
            # Who comes first finds the caches coldest: everybody does in turn.
            first = number % len(takers)
            for name in (*list(takers)[first:], *list(takers)[:first]):
                spent[name].append(takers[name]())
    return {name: costs[WARM_UP:] for name, costs in spent.items()}


def _ask(worker: Program) -> float:
    return float(json.loads(worker.ask())["cpu"])


def ps(cpu: int) -> float:
    """CPU seconds of one ps. Its output goes nowhere, which is the cheapest for it."""
    process = subprocess.Popen(("taskset", "-c", str(cpu), *PS), stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(PS)}: exit code {process.returncode}")
    return used.ru_utime + used.ru_stime


def _sampler(cpu: int, *arguments: str) -> Program:
    return Program(sys.executable, os.path.join(HERE, "sampler.py"), *arguments, cpus={cpu})
