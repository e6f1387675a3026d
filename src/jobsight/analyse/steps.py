"""Step functions of time: what was measured, over which seconds, and where nothing is known.

Nodes sample at different instants. A value holds over its own interval and no longer; where a node has no value
the sum has none from it, and coverage says so. Nothing is bridged.
"""

from collections.abc import Iterable
from typing import NamedTuple


class Step(NamedTuple):
    """One value from `start` to `end`, in seconds since 1970."""

    start: float
    end: float
    value: float


def total(parts: Iterable[list[Step]]) -> list[Step]:
    """The sum of several step functions, cut wherever one of them changes."""
    changes: dict[float, list[float]] = {}
    for step in (step for part in parts for step in part if step.end > step.start):
        opened = changes.setdefault(step.start, [0.0, 0])
        opened[0] += step.value
        opened[1] += 1
        closed = changes.setdefault(step.end, [0.0, 0])
        closed[0] -= step.value
        closed[1] -= 1
    found: list[Step] = []
    value, open_steps, start = 0.0, 0.0, 0.0
    for instant in sorted(changes):
        if open_steps:
            found.append(Step(start, instant, value))
        value += changes[instant][0]
        open_steps += changes[instant][1]
        if not open_steps:
            value = 0.0  # what is left are rounding errors
        start = instant
    return found


def covered(steps: list[Step]) -> float:
    """Seconds with a value."""
    return sum(step.end - step.start for step in steps)


def integral(steps: list[Step]) -> float:
    """Value times seconds."""
    return sum((step.end - step.start) * step.value for step in steps)


def mean(steps: list[Step]) -> float | None:
    """Weighted by time, over the seconds with a value; None if there are none."""
    seconds = covered(steps)
    return integral(steps) / seconds if seconds else None


def peak(steps: list[Step]) -> float | None:
    return max((step.value for step in steps), default=None)


def thin(steps: list[Step], buckets: int) -> list[Step]:
    """Fewer steps for a chart: in each bucket the lowest and the highest survive, so peaks and dips are seen."""
    if len(steps) <= 2 * buckets:
        return steps
    first, last = steps[0].start, steps[-1].end
    width = (last - first) / buckets or 1.0
    kept: dict[tuple[int, bool], Step] = {}
    for step in steps:
        bucket = int((step.start - first) / width)
        low, high = kept.get((bucket, False)), kept.get((bucket, True))
        if low is None or step.value < low.value:
            kept[bucket, False] = step
        if high is None or step.value > high.value:
            kept[bucket, True] = step
    return sorted(set(kept.values()))
