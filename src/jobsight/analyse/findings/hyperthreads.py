"""Two threads on one core while other cores have nothing to do."""

from typing import NamedTuple

from jobsight.analyse.case import Case
from jobsight.analyse.finding import Mark, Waste, finding
from jobsight.schema.units import Seconds


class Limits(NamedTuple):
    """When threads share cores for no reason."""

    enabled: bool = True
    both: float = 0.2
    """Of the node's cores, at least this part had all their hyper-threads busy,"""
    none: float = 0.2
    """while nothing ran on at least this part."""
    least: Seconds = Seconds(1800)
    """Shorter jobs do not matter."""


def applies(case: Case, limits: Limits) -> bool:
    return case.pairs is not None and case.lasts(limits.least)


@finding(
    "Hyper-threads used for cores",
    why="Two threads on one core get little more done than one, and the other cores are held for nothing.",
    how="Bind one thread to each core: --hint=nomultithread, or OMP_PLACES=cores.",
    applies=applies,
)
def hyperthreads(case: Case, limits: Limits) -> Mark | None:
    pairs = case.pairs
    if pairs is None or pairs.both < limits.both * pairs.cores or pairs.none < limits.none * pairs.cores:
        return None
    return Mark(
        f"{pairs.both} of {pairs.cores} cores ran two threads each while {pairs.none} had nothing to do.",
        {"both": pairs.both, "none": pairs.none, "cores": pairs.cores},
        Waste(core_hours=min(pairs.none, pairs.both) * case.hours),
        # How the kernel numbers hyper-threads is assumed.
        confidence="medium",
    )
