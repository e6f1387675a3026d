"""What a single run costs, from the start of the program to its end, as from cron."""

import os
from collections.abc import Callable, Iterator
from functools import partial

from bench.cost import contest
from bench.cost.farm import Farm, Plan
from bench.cost.interpreter import Interpreter
from bench.cost.kit import Kit
from bench.cost.place import OF_JOBS, node_collectors
from bench.cost.result import Line, Table, ratio

SIZES = (300, 2000)
PROMISED = 300
PROMISE = 1.2
STANDIN = "Sonar stand-in, once"
# No site packages and no environment to look through: what the package's own start needs is named.
START = "import sys; sys.path[:0] = {places!r}; from jobsight.cli.main import main; sys.exit(main())"


def measure(kit: Kit) -> Iterator[Table]:
    for size in SIZES:
        yield _at(kit, size)


def _at(kit: Kit, size: int) -> Table:
    there = sum(name.isdecimal() for name in os.listdir("/proc"))
    with Farm(kit.farm, Plan(jobs=max(1, size - there))) as farm:
        takers: dict[str, Callable[[], float]] = {}
        for python in kit.pythons:
            takers |= {name: partial(contest.once, kit.cpu, *command) for name, command in lean(kit, python).items()}
            plain = partial(
                contest.once,
                kit.cpu,
                python.path,
                "-m",
                "jobsight",
                "sample",
                "process",
                environment=python.environment,
            )
            takers[f"python -m jobsight sample process, {python}"] = plain
        if kit.standin:
            takers[STANDIN] = partial(contest.once, kit.cpu, kit.standin, "once")
        takers["ps"] = partial(contest.once, kit.cpu, *contest.PS)
        census = contest.Census()
        costs = contest.rounds(takers, kit.rounds, lambda: None, census)
    lines: list[Line] = []
    for name in costs:
        promised = size == PROMISED and not name.startswith("python -m")
        if name not in (STANDIN, "ps"):
            lines += ratio(costs, name, STANDIN, PROMISE if promised else None)
    conditions = [f"{farm.kind}; {kit.rounds} rounds; output thrown away"]
    return Table(f"A single run, {size} processes", conditions, costs, lines, census)


def lean(kit: Kit, python: Interpreter) -> dict[str, tuple[str, ...]]:
    """Commands by name. The node's collectors run too in `agent --once`, and settings are read."""
    start = START.format(places=list(python.places + yaml_of(python)))
    own = (python.path, "-I", "-S", "-X", "frozen_modules=on", "-c", start)
    names = [name for name in node_collectors() if name not in OF_JOBS]
    settings = kit.place("once").settings(["process", *names], 30)
    return {
        f"sample process, {python}": (*own, "sample", "process"),
        f"agent --once, process and node, {python}": (*own, "agent", "--once", "--settings", settings),
    }


def yaml_of(python: Interpreter) -> tuple[str, ...]:
    """Where PyYAML is: without site packages it must be said."""
    return (os.path.dirname(os.path.dirname(python.yaml)),)
