"""Who took a node's energy in a stretch of time: jobs, the system, nobody. Pure.

Two figures, and both add up to what the node took: `energy` is what somebody's work added, with what the node takes
anyway standing apart as idle; `energy_full` shares that out too, by the CPUs that jobs hold, and leaves as idle what
nobody held. A card is its holder's whether it computes or not.
"""

from collections.abc import Sequence
from typing import NamedTuple

JOB, SYSTEM, IDLE = "job", "system", "idle"


class Demand(NamedTuple):
    """What one job did and held in that time."""

    key: str
    cpu: float
    """CPU seconds used."""
    memory: float = 0.0
    """Bytes of its own times seconds."""
    held: float = 0.0
    """CPUs given times seconds; none where nobody gives any."""


class Owned(NamedTuple):
    """What a card, or a part of one, took while it was somebody's; nobody's if there is no key."""

    key: str | None
    energy: float
    approximate: bool = False
    """Whether it was shared, and this is its part by activity."""


class Spell(NamedTuple):
    """A stretch of time on one node."""

    seconds: float
    """That were measured."""
    energy: float
    """All of the node's, its cards' included."""
    cards: Sequence[Owned]
    jobs: Sequence[Demand]
    system: float = 0.0
    """CPU seconds used by what is no job."""
    cpus: float | None = None
    """The node has; None if not known."""
    baseline: float | None = None
    """Watts it takes anyway, without its cards; None if not known."""
    memory_part: float = 0.0
    """Of what work adds, the part that memory takes."""


class Taken(NamedTuple):
    """One part of the whole."""

    what: str
    key: str
    energy: float
    energy_full: float
    cards: float = 0.0
    """Of it, what cards took."""
    approximate: bool = False


def attribute(spell: Spell, method: str = "activity") -> list[Taken]:
    """All parts: each job, the system, idle."""
    return _by_cpu_time(spell) if method == "cpu_time" else _by_activity(spell)


def _by_cpu_time(spell: Spell) -> list[Taken]:
    """The whole node by relative CPU time, cards and all: simple, and good where nodes are not shared."""
    whole = spell.system + sum(job.cpu for job in spell.jobs)
    if whole <= 0:
        return [Taken(IDLE, "", spell.energy, spell.energy)]
    parts = [(JOB, job.key, spell.energy * job.cpu / whole) for job in spell.jobs]
    parts += [(SYSTEM, "", spell.energy * spell.system / whole), (IDLE, "", 0.0)]
    return [Taken(what, key, energy, energy) for what, key, energy in parts]


def _by_activity(spell: Spell) -> list[Taken]:
    cards = sum(card.energy for card in spell.cards)
    rest = max(0.0, spell.energy - cards)
    # What cannot be the cards' is less than they say: all of them took a little less.
    scale = min(1.0, spell.energy / cards) if cards > 0 else 1.0
    base = min(rest, (spell.baseline or 0.0) * spell.seconds)
    work = _shared(spell, rest - base)
    held = _held(spell, base)
    found = []
    for job in spell.jobs:
        own = [card for card in spell.cards if card.key == job.key]
        joules = sum(card.energy for card in own) * scale
        energy = work.pop(job.key, 0.0) + joules
        full = energy + held.pop(job.key, 0.0)
        found.append(Taken(JOB, job.key, energy, full, joules, any(card.approximate for card in own)))
    known = {job.key for job in spell.jobs}
    # Who held cards and did nothing else that was seen.
    for key in sorted({card.key for card in spell.cards if card.key is not None} - known):
        own = [card for card in spell.cards if card.key == key]
        joules = sum(card.energy for card in own) * scale
        found.append(Taken(JOB, key, joules, joules, joules, any(card.approximate for card in own)))
    free = sum(card.energy for card in spell.cards if card.key is None) * scale
    found.append(Taken(SYSTEM, "", work[""], work[""]))
    idle = base + work[None] + free
    found.append(Taken(IDLE, "", idle, held[None] + work[None] + free, free))
    return found


def _shared(spell: Spell, energy: float) -> "dict[str | None, float]":
    """What work added, by who worked: the part of memory by memory, the rest by CPU time. Under no name the system's,
    under None what nobody is seen to have worked for.
    """
    found: dict[str | None, float] = {"": 0.0, None: 0.0}
    found.update((job.key, 0.0) for job in spell.jobs)
    bytes_ = sum(job.memory for job in spell.jobs)
    memory = energy * spell.memory_part if bytes_ > 0 else 0.0
    for job in spell.jobs:
        found[job.key] += memory * job.memory / bytes_ if bytes_ > 0 else 0.0
    whole = spell.system + sum(job.cpu for job in spell.jobs)
    if whole > 0:
        for job in spell.jobs:
            found[job.key] += (energy - memory) * job.cpu / whole
        found[""] += (energy - memory) * spell.system / whole
    else:
        # More than it takes anyway, and no job's: the system's. Where that is not known, all is idle.
        found["" if spell.baseline is not None else None] += energy - memory
    return found


def _held(spell: Spell, base: float) -> "dict[str | None, float]":
    """What the node takes anyway, by the CPUs that jobs hold; under None what nobody holds."""
    # Where more was given than there is, all of it is somebody's; how much there is must be known.
    room = max(spell.cpus * spell.seconds, sum(job.held for job in spell.jobs)) if spell.cpus else 0.0
    found: dict[str | None, float] = {job.key: base * job.held / room if room else 0.0 for job in spell.jobs}
    found[None] = base - sum(found.values())
    return found
