"""Memory that was given to a job and never used."""

from typing import NamedTuple

from jobsight.analyse.case import CUT_SHORT, Case
from jobsight.analyse.finding import GIB, Mark, Waste, finding
from jobsight.formats.number import duration, size
from jobsight.schema.units import Bytes, Seconds


class Limits(NamedTuple):
    """When memory is to spare."""

    enabled: bool = True
    share: float = 0.25
    """Of the memory given, less than this part was ever used."""
    spare: Bytes = Bytes(16 * GIB)
    """Less than this on a node is left alone."""
    least: Seconds = Seconds(1800)
    """Shorter jobs do not matter."""


def applies(case: Case, limits: Limits) -> bool:
    # Without the scheduler's word the limit may be the whole machine's, which nobody asked for.
    told = case.figures.batch is not None
    return case.batch and told and case.lasts(limits.least) and case.state not in CUT_SHORT


@finding(
    "Spare memory",
    why="Memory that a job holds keeps other jobs off the node, whether it is used or not.",
    how="Ask for the peak and a fifth more.",
    applies=applies,
)
def spare_memory(case: Case, limits: Limits) -> Mark | None:
    peak, given = case.figures.memory_peak, case.figures.memory_limit
    if peak is None or not given or peak >= limits.share * given or given - peak < limits.spare:
        return None
    spare = (given - peak) * case.node_count
    where = " on a node" if case.node_count > 1 else ""
    return Mark(
        f"It never had more than {size(peak)} of {size(given)}{where} in {duration(case.figures.elapsed)}.",
        {"memory_peak": peak, "memory_given": given, "share": peak / given},
        Waste(gib_hours=spare / GIB * case.hours),
    )
