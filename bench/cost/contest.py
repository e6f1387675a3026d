"""The rounds: each contender takes one sample of the same processes, in turn, all on one core."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack

from bench.cost.place import Place
from bench.cost.program import Program

HERE = os.path.dirname(os.path.abspath(__file__))
PS = ("ps", "-eo", "pid,ppid,pgid,sid,cputimes,nlwp,lstart,rss,vsz,stat,uid,comm,cgroup")
# The first samples of a resident program meet every process for the first time.
WARM_UP = 3
AGENTS = ("directory", "http")


def rounds(farm: Program, place: Place, cpu: int, count: int) -> dict[str, list[float]]:
    """CPU seconds of every sample, by contender."""
    spent: dict[str, list[float]] = {}
    with ExitStack() as stack:
        workers = {
            f"agent, {sink} sink": _sampler(cpu, "agent", place.settings(sink, 0.001, alone=True)) for sink in AGENTS
        }
        workers["psutil"] = _sampler(cpu, "psutil")
        for worker in workers.values():
            stack.enter_context(worker)
        for number in range(WARM_UP + count):
            farm.ask()
            now = {name: float(json.loads(worker.ask())["cpu"]) for name, worker in workers.items()}
            now["ps"] = ps(cpu)
            if number >= WARM_UP:
                for name, cost in now.items():
                    spent.setdefault(name, []).append(cost)
    return spent


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
