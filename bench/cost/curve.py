"""How the cost of a sample grows with the processes, those at work, and their threads."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

from bench.cost import contest
from bench.cost.farm import Farm, Plan
from bench.cost.kit import Kit
from bench.cost.result import Line, Table, ratio
from bench.cost.sampling import AGENT, COLD, STANDIN, agents

PLANS = (Plan(500), Plan(2000), Plan(5000), Plan(300, threads=64))
PERCENTS = (1, 10, 100)
# A process at work uses a tick; thousands of them take a while, and fewer rounds must do.
TICK = 0.0102
LONGEST = 60.0
FEWEST = 3


def measure(kit: Kit) -> Iterator[Table]:
    for plan in PLANS:
        yield _along(kit, plan)


def _along(kit: Kit, plan: Plan) -> Table:
    """One farm, with more and more of it at work."""
    costs: dict[str, contest.Cost] = {}
    lines: list[Line] = []
    census = contest.Census()
    with Farm(kit.farm, plan) as farm, ExitStack() as stack:
        farm.grow_old()
        takers = agents(kit, stack, farm)
        if kit.standin:
            takers[STANDIN] = stack.enter_context(kit.rival(kit.standin)).sample
        for percent in PERCENTS:
            count = max(FEWEST, min(kit.rounds, int(LONGEST / (plan.jobs * percent / 100 * TICK))))
            found = contest.rounds(takers, count, partial(farm.poke, percent), census)
            costs |= {f"{percent:>3} % at work: {name}": cost for name, cost in found.items()}
            for ours in (AGENT, COLD):
                lines += [
                    line._replace(what=f"{percent:>3} % at work: {line.what}") for line in ratio(found, ours, STANDIN)
                ]
    conditions = [f"up to {kit.rounds} rounds, fewer where thousands work; {farm.kind}; Python: {kit.pythons[0]}"]
    return Table(f"The curve: {plan}", conditions, costs, lines, census)
