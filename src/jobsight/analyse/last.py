"""What was last heard of a node, and how far the next sample is from it."""

import math
from typing import Any, NamedTuple

from jobsight.analyse.growth import Ident, Total
from jobsight.analyse.register import DEFAULT_EVERY
from jobsight.analyse.sample import Name
from jobsight.analyse.usage import Interval
from jobsight.ingest.accept import Accepted
from jobsight.store.protocol import FRESH, SLACK

# What describes a machine or its jobs goes out with what is measured there, and may be a moment younger (seconds).
AHEAD = 60.0
# How long what allocations say is remembered.
RECENT = 300.0


class Said(NamedTuple):
    """What an allocation message of a node said of its jobs."""

    time: float
    every: float
    labels: dict[Name, dict[str, Any]]

    def of(self, name: Name, time: float) -> dict[str, Any] | None:
        """What it says of a job at about this time: numbers come back, and a node may have stopped to tell."""
        return self.labels.get(name) if -AHEAD <= time - self.time <= FRESH * self.every + SLACK else None


class Last:
    """The last sample of one boot of a node by one collector."""

    def __init__(self) -> None:
        self.clock = 0.0
        self.time = 0.0
        self.every = DEFAULT_EVERY
        self.totals: dict[Ident, Total] = {}
        self.groups: dict[Name, dict[str, Any]] = {}
        self.cards: dict[str, float] = {}
        self.jobs: dict[Name, str] = {}

    def move_on(self, sample: Accepted) -> None:
        self.every = every(sample, self)
        self.clock, self.time = clock(sample), sample.time


def clock(sample: Accepted) -> float:
    """What orders and spaces a boot's samples: seconds since boot, which nobody sets ahead or back."""
    return sample.uptime or sample.time


def every(sample: Accepted, last: Last) -> float:
    """Seconds between samples: as the sender says, or as they come where it is run by hand or by cron."""
    return sample.every or (clock(sample) - last.clock if last.clock else DEFAULT_EVERY)


class Since(NamedTuple):
    """How far a sample is from the last one, the same for all its jobs."""

    seconds: float
    """Without end for a first one."""
    every: float
    holds: float
    """How long the last one may stand before time is missing. Who samples more often from now on had not said so
    then, and who samples more rarely begins at a time of its own.
    """


def since_last(sample: Accepted, last: Last) -> Since:
    now = every(sample, last)
    return Since(clock(sample) - last.clock if last.clock else math.inf, now, FRESH * max(now, last.every))


def comes_late(sample: Accepted, boots: dict[str, Last]) -> bool:
    """Whether later ones were counted: of this boot, or of another if this one is new to us."""
    last = boots.get(sample.boot)
    if last is not None:
        return clock(sample) <= last.clock
    return any(sample.time < other.time for other in boots.values())


def interval_of(since: Since, age: float | None, *, known: bool) -> Interval:
    """The interval that ends now: since the last sample, or over the job's age here if that is less.

    Nobody knows how long a control group had been there that is seen with its node for the first time: what it
    used until now counts, over no time at all. What its processes may tell of that does not count here: whether
    they are heard before it or after must make no difference.
    """
    if age is None and since.seconds == math.inf:
        return Interval(0.0, 0.0)
    seconds = since.seconds if known or age is None else min(since.seconds, max(0.0, age))
    gap = since.seconds > since.holds
    return Interval(seconds, min(seconds, since.every) if gap else seconds)
