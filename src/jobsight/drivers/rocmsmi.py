"""AMD's cards. Runs in a process of its own, see `drivers.attendant`. Names and numbers are those of rocm_smi.h.

A card is named by its unique id, as AMD's own tools write it; a partition of a card has the card's id, and a number
of its own. The second die of a package reports no power, which reads as nought: the first one's is that of both.
"""

import struct
import time
from collections.abc import Iterator
from ctypes import Structure, byref, c_float, c_int64, c_size_t, c_uint32, c_uint64, create_string_buffer
from typing import Any, ClassVar

from jobsight.drivers.card import Card, Holder, Reading
from jobsight.drivers.library import Busy, Library, LibraryError, scaled
from jobsight.drivers.soname import ROCM

UNSUPPORTED = 2
# Not permitted, no such file in this kernel, not implemented, not found, no data, not available with this setting.
QUIET = frozenset({3, 4, 9, 10, 14, 18})
# Power in microwatts, temperatures in thousandths of a degree, clocks in hertz, memory in bytes, use in percent.
MICRO, MILLI, PERCENT = 1e-6, 1e-3, 0.01
EDGE, JUNCTION, MEMORY_SENSOR, CURRENT = 0, 1, 2, 0
SYSTEM_CLOCK, MEMORY_CLOCK = 0, 4
VRAM, MEMORY_BLOCK, DRIVER = 0, 1, 0
# Frequencies a card may have, and room for what any release writes of them.
MOST_CLOCKS, CLOCKS_ROOM = 33, 1024
NONE = 0xFFFFFFFF


class Process(Structure):
    _fields_: ClassVar = [
        ("pid", c_uint32), ("pasid", c_uint32), ("vram", c_uint64), ("sdma", c_uint64), ("occupancy", c_uint32),
        ("reserved", c_uint32),
    ]  # fmt: skip


class Reader:
    """All cards, again and again."""

    def __init__(self, names: tuple[str, ...] = ROCM) -> None:
        self._library = Library(names, UNSUPPORTED, QUIET, {})
        self._library.begin("rsmi_init", c_uint64(0))
        self._busy = Busy()

    def read(self) -> Reading:
        library = self._library
        count = library.number("rsmi_num_monitor_devices")
        if count is None:
            raise LibraryError(library.told() or "rsmi_num_monitor_devices: not supported")
        driver = library.text("rsmi_version_str_get", c_uint32(DRIVER))
        cards: list[Card] = []
        for index in range(count):
            card = distinct(self._card(index, c_uint32(index)), cards)
            busy = self._busy.add(card.uuid, card.utilization, time.monotonic())
            cards.append(card._replace(driver=driver, busy=busy, trouble=library.told()))
        parents = {card.parent for card in cards}
        # All were asked: what holds for a whole card that was divided is known only now.
        cards = [card._replace(divided=True) if card.uuid in parents else card for card in cards]
        return Reading(cards, list(self._holders(cards)))

    def _card(self, index: int, number: c_uint32) -> Card:
        library = self._library
        place = library.number("rsmi_dev_pci_id_get", number, kind=c_uint64)
        address = None if place is None else address_of(place)
        name = library.number("rsmi_dev_unique_id_get", number, kind=c_uint64)
        return Card(
            vendor="amd",
            # A card for a desk may have no id: then its place names it, on this node.
            uuid=f"GPU-{name:016x}" if name else f"PCI-{address or index}",
            ordinal=index,
            minor=library.number("rsmi_dev_drm_render_minor_get", number),
            address=address,
            model=library.text("rsmi_dev_name_get", number, size=c_size_t),
            firmware=library.text("rsmi_dev_vbios_version_get", number),
            utilization=scaled(library.number("rsmi_dev_busy_percent_get", number), PERCENT),
            memory_utilization=scaled(library.number("rsmi_dev_memory_busy_percent_get", number), PERCENT),
            memory_total=library.number("rsmi_dev_memory_total_get", number, c_uint32(VRAM), kind=c_uint64),
            memory_used=library.number("rsmi_dev_memory_usage_get", number, c_uint32(VRAM), kind=c_uint64),
            temperature=self._temperature(number, EDGE, JUNCTION),
            memory_temperature=self._temperature(number, MEMORY_SENSOR),
            fan=self._fan(number),
            **self._clocks(number),
            **self._power(number),
            **self._errors(number),
        )

    def _power(self, number: c_uint32) -> dict[str, Any]:
        """Microwatts. From MI300 on there is only the socket's, before only the average."""
        library = self._library
        power = library.number("rsmi_dev_current_socket_power_get", number, kind=c_uint64)
        if not power:
            power = library.number("rsmi_dev_power_ave_get", number, c_uint32(0), kind=c_uint64)
        limit = library.number("rsmi_dev_power_cap_get", number, c_uint32(0), kind=c_uint64)
        most, least = c_uint64(), c_uint64()
        known = library.ask("rsmi_dev_power_cap_range_get", number, c_uint32(0), byref(most), byref(least))
        return {
            "power": scaled(power or None, MICRO),
            "power_limit": scaled(limit or None, MICRO),
            "power_least": least.value * MICRO if known else None,
            "power_most": most.value * MICRO if known and most.value else None,
            "energy": self._energy(number),
        }

    def _energy(self, number: c_uint32) -> float | None:
        """Steps of the counter, times the microjoules of one."""
        steps, resolution, moment = c_uint64(), c_float(), c_uint64()
        arguments = (number, byref(steps), byref(resolution), byref(moment))
        if not self._library.ask("rsmi_dev_energy_count_get", *arguments) or not steps.value:
            return None
        # The step is told in 32 bits, 15.259 and no more: as it is written, not as it is rounded.
        return steps.value * round(resolution.value, 4) * MICRO

    def _temperature(self, number: c_uint32, *sensors: int) -> float | None:
        """Thousandths of a degree, of the first sensor that there is."""
        for sensor in sensors:
            name = "rsmi_dev_temp_metric_get"
            found = self._library.number(name, number, c_uint32(sensor), c_uint32(CURRENT), kind=c_int64)
            if found is not None:
                return found * MILLI
        return None

    def _fan(self, number: c_uint32) -> float | None:
        speed = self._library.number("rsmi_dev_fan_speed_get", number, c_uint32(0), kind=c_int64)
        most = self._library.number("rsmi_dev_fan_speed_max_get", number, c_uint32(0), kind=c_uint64)
        return speed / most if speed is not None and most else None

    def _clocks(self, number: c_uint32) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for kind, now, most in (
            (SYSTEM_CLOCK, "clock", "clock_max"),
            (MEMORY_CLOCK, "memory_clock", "memory_clock_max"),
        ):
            room = create_string_buffer(CLOCKS_ROOM)
            if self._library.ask("rsmi_dev_gpu_clk_freq_get", number, c_uint32(kind), room):
                found[now], found[most] = clocks_of(room.raw)
        return found

    def _errors(self, number: c_uint32) -> dict[str, Any]:
        """Of the memory. Newer releases write more than the two numbers wanted."""
        room = (c_uint64 * 8)()
        if not self._library.ask("rsmi_dev_ecc_count_get", number, c_uint64(MEMORY_BLOCK), room):
            return {}
        return {"ecc_corrected": int(room[0]), "ecc_uncorrected": int(room[1])}

    def _holders(self, cards: list[Card]) -> Iterator[Holder]:
        """Processes, each on the cards it has. The list of all tells their numbers and no more."""
        for pid in self._pids():
            for index in self._cards_of(pid):
                if index >= len(cards):
                    continue
                # Room for what later releases add.
                room = (Process * 2)()
                by_card = "rsmi_compute_process_info_by_device_get"
                failed = self._library.call(by_card, c_uint32(pid), c_uint32(index), room)
                # A library that cannot tell one card's memory tells that of all together: nothing, then.
                memory, occupancy = (None, NONE) if failed else (int(room[0].vram), int(room[0].occupancy))
                yield Holder(
                    uuid=cards[index].uuid,
                    pid=pid,
                    kind="compute",
                    memory=memory,
                    utilization=None if occupancy == NONE else occupancy * PERCENT,
                )

    def _pids(self) -> list[int]:
        count = c_uint32(0)
        if not self._library.ask("rsmi_compute_process_info_get", None, byref(count)) or not count.value:
            return []
        room = (Process * count.value)()
        if not self._library.ask("rsmi_compute_process_info_get", room, byref(count)):
            return []
        return sorted({one.pid for one in room[: min(count.value, len(room))] if one.pid})

    def _cards_of(self, pid: int) -> list[int]:
        count = c_uint32(0)
        # One that ended meanwhile is not found.
        if self._library.call("rsmi_compute_process_gpus_get", c_uint32(pid), None, byref(count)) or not count.value:
            return []
        room = (c_uint32 * count.value)()
        if self._library.call("rsmi_compute_process_gpus_get", c_uint32(pid), room, byref(count)):
            return []
        return sorted(set(room[: min(count.value, len(room))]))


def distinct(card: Card, before: list[Card]) -> Card:
    """A partition has its card's id: it is named after its place among them, and the card's power is not its own."""
    others = sum(1 for other in before if card.uuid in (other.uuid, other.parent))
    if not others:
        return card
    return card._replace(
        uuid=f"{card.uuid}/{others}", parent=card.uuid, power=None, energy=None, power_limit=None, power_least=None,
        power_most=None,
    )  # fmt: skip


def address_of(place: int) -> str:
    """`0x4100` → `0000:41:00.0`, as the kernel writes it: the domain above, then eight bits, five and three."""
    return f"{place >> 32:04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"


def clocks_of(raw: bytes) -> tuple[int | None, int | None]:
    """The clock now and the highest one, in hertz, whichever release wrote them.

    In later ones a flag comes first. Without it the first byte is how many clocks there are, and the number of the
    one in force, which follows, is lower: read as if there were a flag, it is none, or there are no clocks.
    """
    flag, count, current = struct.unpack_from("=B3xII", raw)
    start = 16
    if flag > 1 or not 0 < count <= MOST_CLOCKS or current >= count:
        count, current = struct.unpack_from("=II", raw)
        start = 8
    if not 0 < count <= MOST_CLOCKS or current >= count:
        return None, None
    hertz = struct.unpack_from(f"={count}Q", raw, start)
    return hertz[current], max(hertz)
