"""A job that was ended by its time limit while it was at work."""

from typing import NamedTuple

from jobsight.analyse.case import Case
from jobsight.analyse.finding import Mark, finding
from jobsight.formats.number import duration
from jobsight.schema.units import Seconds


class Limits(NamedTuple):
    """When that matters."""

    enabled: bool = True
    least: Seconds = Seconds(600)
    """Shorter jobs do not matter."""


def applies(case: Case, limits: Limits) -> bool:
    return case.state == "TIMEOUT" and case.figures.elapsed >= limits.least


@finding(
    "Time limit too short",
    why="What it had done since its last checkpoint is lost.",
    how="Ask for more time, or have it write checkpoints and go on from them.",
    applies=applies,
)
def short_limit(case: Case, limits: Limits) -> Mark | None:  # noqa: ARG001
    limit = case.figures.reserved["time"].given
    asked = f" of {duration(limit)}" if limit else ""
    return Mark(
        f"It was ended by its time limit{asked} while it was at work.",
        {"elapsed": case.figures.elapsed, **({"limit": limit} if limit else {})},
        confidence="high",
    )
