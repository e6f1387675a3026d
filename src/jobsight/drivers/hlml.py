"""Habana's cards. Runs in a process of its own, see `drivers.attendant`. Names and numbers are those of hlml.h.

The library knows no processes. Its numbers are milliwatts, millijoules, megahertz, bytes, percent and whole degrees.
"""

import time
from ctypes import byref, c_uint, c_ulonglong, c_void_p, create_string_buffer
from typing import Any

from jobsight.drivers.card import Card, Reading
from jobsight.drivers.library import Busy, Library, LibraryError, decoded, scaled
from jobsight.drivers.soname import HLML

UNSUPPORTED = 3
# Not found, no data.
QUIET = frozenset({6, 21})
REASONS = {1: "not initialised", 2: "invalid argument", 9: "driver not loaded", 10: "timeout", 15: "card is lost",
           20: "out of memory", 49: "unknown error"}  # fmt: skip
MILLI, MEGA, PERCENT = 1e-3, 1_000_000, 0.01
CHIP_CLOCK, CHIP_SENSOR = 0, 0
CORRECTED, UNCORRECTED, SINCE_EVER = 0, 1, 1
THROTTLES = {1: "power cap", 2: "thermal"}
# Of the structure about the bus: the bus, then the address as text. Later releases add to its end.
BUS_ROOM, ADDRESS_AT, ADDRESS_SIZE = 512, 4, 15


class Reader:
    """All cards, again and again."""

    def __init__(self, names: tuple[str, ...] = HLML) -> None:
        self._library = Library(names, UNSUPPORTED, QUIET, REASONS)
        self._library.begin("hlml_init")
        self._busy = Busy()

    def read(self) -> Reading:
        library = self._library
        count = library.number("hlml_device_get_count")
        if count is None:
            raise LibraryError(library.told() or "hlml_device_get_count: not supported")
        driver, release = library.text("hlml_get_driver_version"), library.text("hlml_get_hlml_version")
        cards = []
        for index in range(count):
            handle = c_void_p()
            if not library.ask("hlml_device_get_handle_by_index", c_uint(index), byref(handle)):
                cards.append(Card("habana", ordinal=index, trouble=library.told() or "no such card"))
                continue
            card = self._card(handle, index)
            busy = self._busy.add(card.uuid, card.utilization, time.monotonic())
            cards.append(card._replace(driver=driver, library=release, busy=busy, trouble=library.told()))
        return Reading(cards, [])

    def _card(self, handle: c_void_p, index: int) -> Card:
        library = self._library
        number = library.number
        address = self._address(handle)
        return Card(
            vendor="habana",
            uuid=library.text("hlml_device_get_uuid", handle) or f"PCI-{address or index}",
            ordinal=index,
            minor=number("hlml_device_get_minor_number", handle),
            address=address,
            model=library.text("hlml_device_get_name", handle),
            firmware=library.text("hlml_get_fw_os_version", handle),
            utilization=self._utilization(handle),
            temperature=scaled(number("hlml_device_get_temperature", handle, c_uint(CHIP_SENSOR)), 1.0),
            clock=scaled(number("hlml_device_get_clock_info", handle, c_uint(CHIP_CLOCK)), MEGA),
            clock_max=scaled(number("hlml_device_get_max_clock_info", handle, c_uint(CHIP_CLOCK)), MEGA),
            throttle=self._throttle(handle),
            ecc_corrected=self._errors(handle, CORRECTED),
            ecc_uncorrected=self._errors(handle, UNCORRECTED),
            **self._memory(handle),
            **self._power(handle),
        )

    def _power(self, handle: c_void_p) -> dict[str, Any]:
        """Milliwatts, once divided. The default limit is the highest it is meant for."""
        limit = scaled(self._library.number("hlml_device_get_power_management_default_limit", handle), MILLI)
        energy = self._library.number("hlml_device_get_total_energy_consumption", handle, kind=c_ulonglong)
        return {
            "power": scaled(self._library.number("hlml_device_get_power_usage", handle), MILLI),
            "power_limit": limit or None,
            "power_most": limit or None,
            "energy": scaled(energy, MILLI),
        }

    def _utilization(self, handle: c_void_p) -> float | None:
        """Percent of the last second; with room for what later releases add."""
        found = (c_uint * 8)()
        asked = self._library.ask("hlml_device_get_utilization_rates", handle, found)
        return int(found[0]) * PERCENT if asked else None

    def _memory(self, handle: c_void_p) -> dict[str, Any]:
        """Free, total and used, in this order and not in that of other makers; with room for more."""
        found = (c_ulonglong * 8)()
        if not self._library.ask("hlml_device_get_memory_info", handle, found):
            return {}
        return {"memory_total": int(found[1]), "memory_used": int(found[2])}

    def _address(self, handle: c_void_p) -> str | None:
        room = create_string_buffer(BUS_ROOM)
        if not self._library.ask("hlml_device_get_pci_info", handle, room):
            return None
        return decoded(room.raw[ADDRESS_AT : ADDRESS_AT + ADDRESS_SIZE].split(b"\0")[0]) or None

    def _throttle(self, handle: c_void_p) -> str | None:
        name = "hlml_device_get_current_clocks_throttle_reasons"
        reasons = self._library.number(name, handle, kind=c_ulonglong)
        return None if reasons is None else ", ".join(word for bit, word in THROTTLES.items() if reasons & bit)

    def _errors(self, handle: c_void_p, kind: int) -> int | None:
        name = "hlml_device_get_total_ecc_errors"
        return self._library.number(name, handle, c_uint(kind), c_uint(SINCE_EVER), kind=c_ulonglong)
