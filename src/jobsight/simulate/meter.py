"""What a node's meters show, from what its jobs do. Energy is an exact sum of what is there anyway, of CPU seconds
and of cards, so that what each job took is known, too.

Batch nodes have a controller (BMC). Processors count their own energy on all but those with much memory; those people
work on interactively have nothing else. The controller's node has no meter at all.
"""

from typing import NamedTuple

from jobsight.collect.ipmi import Ipmi
from jobsight.collect.power import Power
from jobsight.schema.units import Joules, Seconds, Watts
from jobsight.simulate import card
from jobsight.simulate.machine import SYSTEM_CPU, Seen
from jobsight.simulate.truth import Truth

# Watts: of a processor that does nothing, of its memory, of all that nobody counts (fans, disks, losses).
PACKAGE, MEMORY, OTHER = 45.0, 8.0, 70.0
# Joules that a CPU second adds, to the processor and to its memory.
CPU_SECOND, CPU_MEMORY = 2.8, 0.1
# Where the counters begin anew.
RANGE = 262143.328850


class Energy(NamedTuple):
    """What a node took since it booted (joules)."""

    processors: float
    memory: float
    cards: float
    other: float

    @property
    def whole(self) -> float:
        return self.processors + self.memory + self.cards + self.other


def energy(seen: Seen) -> Energy:
    make = seen.node.make
    used = sum(seen.past.cores.values()) + sum(level.cpu for _, level in seen.levels)
    used += SYSTEM_CPU * make.cores * seen.uptime
    return Energy(
        processors=make.sockets * PACKAGE * seen.uptime + CPU_SECOND * used,
        memory=make.sockets * MEMORY * seen.uptime + CPU_MEMORY * used,
        cards=sum(float(row.energy or 0.0) for row in card.gpu(seen)) if make.gpus else 0.0,
        other=OTHER * seen.uptime,
    )


def power(seen: Seen) -> list[Power]:
    """A zone for each processor and its memory, which share the work alike."""
    took, sockets = energy(seen), seen.node.make.sockets
    found = []
    for socket in range(sockets):
        place = f"intel-rapl:{socket}"
        for device, name, scope, joules in (
            (place, f"package-{socket}", "processor", took.processors),
            (f"{place}:0", f"package-{socket}/dram", "memory", took.memory),
        ):
            row = Power(
                source="rapl",
                device=device,
                sensor=name,
                scope=scope,
                counted=True,
                parent=place if scope == "memory" else None,
                energy=Joules(round(joules / sockets % RANGE, 6)),
                energy_range=Joules(RANGE),
            )
            found.append(row)
    return found


def ipmi(seen: Seen) -> list[Ipmi]:
    """The mean since the controller was last asked; nothing at first."""
    took, last = energy(seen).whole, seen.past.metered
    seen.past.metered = (seen.time, took)
    if last is None or seen.time <= last[0]:
        return []
    watts = (took - last[1]) / (seen.time - last[0])
    return [
        Ipmi(
            source="ipmi-dcmi",
            power=Watts(round(watts, 3)),
            power_mean=Watts(round(watts, 3)),
            period=Seconds(round(seen.time - last[0], 3)),
            age=Seconds(0.0),
        )
    ]


def has(collector: str, kind: str) -> bool:
    """Whether a kind of machine has such a meter."""
    return kind in {"power": ("cpu", "gpu", "interactive"), "ipmi": ("cpu", "gpu", "fat")}[collector]


def taken(truth: Truth) -> float:
    """Joules that a job's work added on all its nodes, its cards included: what a perfect meter would have shown."""
    total = 0.0
    for place in truth.places:
        level = place.curve.at(truth.end)
        held = len(place.gpus) * (truth.end - truth.start)
        total += (CPU_SECOND + CPU_MEMORY) * level.cpu + card.IDLE_POWER * held
        total += card.BUSY_POWER * len(place.gpus) * level.gpu
    return total
