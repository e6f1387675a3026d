"""Energy of processors and memory, and the power that sensors report; each with its source and what it covers.

Sources: /sys/class/powercap, see the kernel's powercap.rst: microjoules since some time, which begin anew at
`max_energy_range_uj`; both are sent, so that a lost message loses no energy (`formats.rollover`). /sys/class/hwmon,
see the kernel's sysfs-interface.rst: microwatts and microjoules.

Zones lie within each other and some are there twice. A package holds its cores and its graphics, not its memory,
though the kernel shows memory below it; `psys` holds them all; `intel-rapl-mmio` shows again what `intel-rapl` shows;
dies of one package are different ones. Rows with `counted` add up to processors and memory, each once.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from jobsight.collector import AbsentError, collector
from jobsight.formats.keyvalue import whole
from jobsight.host import Host
from jobsight.schema.record import counter, gauge, label, record
from jobsight.schema.units import Joules, Watts

ZONES, SENSORS = "sys/class/powercap", "sys/class/hwmon"
GRANT = "read access to energy_uj (docs/operate/power.md) or CAP_DAC_READ_SEARCH (or root) shows energy"
MICRO = 1_000_000
# No node takes as much.
STRONGEST = 30_000.0
# A zone's name: its kind, and the numbers of its parents and its own. A kind without numbers is no zone.
ZONE = re.compile(r"([a-z][a-z0-9-]*?)((?::\d+)+)", re.ASCII)
# Kinds that show what another kind shows too, and are taken only where that one does not.
COPIES = {"intel-rapl-mmio": "intel-rapl"}
INPUT = re.compile(r"(power|energy)(\d+)_(input|average)", re.ASCII)
# Of drivers, what their sensors are about. Cards tell more in the table `gpu`.
CARDS = frozenset({"amdgpu", "i915", "xe", "habanalabs", "nouveau", "radeon"})
METER = "power_meter"


@record
class Power:
    """One zone or sensor at one instant."""

    source: str = label("rapl: a counter of the processor; hwmon: a sensor.")
    device: str = label("The kernel's name for its place: intel-rapl:0:1, hwmon3/power1.")
    sensor: str = label("What it measures, as the kernel calls it: package-0, dram; or the chip and its label.")
    scope: str = label("What it covers: processor, memory, part (of a processor), platform, node, card or other.")
    counted: bool = label("Whether it adds to the sum of processors and memory: no parts, no copies, no wholes.")
    parent: str | None = label("The place of the zone it lies within.", default=None)
    copy: str | None = label("The place of the zone it shows again.", default=None)
    energy: Joules | None = counter("Energy since some time; begins anew at its range.", default=None, grant=GRANT)
    energy_range: Joules | None = gauge("Where the counter begins anew.", default=None)
    power: Watts | None = gauge("Power, as the sensor measures or averages it.", default=None)


class Zone(NamedTuple):
    """One zone as it was found."""

    place: str
    kind: str
    name: str
    parent: str | None
    energy: float | None
    span: float | None


@collector(ZONES, f"{SENSORS}/hwmon0")
def power(host: Host) -> Iterator[Power]:
    rows = [*rapl(list(zones(host))), *sensors(host)]
    if not rows:
        raise AbsentError("neither an energy counter nor a power sensor")
    yield from rows


def zones(host: Host) -> Iterator[Zone]:
    """All zones; one that may not be read is among them, without its energy."""
    for place in sorted(host.names(ZONES)):
        found = ZONE.fullmatch(place)
        if not found or not host.exists(f"{ZONES}/{place}/energy_uj"):
            continue
        span = micro(host.glimpse(f"{ZONES}/{place}/max_energy_range_uj"))
        text = host.glimpse(f"{ZONES}/{place}/energy_uj", "energy")
        energy = micro(text)
        if text is not None and (energy is None or (span and energy > span)):
            host.miss("energy", "failed")
            energy = None
        above = place.rpartition(":")[0]
        yield Zone(
            place=place,
            kind=found[1],
            name=(host.glimpse(f"{ZONES}/{place}/name") or place).strip(),
            parent=above if ":" in above else None,
            energy=energy,
            span=span,
        )


def rapl(found: list[Zone]) -> Iterator[Power]:
    """The zones as rows: which of them add up."""
    by_place = {zone.place: zone for zone in found}
    path = {zone.place: trail(zone, by_place) for zone in found}
    first: dict[tuple[str, ...], Zone] = {}
    # What may be read stands for its copies, and of those the kind that is no copy by nature.
    for zone in sorted(
        found, key=lambda zone: (zone.energy is None, zone.kind in COPIES, len(zone.place), zone.place)
    ):
        first.setdefault(path[zone.place], zone)
    packages = any(scope_of(zone) == "processor" for zone in found)
    for zone in found:
        scope = scope_of(zone)
        original = first[path[zone.place]]
        own = original is zone
        # The whole stands for its parts only where there are none.
        alone = scope == "platform" and not packages
        yield Power(
            source="rapl",
            device=zone.place,
            sensor="/".join(path[zone.place]),
            scope=scope,
            counted=own and (scope in ("processor", "memory") or alone),
            parent=zone.parent,
            copy=None if own else original.place,
            energy=None if zone.energy is None else Joules(zone.energy),
            energy_range=None if zone.span is None else Joules(zone.span),
        )


def trail(zone: Zone, by_place: dict[str, Zone]) -> tuple[str, ...]:
    """The names from the outermost zone to this one, which its copies have too."""
    above = by_place.get(zone.parent or "")
    return (*(trail(above, by_place) if above else ()), zone.name)


def scope_of(zone: Zone) -> str:
    """What a zone covers. Memory is no part of the package that the kernel shows it below."""
    if zone.name == "dram":
        return "memory"
    if zone.name == "psys":
        return "platform"
    if zone.parent is not None:
        return "part"
    return "processor" if zone.name.startswith("package") else "other"


def sensors(host: Host) -> Iterator[Power]:
    """Sensors of power and energy; an instantaneous reading before an average of the same sensor."""
    chips = {name: (host.glimpse(f"{SENSORS}/{name}/name") or name).strip() for name in sorted(host.names(SENSORS))}
    meters = sum(
        1
        for device, chip in chips.items()
        for name in host.names(f"{SENSORS}/{device}")
        if chip == METER and re.fullmatch(r"power\d+_average", name, re.ASCII)
    )
    for device, chip in chips.items():
        names = sorted(host.names(f"{SENSORS}/{device}"))
        for name in names:
            found = INPUT.fullmatch(name)
            if not found or (found[3] == "average" and f"{found[1]}{found[2]}_input" in names):
                continue
            place = f"{device}/{found[1]}{found[2]}"
            text = (host.glimpse(f"{SENSORS}/{place}_label") or "").strip()
            # A chip with a counter a core says the same as its socket's, hundreds of times.
            if text.startswith("Ecore"):
                continue
            scope = "card" if chip in CARDS else "node" if chip == METER and meters == 1 else "other"
            value = reading(host, f"{SENSORS}/{device}/{name}", "power" if found[1] == "power" else "energy", scope)
            yield Power(
                source="hwmon",
                device=place,
                sensor=" ".join(filter(None, (chip, text, "average" if found[3] == "average" else ""))),
                scope=scope,
                counted=False,
                energy=Joules(value) if value is not None and found[1] == "energy" else None,
                power=Watts(value) if value is not None and found[1] == "power" else None,
            )


def reading(host: Host, path: str, column: str, scope: str) -> float | None:
    """A sensor's value; None, and said, where it cannot be: more than any node takes, or a node without any."""
    text = host.glimpse(path, column)
    value = micro(text)
    if text is None or (value is not None and column == "energy"):
        return value
    if value is None or value > STRONGEST or (scope == "node" and not value):
        host.miss(column, "failed")
        return None
    return value


def micro(text: str | None) -> float | None:
    """`12345678` → 12.345678. None for what is no number."""
    return int(text) / MICRO if text is not None and whole(text.strip()) else None
