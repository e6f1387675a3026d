"""What it costs to sample the node as a whole: all collectors but those of processes and jobs."""

from collections import defaultdict
from contextlib import ExitStack

from bench.cost import contest
from bench.cost.exporter import Exporter
from bench.cost.kit import Kit
from bench.cost.place import OF_JOBS, node_collectors
from bench.cost.result import Table, ratio

from jobsight.settings import from_values

EVERY = 0.001
AS_DUE = "agent, node collectors, each when it is due"
ALWAYS = "agent, node collectors, all in every sample"
# They ask about jobs, one of them by way of processes that the process collector would know: alone it looks for them.
WITH = f"{ALWAYS}, {' and '.join(OF_JOBS)} too"
EXPORTER = "node_exporter"
PROMISE = 0.25
# Seconds between two samples of most collectors. Hardware is described once an hour, filesystems every five minutes.
SAMPLE = 30.0
# Cheap samples: many are needed, and possible.
TIMES = 4


def measure(kit: Kit) -> Table:
    ours = [name for name in node_collectors() if name not in OF_JOBS]
    paces = by_pace(ours)
    named = {ALWAYS: ours, WITH: node_collectors()} | {alone(pace): names for pace, names in paces.items()}
    with ExitStack() as stack:
        chosen = {name: kit.place(name).settings(names, EVERY) for name, names in named.items()}
        takers = {name: stack.enter_context(kit.agent(settings)).sample for name, settings in chosen.items()}
        if kit.node_exporter:
            takers[EXPORTER] = stack.enter_context(Exporter(kit.cpu, kit.node_exporter)).sample
        census = contest.Census()
        costs = contest.rounds(takers, kit.rounds * TIMES, lambda: None, census)
    costs[AS_DUE] = as_due({pace: costs[alone(pace)] for pace in paces})
    conditions = [
        f"{kit.rounds * TIMES} rounds; Python: {kit.pythons[0]}",
        *(f"every {pace:g} s: {', '.join(names)}" for pace, names in paces.items()),
        f"each when it is due: the sum of those, times {SAMPLE:g} s over their interval",
        "node_exporter: one scrape with what it collects by default",
    ]
    lines = ratio(costs, AS_DUE, EXPORTER, PROMISE) + ratio(costs, ALWAYS, EXPORTER) + ratio(costs, WITH, EXPORTER)
    return Table("The node as a whole", conditions, costs, lines, census)


def by_pace(names: list[str]) -> dict[float, list[str]]:
    """Collectors by the seconds between their samples where the settings say nothing."""
    found: dict[float, list[str]] = defaultdict(list)
    for plan in from_values({}, only=names).collect:
        if plan.name in names:
            found[plan.every].append(plan.name)
    return found


def alone(pace: float) -> str:
    return f"agent, those due every {pace:g} s"


def as_due(costs: dict[float, contest.Cost]) -> contest.Cost:
    """What the node's collectors take of a sampling interval."""
    return contest.Cost(
        sum(cost.median * SAMPLE / pace for pace, cost in costs.items()),
        sum(cost.least * SAMPLE / pace for pace, cost in costs.items()),
    )
