"""A job so small that a scarce card is wasted on it."""

from typing import NamedTuple

from jobsight.analyse.case import Case
from jobsight.analyse.finding import HOUR, Mark, Waste, finding
from jobsight.formats.number import ratio
from jobsight.schema.units import Seconds


class Limits(NamedTuple):
    """When a job is small."""

    enabled: bool = True
    busy: float = 0.5
    """Its cards computed less than this part of the time,"""
    memory: float = 0.2
    """and less than this part of their memory was ever in use."""
    least: Seconds = Seconds(1800)
    """Shorter jobs do not matter."""


def applies(case: Case, limits: Limits) -> bool:
    return case.gpus > 0 and case.lasts(limits.least)


@finding(
    "Mouse",
    why="A large card does for this job what a slice of one would, and others wait for whole ones.",
    how="Ask for a smaller card or an instance of a divided one, or run several of these on one card.",
    applies=applies,
)
def mouse(case: Case, limits: Limits) -> Mark | None:
    busy, memory = case.gpu_busy, case.gpu_memory
    if busy is None or memory is None or busy >= limits.busy or memory >= limits.memory:
        return None
    held = (case.figures.gpu_held or 0.0) / HOUR
    return Mark(
        f"Its cards computed {ratio(busy)} of the time, and {ratio(memory)} of their memory was in use at the most.",
        {"busy": busy, "memory": memory, "gpus": case.gpus},
        Waste(gpu_hours=held * (1 - max(busy, memory))),
    )
