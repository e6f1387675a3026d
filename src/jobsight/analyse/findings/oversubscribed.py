"""More threads that want to run than cores to run on."""

from typing import NamedTuple

from jobsight.analyse.case import Case
from jobsight.analyse.finding import Mark, finding
from jobsight.formats.number import ratio
from jobsight.schema.units import Seconds


class Limits(NamedTuple):
    """When there are too many."""

    enabled: bool = True
    threads: float = 2.0
    """At least so many threads for each core given,"""
    waited: float = 0.3
    """and for at least this part of the time one of them waited for a core. Where nobody counts that none is told."""
    least: Seconds = Seconds(1800)
    """Shorter jobs do not matter."""


def applies(case: Case, limits: Limits) -> bool:
    known = case.figures.cores_mean is not None and bool(case.figures.cpus)
    return case.batch and known and case.lasts(limits.least)


@finding(
    "Oversubscribed cores",
    why="Threads that take turns on a core wait for each other and empty its caches: the job gets slower.",
    how="Start as many threads as it was given cores: set OMP_NUM_THREADS, or the program's own option.",
    applies=applies,
)
def oversubscribed(case: Case, limits: Limits) -> Mark | None:
    threads, given = case.figures.threads_peak, case.figures.cpus
    told = [part.cpu_waited for part in case.counted if part.cpu_waited is not None]
    if threads is None or not given or not told:
        return None
    # Threads are those of one node, and so is what they may run on.
    each = threads * case.node_count / given
    waited = min(1.0, max(told) / case.figures.elapsed)
    if each < limits.threads or waited < limits.waited:
        return None
    return Mark(
        f"{threads} threads on {given // case.node_count} cores of a node: for {ratio(waited)} of the time some of "
        "them waited for a core.",
        {"threads": threads, "cores_given": given, "waited": waited},
    )
