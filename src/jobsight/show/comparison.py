"""Jobs side by side: the same for terminal and page. Numbers are set against the first job's."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jobsight.formats.number import cores, digits, duration, ratio, size, volume

# Two numbers that differ by less are the same.
SAME = 0.02


class Row(NamedTuple):
    """One figure of all jobs."""

    label: str
    cells: list[str]
    times: list[str]
    """By how much each is more than the first: `1.9 ×`; empty where it is the same, or where one is not known."""


Shown = Callable[[Any], str]


def rows(jobs: list[dict[str, Any]]) -> list[Row]:
    """Of profiles as `View.job` has them."""
    figures: list[tuple[str, Callable[[dict[str, Any]], Any], Shown]] = [
        ("state", lambda job: job["answers"]["ending"]["kind"], str),
        ("nodes", lambda job: len(job["summary"]["nodes"]), str),
        ("cores given", lambda job: job["summary"]["cpus"], cores),
        ("cores used, mean", lambda job: job["summary"]["cores_mean"], cores),
        ("elapsed", lambda job: job["summary"]["elapsed"], duration),
        ("CPU time", lambda job: job["summary"]["cpu_time"], duration),
        ("core hours held", lambda job: job["answers"]["request"]["core_hours"], _number),
        ("memory, peak on a node", lambda job: job["summary"]["memory_peak"], size),
        ("memory, limit on a node", lambda job: job["summary"]["memory_limit"], size),
        ("GPUs", lambda job: len(job["answers"]["cards"]), str),
        ("read", lambda job: job["summary"]["read"], volume),
        ("written", lambda job: job["summary"]["written"], volume),
        ("imbalance of nodes", lambda job: job["answers"]["balance"]["imbalance"], ratio),
        ("phases", lambda job: len(job["answers"]["phases"]), str),
        ("binds", lambda job: job["answers"]["binding"]["resource"], str),
        ("coverage", lambda job: job["summary"]["coverage"], ratio),
    ]
    return [_row(label, [take(job) for job in jobs], shown) for label, take, shown in figures]


def _row(label: str, values: list[Any], shown: Shown) -> Row:
    return Row(label, [shown(value) for value in values], [_times(values[0], value) for value in values])


def _times(first: Any, value: Any) -> str:
    known = all(isinstance(one, int | float) and one > 0 for one in (first, value))
    if not known or abs(value / first - 1) < SAME:
        return ""
    return f"{digits(value / first)} ×"


def _number(value: float | None) -> str:
    return "—" if value is None else digits(value)


def name(job: dict[str, Any]) -> str:
    """What heads a job's column."""
    return f"{job['summary']['id']} {job['summary']['name'] or job['summary']['command']}"
