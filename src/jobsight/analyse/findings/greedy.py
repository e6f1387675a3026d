"""A whole node, for a small part of it."""

from typing import NamedTuple

from jobsight.analyse.case import CUT_SHORT, Case
from jobsight.analyse.finding import GIB, Mark, Waste, finding
from jobsight.formats.number import cores, size
from jobsight.schema.units import Seconds


class Limits(NamedTuple):
    """When a job is greedy."""

    enabled: bool = True
    whole: float = 0.9
    """Of the cores of its nodes it holds at least this part,"""
    share: float = 0.25
    """and uses less than this part of its cores and of its memory."""
    least: Seconds = Seconds(1800)
    """Shorter jobs do not matter."""


def applies(case: Case, limits: Limits) -> bool:
    return case.batch and len(case.machines) == case.node_count and case.lasts(limits.least)


@finding(
    "Greedy",
    why="Nobody else gets onto a node of which all is held, and most of this one was not used.",
    how="Ask for the cores and the memory that it uses, and let others have the rest of the node.",
    applies=applies,
)
def greedy(case: Case, limits: Limits) -> Mark | None:
    whole = sum(machine.cpus or 0 for machine in case.machines)
    used, given, part = case.figures.cores_mean, case.figures.cpus, case.efficiency
    peak, limit = case.figures.memory_peak, case.figures.memory_limit
    if not whole or used is None or given is None or part is None or peak is None or not limit:
        return None
    if case.state in CUT_SHORT or given < limits.whole * whole or max(part, peak / limit) >= limits.share:
        return None
    return Mark(
        f"It held {given} of {whole} cores and used {cores(used)} of them and {size(peak)} of {size(limit)}.",
        {"cores_used": used, "cores_given": given, "cores": whole, "memory_peak": peak, "memory_given": limit},
        Waste((given - used) * case.hours, None, (limit - peak) / GIB * case.node_count * case.hours),
    )
