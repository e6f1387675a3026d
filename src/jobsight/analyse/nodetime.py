"""One node's time in steps: what it took by the best source there is, what it takes anyway, who was there. Pure."""

from functools import cached_property
from statistics import median
from typing import Any, NamedTuple

from jobsight.analyse.attribution import Demand, Owned, Spell
from jobsight.analyse.meter import Bins, together
from jobsight.analyse.sources import STEP, Place, Sources
from jobsight.metering import Energy, named

# Cards that say so much more than the node's meter: it does not see them, or not all.
DISBELIEVED = 1.2
# A node is quiet while less than this part of its CPUs is busy and no batch job is there.
QUIET = 0.02
# Of what it took while nothing ran, how far from the lowest idle power is.
LOWEST = 0.1


class Measured(NamedTuple):
    """What a node took in one step of time."""

    seconds: float
    """That were measured."""
    energy: float
    unsure: float
    grade: str
    source: str


def lowest(watts: list[float]) -> float:
    """A low one, but not one that a single odd reading made."""
    return sorted(watts)[int(LOWEST * (len(watts) - 1))]


NOTHING = Measured(0.0, 0.0, 0.0, "", "")


class Nodetime:
    """One node. `loose` are the keys of those to whom nobody gave CPUs; `learned` is by source what it took earlier
    while nothing ran (watts).
    """

    def __init__(
        self, place: Place, told: Sources, loose: set[str], learned: dict[str, list[float]], options: Energy
    ) -> None:
        self.place, self._told, self._loose, self._options = place, told, loose, options
        self._bins = told.bins()
        cards = [bins for bins, _ in told.cards]
        parts = [told.counters, *cards] if told.counters else cards
        self._parts: Bins | None = together(parts) if parts else None
        self._cards = self._divided()
        self.steps = [self._measured(step) for step in range(self._bins.number)]
        self.quiet = [self._watts_if_quiet(step) for step in range(self._bins.number)]
        self._learned = {source: list(watts) for source, watts in learned.items()}
        for measured, watts in zip(self.steps, self.quiet, strict=True):
            if watts is not None:
                self._learned.setdefault(measured.source, []).append(watts)
        self.alike: dict[str, list[float]] = {}
        """By source, idle power of other nodes of its kind, for one that was never seen idle."""

    @property
    def kind(self) -> tuple[str, str]:
        """Machines of one kind take alike."""
        return self.place[0], f"{self._told.model} {self._told.cpus} {len(self._told.cards)}"

    def learned(self) -> dict[str, float]:
        """By source, its own idle power, as far as it was seen."""
        return {source: lowest(watts) for source, watts in self._learned.items() if watts}

    def begin(self, step: int) -> float:
        return self._bins.since + step * STEP

    def length(self, step: int) -> float:
        return self._bins.seconds(step)

    def present(self, step: int, key: str) -> float:
        """Seconds of a step in which a job was there; all of it for what is no job."""
        use = self._told.jobs.get(key)
        return use.seconds[step] if use is not None else self.length(step)

    def alive(self, step: int) -> bool:
        """Whether the node itself tells that it was on."""
        return self._busy(step) is not None

    def baseline(self, step: int) -> float | None:
        """What it takes anyway, cards left out: as set, as modelled, as learned."""
        if (given := named(self._options.baseline, self.place[1])) is not None:
            return float(given)
        measured = self.steps[step]
        if measured.grade == "D":
            return float(self._model().idle)
        if known := self._learned.get(measured.source):
            return lowest(known)
        others = self.alike.get(measured.source)
        return median(others) if others else None

    def spell(self, step: int) -> Spell:
        """A step as it is shared out."""
        told, measured, whole = self._told, self.steps[step], self.length(step)
        jobs = [
            Demand(
                key,
                use.cpu[step],
                use.memory[step],
                0.0 if key in self._loose else use.held[step] * measured.seconds / whole,
            )
            for key, use in told.jobs.items()
            if use.seconds[step] or use.cpu[step]
        ]
        busy = self._busy(step)
        return Spell(
            seconds=measured.seconds,
            energy=measured.energy,
            cards=self._owned(step, measured.seconds),
            jobs=jobs,
            system=0.0 if busy is None else max(0.0, busy - sum(job.cpu for job in jobs)),
            cpus=told.cpus,
            baseline=self.baseline(step),
            memory_part=self._memory_part(step),
        )

    def _measured(self, step: int) -> Measured:
        told = self._told
        cards = sum(bins.energy[step] for bins, _ in told.cards)
        known = self._parts.covered[step] if self._parts is not None else 0.0
        meter = told.meter
        if meter is not None and meter.covered[step] > 0 and meter.covered[step] >= 0.5 * known:
            theirs = sum(owned.energy for owned in self._owned(step, meter.covered[step]))
            inside = self._options.cards_in_meter
            if not inside or theirs <= DISBELIEVED * meter.energy[step]:
                energy = meter.energy[step] + (0.0 if inside else theirs)
                return Measured(meter.covered[step], energy, meter.unsure[step], "A", told.meter_name)
        # Cards alone are not the node, unless nothing else is ever told of it.
        alone = told.meter is None and self._model() is None
        if self._parts is not None and known and (told.counters or alone):
            name = "+".join(["rapl"] * bool(told.counters) + ["gpu"] * bool(told.cards))
            parts = self._parts
            return Measured(known, parts.energy[step], parts.unsure[step], parts.grades[step], name)
        return self._modelled(step, cards)

    def _modelled(self, step: int, cards: float) -> Measured:
        model, told, whole = self._model(), self._told, self.length(step)
        if model is None or not told.cpus:
            return NOTHING
        busy = max(self._busy(step) or 0.0, sum(use.cpu[step] for use in told.jobs.values()))
        watts = model.idle + (model.most - model.idle) * min(1.0, busy / (told.cpus * whole))
        return Measured(whole, watts * whole + cards, 0.0, "D", "model")

    def _memory_part(self, step: int) -> float:
        """Of what work added, by the processors' counters, what memory took."""
        memory, all_, calm = self._told.memory, self._told.counters, self._calm
        if memory is None or all_ is None or calm is None:
            return 0.0
        added = all_.energy[step] - calm[1] * all_.covered[step]
        return min(1.0, max(0.0, memory.energy[step] - calm[0] * memory.covered[step]) / added) if added > 0 else 0.0

    @cached_property
    def _calm(self) -> tuple[float, float] | None:
        """Watts of memory, and of processors and memory, in the calmest of times."""
        found = []
        for bins in (self._told.memory, self._told.counters):
            if bins is None:
                return None
            watts = [joules / s for joules, s in zip(bins.energy, bins.covered, strict=True) if s > 0]
            if not watts:
                return None
            found.append(lowest(watts))
        return found[0], found[1]

    def _model(self) -> Any:
        return named(self._options.model, self.place[1])

    def _busy(self, step: int) -> float | None:
        """CPU seconds of everything, by the node's own count."""
        busy = self._told.busy
        if busy is None or busy.covered[step] <= 0:
            return None
        return busy.energy[step] * self.length(step) / busy.covered[step]

    def _watts_if_quiet(self, step: int) -> float | None:
        """What the node took, cards left out, while nothing ran; None if something did, or it is not known."""
        told, measured, whole = self._told, self.steps[step], self.length(step)
        if not told.cpus or measured.seconds < 0.9 * whole or measured.grade in ("", "D") or measured.source == "gpu":
            return None
        if told.busy is not None and self._busy(step) is None:
            return None
        busy = max(self._busy(step) or 0.0, sum(use.cpu[step] for use in told.jobs.values()))
        batch = any(use.seconds[step] for key, use in told.jobs.items() if key not in self._loose)
        if batch or busy > QUIET * told.cpus * whole:
            return None
        return (
            max(0.0, measured.energy - sum(card.energy for card in self._owned(step, measured.seconds)))
            / measured.seconds
        )

    def _divided(self) -> list[list[tuple[Bins, Owned]]]:
        """By step, what each card took and whose it was; a holder's of the same step together."""
        found: list[dict[tuple[int, str | None, bool], float]] = [{} for _ in range(self._bins.number)]
        for card, (_, spans) in enumerate(self._told.cards):
            for span, parts in spans:
                for part in parts:
                    for step, inside in self._bins.places(part.start, part.end):
                        joules = span.energy * inside / (span.end - span.start)
                        for owner in part.owners:
                            key = card, owner.key, owner.approximate
                            found[step][key] = found[step].get(key, 0.0) + owner.energy * joules
        return [
            [(self._told.cards[card][0], Owned(key, joules, rough)) for (card, key, rough), joules in step.items()]
            for step in found
        ]

    def _owned(self, step: int, seconds: float) -> list[Owned]:
        """What each card took, by whose it was, in the time that was measured."""
        return [
            owned._replace(energy=owned.energy * min(1.0, seconds / bins.covered[step]))
            for bins, owned in self._cards[step]
            if bins.covered[step] > 0
        ]
