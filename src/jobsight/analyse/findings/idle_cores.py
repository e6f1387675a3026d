"""Cores that were given to a job and not used."""

from typing import NamedTuple

from jobsight.analyse.case import CUT_SHORT, Case
from jobsight.analyse.finding import Mark, Waste, finding
from jobsight.formats.number import cores, duration
from jobsight.schema.units import Seconds


class Limits(NamedTuple):
    """When cores are idle."""

    enabled: bool = True
    share: float = 0.5
    """Of the cores given, less than this part was used on average."""
    cpus: int = 4
    """Jobs that were given fewer are left alone."""
    with_gpus: bool = False
    """Whether jobs that hold GPUs are judged, too: they get cores with their cards, and often need few."""
    least: Seconds = Seconds(1800)
    """Shorter jobs do not matter."""


def applies(case: Case, limits: Limits) -> bool:
    return (
        case.batch
        and (case.figures.cpus or 0) >= limits.cpus
        and case.lasts(limits.least)
        and case.state not in CUT_SHORT
        and (limits.with_gpus or not case.gpus)
    )


@finding(
    "Idle cores",
    why="Cores that a job holds and does not use are nobody's.",
    how="Ask for as many cores as it uses, or have it start as many threads or ranks as it was given cores.",
    applies=applies,
)
def idle_cores(case: Case, limits: Limits) -> Mark | None:
    used, given, part = case.figures.cores_mean, case.figures.cpus, case.efficiency
    if used is None or given is None or part is None or part >= limits.share:
        return None
    return Mark(
        f"It used {cores(used)} of {given} cores over {duration(case.figures.elapsed)}.",
        {"cores_used": used, "cores_given": given, "share": part},
        Waste(core_hours=(given - used) * case.hours),
    )
