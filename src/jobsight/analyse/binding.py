"""Which resource a job's speed hangs on. Pure."""

from typing import NamedTuple

from msgspec import Struct

from jobsight.analyse.balance import Balance
from jobsight.analyse.cards import Card
from jobsight.analyse.phases import Phase
from jobsight.analyse.summary import Summary
from jobsight.formats.number import cores, duration, ratio, size


class Bounds(NamedTuple):
    """When a resource is taken to bind."""

    memory: float = 0.95
    """Part of the limit at the peak."""
    cores: float = 0.8
    gpu: float = 0.7
    imbalance: float = 0.3
    storage: float = 0.25
    """Part of the time in which it read or wrote and computed little."""
    serial: float = 0.5
    """Part of the time in which one core of several was busy."""
    waiting: float = 0.5


USUAL = Bounds()


class Binding(Struct):
    """What more of would have made it quicker, or what kept it from using what it had."""

    resource: str
    """`memory`, `cores`, `gpus`, `one core`, `storage`, `busiest node`, `waiting`, `nothing`, `unknown`."""
    sentence: str
    confidence: str
    """`high`, `medium`, `low`: by how often it was seen, and how much of its time."""


def binding(
    figures: Summary, phases: list[Phase], balance: Balance, cards: list[Card], bounds: Bounds = USUAL
) -> Binding:
    """The first that holds, those that end jobs before those that slow them down."""
    found = (
        _memory(figures, bounds)
        or _cards(cards, bounds)
        or _nodes(balance, bounds)
        or _cores(figures, bounds)
        or _slow(figures, phases, bounds)
    )
    return Binding(*found, confidence(figures))


def confidence(figures: Summary) -> str:
    """How far figures can be trusted, by how often it was seen and how much of it."""
    samples = figures.elapsed * (figures.coverage or 0.0) / max(figures.every, 1e-3)
    if samples >= 20 and (figures.coverage or 0.0) >= 0.9:
        return "high"
    return "medium" if samples >= 5 and (figures.coverage or 0.0) >= 0.5 else "low"


def _memory(figures: Summary, bounds: Bounds) -> tuple[str, str] | None:
    peak, limit = figures.memory_peak, figures.memory_limit
    if figures.oom_kills or (figures.batch is not None and figures.batch.state == "OUT_OF_MEMORY"):
        return "memory", "Memory binds: it was used up."
    if peak is None or not limit or peak < bounds.memory * limit:
        return None
    return "memory", f"Memory binds: {size(peak)} of {size(limit)} was in use, and a little more ends the job."


def _cards(cards: list[Card], bounds: Bounds) -> tuple[str, str] | None:
    known = [card.busy for card in cards if card.busy is not None]
    if not known or sum(known) < bounds.gpu * len(known):
        return None
    busy = ratio(sum(known) / len(known))
    return "gpus", f"Its GPUs bind: {len(known)} computed {busy} of the time."


def _nodes(balance: Balance, bounds: Bounds) -> tuple[str, str] | None:
    if balance.imbalance is None or balance.imbalance < bounds.imbalance:
        return None
    busiest, count = balance.nodes[-1], len(balance.nodes)
    said = f"The busiest of {count} nodes binds: {busiest.node} did {ratio(busiest.part)} of the work"
    idle = len(balance.idle)
    return "busiest node", f"{said}{f', {idle} did next to nothing' if idle else ''}."


def _cores(figures: Summary, bounds: Bounds) -> tuple[str, str] | None:
    mean, given = figures.cores_mean, figures.cpus
    if mean is None or not given:
        return "unknown", "Which resource binds is not known."
    if mean < bounds.cores * given:
        return None
    return "cores", f"Its cores bind: {cores(mean)} of {given} were busy on average; more may make it quicker."


def _slow(figures: Summary, phases: list[Phase], bounds: Bounds) -> tuple[str, str]:
    """Why cores were idle."""
    whole = sum(phase.seconds for phase in phases)
    if not whole:
        return "unknown", "Which resource binds is not known: nothing is kept of its course."
    spent: dict[str, float] = {}
    for phase in phases:
        spent[phase.kind] = spent.get(phase.kind, 0.0) + phase.seconds
    moved = spent.get("reading", 0.0) + spent.get("writing", 0.0)
    if moved >= bounds.storage * whole:
        return "storage", f"Storage binds: for {duration(moved)} of {duration(whole)} it read or wrote, cores idle."
    if spent.get("waiting", 0.0) >= bounds.waiting * whole:
        waited = duration(spent["waiting"])
        return "waiting", f"It waited for {waited} of {duration(whole)}: no core was busy, and no storage."
    if spent.get("one core", 0.0) >= bounds.serial * whole:
        alone = duration(spent["one core"])
        return "one core", f"One core binds: for {alone} of {duration(whole)} one of {figures.cpus} was busy."
    return "nothing", "Nothing that is measured here binds: cores, memory and storage all had room."
