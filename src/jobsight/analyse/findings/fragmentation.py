"""A job spread over more nodes than it needs."""

from math import ceil
from typing import NamedTuple

from jobsight.analyse.case import Case
from jobsight.analyse.finding import Mark, finding
from jobsight.schema.units import Seconds


class Limits(NamedTuple):
    """When it is spread too thin."""

    enabled: bool = True
    nodes: float = 0.5
    """It would fit on this part of its nodes, or fewer."""
    room: float = 0.95
    """Of a node's memory, so much can be given to jobs."""
    least: Seconds = Seconds(1800)
    """Shorter jobs do not matter."""


def applies(case: Case, limits: Limits) -> bool:
    known = len(case.machines) == case.node_count > 1
    return case.batch and known and case.figures.elapsed >= limits.least and case.figures.state != "pending"


@finding(
    "Fragmentation",
    why="A few cores on each of many nodes keep whole nodes from others, and the network slows the job down.",
    how="Ask for fewer nodes and more tasks on each: --nodes and --ntasks-per-node.",
    applies=applies,
)
def fragmentation(case: Case, limits: Limits) -> Mark | None:
    cpus, nodes, memory = case.figures.cpus, case.node_count, case.figures.reserved["memory"].given
    smallest = min(machine.cpus or 0 for machine in case.machines)
    if not cpus or not smallest:
        return None
    least = ceil(cpus / smallest)
    room = min(machine.memory or 0 for machine in case.machines)
    if memory and room:
        least = max(least, ceil(memory / (limits.room * room)))
    cards = min(machine.gpus or 0 for machine in case.machines)
    if case.gpus:
        least = max(least, ceil(case.gpus / cards) if cards else nodes)
    if least > limits.nodes * nodes:
        return None
    return Mark(
        f"It had {cpus} cores on {nodes} nodes; {least} of them {'has' if least == 1 else 'have'} room for it.",
        {"nodes": nodes, "enough": least, "cores_given": cpus},
        confidence="high",
    )
