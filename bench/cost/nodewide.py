"""What it costs to sample the node as a whole: all collectors but those of processes and jobs."""

from contextlib import ExitStack

from bench.cost import contest
from bench.cost.exporter import Exporter
from bench.cost.kit import Kit
from bench.cost.place import OF_JOBS, node_collectors
from bench.cost.result import Table, ratio

EVERY = 0.001
AGENT = "agent, node collectors"
# They ask about jobs, one of them by way of processes that the process collector would know: alone it looks for them.
WITH = f"agent, node collectors, {' and '.join(OF_JOBS)}"
EXPORTER = "node_exporter"
PROMISE = 0.25
# Cheap samples: many are needed, and possible.
TIMES = 4


def measure(kit: Kit) -> Table:
    with ExitStack() as stack:
        named = {AGENT: [name for name in node_collectors() if name not in OF_JOBS], WITH: node_collectors()}
        chosen = {name: kit.place(name).settings(names, EVERY) for name, names in named.items()}
        takers = {name: stack.enter_context(kit.agent(settings)).sample for name, settings in chosen.items()}
        if kit.node_exporter:
            takers[EXPORTER] = stack.enter_context(Exporter(kit.cpu, kit.node_exporter)).sample
        census = contest.Census()
        costs = contest.rounds(takers, kit.rounds * TIMES, lambda: None, census)
    conditions = [
        f"{kit.rounds * TIMES} rounds; Python: {kit.pythons[0]}",
        f"in every sample: {', '.join(named[AGENT])}",
        "node_exporter: one scrape with what it collects by default",
    ]
    lines = ratio(costs, AGENT, EXPORTER, PROMISE) + ratio(costs, WITH, EXPORTER)
    return Table("The node as a whole", conditions, costs, lines, census)
