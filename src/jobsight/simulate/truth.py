"""What really happened: one record a job, exact, to set answers against."""

from math import inf
from typing import NamedTuple

from jobsight.simulate.draft import Draft, Ending, Misfit
from jobsight.simulate.site import Node, User
from jobsight.simulate.work import Curve, Level, Phase, cut


class Span(NamedTuple):
    """A phase with its place in time."""

    begin: float
    end: float
    kind: str


class Place(NamedTuple):
    """A job on one node."""

    node: Node
    cores: tuple[int, ...]
    """The CPUs it was given, by number; none where nobody gives any."""
    gpus: tuple[int, ...]
    curve: Curve


class Truth(NamedTuple):
    """One life of one job: a job that is requeued has several, with the same number."""

    scheduler: str
    """`slurm`, or `session` where there is no batch system."""
    number: str
    array: str | None
    task: int | None
    user: User
    draft: Draft
    submit: float
    start: float
    """Without end if it never started."""
    end: float
    ending: Ending
    restarts: int
    places: tuple[Place, ...]
    origin: str = ""
    """Of a stray process: the number of the job that left it."""

    @property
    def started(self) -> bool:
        return self.start < inf

    @property
    def kind(self) -> str:
        return self.draft.kind

    @property
    def planted(self) -> tuple[Misfit, ...]:
        return self.draft.planted

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong with it, neither planted nor from outside."""
        return not self.draft.planted and self.ending.state == "COMPLETED"

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(place.node.name for place in self.places)

    @property
    def cpu_time(self) -> float:
        return sum(place.curve.at(self.end).cpu for place in self.places)

    @property
    def read(self) -> float:
        return sum(place.curve.at(self.end).read for place in self.places)

    @property
    def written(self) -> float:
        return sum(place.curve.at(self.end).written for place in self.places)

    @property
    def efficiency(self) -> float:
        """Of the core seconds it was given, the part it used."""
        given = self.draft.cores * len(self.places)
        return self.cpu_time / (given * (self.end - self.start)) if given else 0.0

    @property
    def gpu_seconds(self) -> float:
        """Card seconds in which it computed."""
        cards = self.draft.gpus * len(self.places)
        return cards * sum(phase.gpu * phase.seconds for phase in self._lived())

    @property
    def phases(self) -> tuple[Span, ...]:
        """What it did when; the same on all its nodes."""
        found, begin = [], self.start
        for phase in self._lived():
            found.append(Span(begin, begin + phase.seconds, phase.kind))
            begin += phase.seconds
        return tuple(found)

    def memory_peaks(self) -> dict[str, float]:
        """The most memory of its own on each node."""
        return {place.node.name: place.curve.peak() for place in self.places}

    def at(self, node: str, time: float) -> Level:
        """How far it had come on a node: what a perfect sample would have seen."""
        return next(place.curve.at(time) for place in self.places if place.node.name == node)

    def _lived(self) -> tuple[Phase, ...]:
        return cut(self.draft.phases, self.end - self.start) if self.started else ()
