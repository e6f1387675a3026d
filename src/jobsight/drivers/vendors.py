"""The makers of cards, and the readings of all that a machine has.

A driver is a module with a class `Reader`, whose `read` gives a `Reading`. It is loaded only where the kernel has a
module for such cards, and works in a process of its own, so that one maker's trouble is not the other's. The modules
of AMD and Intel also draw on screens: there the library must be installed too, as it is where cards compute.
"""

import json
from _thread import allocate_lock
from typing import Any, NamedTuple

from jobsight.clock import SystemClock
from jobsight.collector import AbsentError, ParseError
from jobsight.drivers.attendant import ANSWER, Attendant, AttendantError, LateError
from jobsight.drivers.card import Card, Reading, reading_of
from jobsight.drivers.soname import ROCM, XPUM, places
from jobsight.host import Host

# Where a copy of a machine has its readings.
RECORDED = "gpus"
# Seconds for which a reading serves the collectors of one sample.
FRESH = 1.0


class Vendor(NamedTuple):
    name: str
    module: str
    """Of the kernel."""
    driver: str
    libraries: tuple[str, ...] = ()
    """Paths of which one must exist, where the module alone says little."""

    def present(self, host: Host) -> bool:
        if not host.exists(self.module):
            return False
        return not self.libraries or any(host.exists(path.lstrip("/")) for path in self.libraries)


# A maker may have two modules, and still is one.
VENDORS = (
    Vendor("nvidia", "sys/module/nvidia", "nvml"),
    Vendor("amd", "sys/module/amdgpu", "rocmsmi", places(ROCM)),
    Vendor("intel", "sys/module/i915", "xpum", places(XPUM)),
    Vendor("intel", "sys/module/xe", "xpum", places(XPUM)),
    Vendor("habana", "sys/module/habanalabs", "hlml"),
)
NEEDS = tuple(vendor.module for vendor in VENDORS)


def recorded_as(vendor: Vendor) -> str:
    """Where a copy has a maker's readings."""
    return f"{RECORDED}/{vendor.name}.json"


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"expected a reading as JSON: {error}") from None


class Cards:
    """All cards of a machine: read once for all who ask at about the same time."""

    def __init__(self) -> None:
        self._attendants: dict[str, Attendant] = {}
        self._lock = allocate_lock()
        self._clock = SystemClock()
        self._at = float("-inf")
        self._reading = Reading([], [])

    def read(self, host: Host) -> Reading:
        """What all makers' libraries say. One that says nothing is a card without a name, with its trouble."""
        with self._lock:
            if self._clock.steady() - self._at > FRESH:
                self._reading = self._recorded(host) if not host.live else self._live(host)
                self._at = self._clock.steady()
            return self._reading

    def _live(self, host: Host) -> Reading:
        present = {vendor.name: vendor for vendor in VENDORS if vendor.present(host)}
        if not present:
            raise AbsentError("the kernel's modules are there, the makers' libraries are not")
        found = Reading([], [])
        asked = []
        for vendor in present.values():
            attendant = self._attendants.setdefault(vendor.name, Attendant(vendor.driver))
            try:
                attendant.ask()
                asked.append(vendor)
            except AttendantError as error:
                found.cards.append(self._silent(host, vendor, error))
        until = self._clock.steady() + ANSWER
        for vendor in asked:
            try:
                said = self._attendants[vendor.name].answer(until)
                reading = reading_of(said)
            except (AttendantError, ValueError) as error:
                found.cards.append(self._silent(host, vendor, error))
            else:
                host.told(recorded_as(vendor), json.dumps(said, indent=1).encode())
                found.cards.extend(reading.cards)
                found.holders.extend(reading.holders)
        return found

    def _silent(self, host: Host, vendor: Vendor, error: Exception) -> Card:
        host.miss("uuid", "late" if isinstance(error, LateError) else "failed")
        return Card(vendor.name, trouble=str(error))

    def _recorded(self, host: Host) -> Reading:
        found = Reading([], [])
        for vendor in {vendor.name: vendor for vendor in VENDORS}.values():
            text = host.glimpse(recorded_as(vendor), "uuid")
            if text is not None:
                reading = reading_of(_loaded(text))
                found.cards.extend(reading.cards)
                found.holders.extend(reading.holders)
        return found

    def renew(self) -> None:
        """The next reading is a new one, however soon it is asked for."""
        self._at = float("-inf")

    def pids(self) -> list[int]:
        """The processes that the libraries work in."""
        return [attendant.pid for attendant in self._attendants.values() if attendant.pid]

    def close(self) -> None:
        for attendant in self._attendants.values():
            attendant.close()
