"""A time limit many times as long as the job."""

from typing import NamedTuple

from jobsight.analyse.case import Case
from jobsight.analyse.finding import Mark, finding
from jobsight.formats.number import duration
from jobsight.schema.units import Seconds


class Limits(NamedTuple):
    """When a limit is too long."""

    enabled: bool = True
    share: float = 0.1
    """The job took less than this part of its limit."""
    least: Seconds = Seconds(1800)
    """Shorter jobs do not matter."""
    spare: Seconds = Seconds(4 * 3600)
    """So much time or more was left."""


def applies(case: Case, limits: Limits) -> bool:
    return case.state == "COMPLETED" and case.figures.elapsed >= limits.least


@finding(
    "Time limit too long",
    why="A scheduler fills gaps with jobs that fit into them: one that asks for days waits longer than it must.",
    how="Ask for what it takes and a quarter more.",
    applies=applies,
)
def long_limit(case: Case, limits: Limits) -> Mark | None:
    limit, took = case.figures.reserved["time"].given, case.figures.elapsed
    if not limit or took >= limits.share * limit or limit - took < limits.spare:
        return None
    return Mark(
        f"It took {duration(took)} of {duration(limit)}.",
        {"elapsed": took, "limit": limit, "share": took / limit},
        confidence="high",
    )
