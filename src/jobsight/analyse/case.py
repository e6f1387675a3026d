"""A job as findings see it: its figures, where it ran, and whether others wanted what it had. Pure."""

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from jobsight.analyse.binding import confidence
from jobsight.analyse.cards import Card
from jobsight.analyse.job import LOCAL, Part
from jobsight.analyse.summary import Summary

Place = tuple[str, str]
"""Cluster and node."""
Span = tuple[float, float]
# Ends that say nothing of how much a job needs.
CUT_SHORT = frozenset({"NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "CANCELLED"})


class Machine(NamedTuple):
    """A node, as far as it is known."""

    cpus: int | None = None
    memory: int | None = None
    cores: int | None = None
    """Physical ones."""
    threads: int | None = None
    """Logical CPUs of one of them."""
    gpus: int | None = None
    gpu_memory: int | None = None
    """Of one card."""
    partitions: tuple[str, ...] = ()
    scheduled: bool = False
    """Whether a scheduler gives it away."""


class Hour(NamedTuple):
    """An hour of a node: how many threads wanted to run, and how long some of them waited."""

    begin: float
    load: float | None
    pressure: float | None
    """Part of the time in which a task waited for a CPU."""


class Pairs(NamedTuple):
    """Physical cores of a node while one job had it alone."""

    both: int
    """All their hyper-threads were busy."""
    none: int
    """Nothing ran on them."""
    cores: int


class Partition(NamedTuple):
    """A partition of a cluster."""

    nodes: int
    cpus: int
    """Of all its nodes."""
    machine: Machine
    """The smallest of them."""


class Waits:
    """When jobs of a partition waited for others to end."""

    def __init__(self, spans: Iterable[tuple[float, float, str]], since: float = 0.0) -> None:
        """From when to when, and whose. Who waited before `since` is not known."""
        self._spans = sorted(spans)
        self._since = since

    def share(self, begin: float, end: float, but: str = "") -> float:
        """Of a time, as far as it is known, the part in which somebody else's job waited."""
        begin = max(begin, self._since)
        if end <= begin:
            return 0.0
        covered, reached = 0.0, begin
        # All that begin before the end: one that began long ago may still wait.
        for first, last, owner in self._spans[: bisect_left(self._spans, (end,))]:
            if owner != but and last > reached:
                covered += min(last, end) - max(first, reached)
                reached = min(last, end)
            if reached >= end:
                break
        return covered / (end - begin)


class Around(NamedTuple):
    """What else there was: where it ran, and who wanted the same. Shared by many cases."""

    partition: Partition | None = None
    """The one it ran in."""
    partitions: tuple[tuple[str, Machine], ...] = ()
    """Others of its cluster, by name."""
    waits: Waits | None = None
    """Jobs that waited for its partition."""
    hours: tuple[Hour, ...] = ()
    """Of its node, if that has no scheduler."""
    people: tuple[tuple[float, float, str], ...] = ()
    """Sessions there: from when to when, and whose."""


NOTHING = Around()


class Case(NamedTuple):
    """One job and its surroundings."""

    figures: Summary
    parts: tuple[Part, ...] = ()
    """By every source."""
    machines: tuple[Machine, ...] = ()
    """Of its nodes; fewer where some are not known."""
    busy_until: float | None = None
    """End of the last five minutes in which it did something."""
    sliced_until: float | None = None
    """How far that was looked at."""
    pairs: Pairs | None = None
    cards: tuple[Card, ...] = ()
    """Its cards one by one, where that was looked at."""
    around: Around = NOTHING

    @property
    def batch(self) -> bool:
        """Whether a scheduler gave it what it has."""
        return self.figures.scheduler not in LOCAL

    @property
    def hours(self) -> float:
        return self.figures.elapsed / 3600.0

    @property
    def state(self) -> str:
        """The scheduler's word; empty if it said none."""
        return self.figures.batch.state if self.figures.batch is not None else ""

    @property
    def going(self) -> bool:
        return self.figures.state == "running"

    @property
    def end(self) -> float:
        return self.figures.started + self.figures.elapsed if not self.going else self.figures.seen

    @property
    def node_count(self) -> int:
        return max(1, len(self.figures.nodes))

    @property
    def counted(self) -> list[Part]:
        """The parts that its totals are made of."""
        return [part for part in self.parts if part.source == self.figures.source]

    @property
    def gpus(self) -> int:
        """Cards it was given, or was seen to hold."""
        told = self.figures.batch.gpus if self.figures.batch is not None else None
        return told or self.figures.gpus or 0

    @property
    def gpu_busy(self) -> float | None:
        """Of the time in which its cards were observed, the part in which they computed."""
        cards = self.figures.reserved["gpus"]
        return cards.used / cards.given if cards.given and cards.used is not None else None

    @property
    def gpu_memory(self) -> float | None:
        """Of the memory of its cards, the most that was in use."""
        whole = [machine.gpu_memory for machine in self.machines if machine.gpu_memory]
        held = [part for part in self.parts if part.gpus and part.gpu_memory_peak is not None]
        cards = sum(part.gpus or 0 for part in held)
        if not whole or not cards:
            return None
        return sum(part.gpu_memory_peak or 0 for part in held) / (cards * min(whole))

    @property
    def efficiency(self) -> float | None:
        """Of the cores it was given, the part that it used."""
        used, given = self.figures.cores_mean, self.figures.cpus
        return used / given if used is not None and given else None

    @property
    def sure(self) -> bool:
        return self.confidence != "low"

    @property
    def confidence(self) -> str:
        return confidence(self.figures)

    def lasts(self, seconds: float) -> bool:
        """Long enough to matter, and seen well enough to be judged."""
        return self.figures.elapsed >= seconds and self.figures.state != "pending" and self.sure


class Scene(NamedTuple):
    """Everything that happened in a time."""

    begin: float
    end: float
    cases: tuple[Case, ...] = ()
    machines: dict[Place, Machine] = {}  # noqa: RUF012  # nobody writes to it
    around: dict[Place, Around] = {}  # noqa: RUF012
    """Of nodes without a scheduler, and by cluster and partition."""
