"""A job that worked, and then did nothing for the rest of its time."""

from fnmatch import fnmatchcase
from typing import NamedTuple

from jobsight.analyse.case import Case
from jobsight.analyse.finding import HOUR, Mark, Waste, finding
from jobsight.formats.number import duration
from jobsight.schema.units import Seconds


class Limits(NamedTuple):
    """When a job hangs."""

    enabled: bool = True
    idle: Seconds = Seconds(3600)
    """It did nothing for at least so long, up to its end or to now,"""
    share: float = 0.2
    """and for at least this part of its time."""
    names: tuple[str, ...] = ("interactive", "bash", "sh", "zsh", "sys/dashboard/*", "*jupyter*")
    """Jobs of such names wait for somebody, and are left alone."""


def applies(case: Case, limits: Limits) -> bool:
    # Of a session somebody may be at lunch. Cards may compute while no core does.
    waits = any(fnmatchcase(case.figures.name, pattern) for pattern in limits.names)
    still = case.figures.gpu_time == 0 if case.gpus else not case.figures.gpu_time
    known = case.busy_until is not None and still
    return case.batch and known and not waits and case.lasts(limits.idle)


@finding(
    "Hung job",
    why="It holds all it was given and waits for something that does not come.",
    how="See what its processes wait for; end it. A program that stops when one rank fails loses less.",
    applies=applies,
    instead_of=("idle_cores", "short_limit", "greedy", "imbalance"),
)
def hung(case: Case, limits: Limits) -> Mark | None:
    if case.busy_until is None or case.sliced_until is None:
        return None
    # What was not looked at is neither idle nor busy.
    until = min(case.sliced_until, case.end)
    idle = until - case.busy_until
    if idle < max(limits.idle, limits.share * case.figures.elapsed):
        return None
    return Mark(
        f"It did nothing in its last {duration(idle)} of {duration(case.figures.elapsed)}.",
        {"idle": idle, "elapsed": case.figures.elapsed},
        Waste(core_hours=(case.figures.cpus or 0) * idle / HOUR),
        begin=case.busy_until,
        end=until,
    )
