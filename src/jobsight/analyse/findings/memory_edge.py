"""A job that came close to its memory limit and got away with it."""

from typing import NamedTuple

from jobsight.analyse.case import Case
from jobsight.analyse.finding import Mark, finding
from jobsight.formats.number import size
from jobsight.schema.units import Seconds


class Limits(NamedTuple):
    """When it is close."""

    enabled: bool = True
    share: float = 0.95
    """Of the memory given, at least this part was in use at the peak."""
    least: Seconds = Seconds(600)
    """Shorter jobs do not matter."""


def applies(case: Case, limits: Limits) -> bool:
    # Of those that went over the edge their end tells.
    over = bool(case.figures.oom_kills) or case.state == "OUT_OF_MEMORY"
    return case.batch and case.lasts(limits.least) and not over


@finding(
    "Memory edge",
    why="A little more and the kernel ends the job, and its work is lost.",
    how="Ask for a fifth more memory than the peak.",
    applies=applies,
)
def memory_edge(case: Case, limits: Limits) -> Mark | None:
    peak, given = case.figures.memory_peak, case.figures.memory_limit
    if peak is None or not given or peak < limits.share * given:
        return None
    nodes = tuple(part.node for part in case.counted if (part.memory_peak or 0) >= limits.share * given)
    return Mark(
        f"It had {size(peak)} of {size(given)}.",
        {"memory_peak": peak, "memory_given": given, "share": peak / given},
        nodes=nodes,
    )
