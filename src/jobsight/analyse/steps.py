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


# Two steps this close belong together: rounding, not a gap.
CLOSE = 0.01


def thin(steps: list[Step], buckets: int) -> list[Step]:
    """Fewer steps for a chart, over the same seconds: in each bucket the lowest and the highest value survive, so
    peaks and dips are seen, and a gap stays a gap.
    """
    if len(steps) <= 2 * buckets:
        return steps
    width = (steps[-1].end - steps[0].start) / buckets or 1.0
    runs: list[list[Step]] = []
    bucket = -1
    for step in steps:
        place = int((step.start - steps[0].start) / width)
        if runs and place == bucket and step.start - runs[-1][-1].end < CLOSE:
            runs[-1].append(step)
        else:
            runs.append([step])
        bucket = place
    return [step for run in runs for step in _extremes(run)]


def _extremes(run: list[Step]) -> list[Step]:
    """One run of adjoining steps as at most two: its lowest and its highest, in the order they came."""
    lowest, highest = min(run, key=lambda step: step.value), max(run, key=lambda step: step.value)
    if lowest.value == highest.value:
        return [Step(run[0].start, run[-1].end, lowest.value)]
    first, second = sorted((lowest, highest))
    return [Step(run[0].start, second.start, first.value), Step(second.start, run[-1].end, second.value)]
