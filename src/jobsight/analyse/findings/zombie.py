"""Processes that ended and that nobody waits for."""

from typing import NamedTuple

from jobsight.analyse.case import Case
from jobsight.analyse.finding import Mark, finding


class Limits(NamedTuple):
    """When there are too many."""

    enabled: bool = True
    zombies: int = 3
    """So many at once, or more. One or two are between their end and their parent's next look."""


@finding(
    "Zombies",
    why="Each holds a number of the kernel's until its parent waits for it, and numbers run out.",
    how="Have the program wait for its children; a script can start them under a shell that does.",
)
def zombie(case: Case, limits: Limits) -> Mark | None:
    parts = [part for part in case.parts if (part.zombies_peak or 0) >= limits.zombies]
    if not parts:
        return None
    most = max(part.zombies_peak or 0 for part in parts)
    return Mark(
        f"{most} of its processes had ended and nobody had waited for them.",
        {"zombies": most},
        nodes=tuple(part.node for part in parts),
        confidence="high",
    )
