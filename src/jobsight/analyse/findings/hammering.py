"""Storage that is read or written all the time, or in small pieces."""

from typing import NamedTuple

from jobsight.analyse.case import Case
from jobsight.analyse.finding import Mark, finding
from jobsight.formats.number import digits, volume
from jobsight.schema.units import Seconds


class Limits(NamedTuple):
    """When that is too much."""

    enabled: bool = True
    operations: float = 2000.0
    """Reads and writes a second on a node, on average over the job's life."""
    rate: float = 300e6
    """Bytes a second on a node, on average over the job's life."""
    least: Seconds = Seconds(1800)
    """Shorter jobs do not matter."""


def applies(case: Case, limits: Limits) -> bool:
    # Of one that nobody saw begin, what it had done before is not to be spread over what was seen.
    return case.lasts(limits.least) and case.figures.cores_mean is not None


@finding(
    "File-system hammering",
    why="A shared file system serves everybody, and one job that never lets go of it slows all others down.",
    how="Read and write in large pieces, keep what is thrown away on the node's own disk, open files once.",
    applies=applies,
)
def hammering(case: Case, limits: Limits) -> Mark | None:
    found = []
    for part in case.counted:
        seconds = max(part.covered, case.figures.elapsed)
        moved = None if part.read is None and part.written is None else (part.read or 0) + (part.written or 0)
        rate = None if moved is None else moved / seconds
        operations = None if part.operations is None else part.operations / seconds
        if (rate or 0.0) >= limits.rate or (operations or 0.0) >= limits.operations:
            found.append((part.node, rate or 0.0, operations or 0.0))
    if not found:
        return None
    rate, operations = max(rate for _, rate, _ in found), max(count for _, _, count in found)
    said = f"{volume(rate)}/s" + (f" in {digits(operations)} operations a second" if operations else "")
    return Mark(
        f"It moved {said} on a node, all the time.",
        {"rate": rate, "operations": operations},
        nodes=tuple(node for node, _, _ in found),
    )
