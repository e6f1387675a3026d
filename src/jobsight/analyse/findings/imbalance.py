"""Several nodes, of which few do the work."""

from typing import NamedTuple

from jobsight.analyse.case import CUT_SHORT, Case
from jobsight.analyse.finding import HOUR, Mark, Waste, finding
from jobsight.formats.number import ratio
from jobsight.schema.units import Seconds


class Limits(NamedTuple):
    """When work is badly spread."""

    enabled: bool = True
    idle: float = 0.1
    """A node that does less than this part of what the busiest does is idle,"""
    nodes: float = 0.25
    """and at least this part of the nodes is."""
    least: Seconds = Seconds(1800)
    """Shorter jobs do not matter."""


def applies(case: Case, limits: Limits) -> bool:
    return case.batch and len(case.counted) > 1 and case.lasts(limits.least) and case.state not in CUT_SHORT


@finding(
    "Idle nodes",
    why="Nodes that a job holds and does not use are nobody's.",
    how="Ask for the nodes that work, or look why the work does not spread: the launcher, the problem's size.",
    applies=applies,
)
def imbalance(case: Case, limits: Limits) -> Mark | None:
    used = {part.node: part.cpu_time for part in case.counted if part.cpu_time is not None}
    most = max(used.values(), default=0.0)
    idle = sorted(node for node, spent in used.items() if spent < limits.idle * most)
    if not idle or len(idle) < limits.nodes * len(used):
        return None
    cores = sum((part.cpus or 0) * part.seconds for part in case.counted if part.node in idle) / HOUR
    return Mark(
        f"{len(idle)} of {len(used)} nodes did next to nothing: the busiest did {ratio(most / sum(used.values()))} "
        "of the work.",
        {"idle": len(idle), "nodes": len(used)},
        Waste(core_hours=cores),
        nodes=tuple(idle),
    )
