"""Intel's cards, by XPU Manager. Runs in a process of its own, see `drivers.attendant`. Names are those of its header
files xpum_api.h and xpum_structs.h, and so are units.

Statistics come with a scale each: a value of 30125 and a scale of 100 are 301.25. Power is in watts already, energy
in millijoules, limits in milliwatts. A card of several tiles has rows for the card or only for its tiles.
"""

import time
from collections.abc import Iterator
from ctypes import Structure, byref, c_bool, c_char, c_int, c_int32, c_uint32, c_uint64, create_string_buffer, sizeof
from typing import Any, ClassVar, NamedTuple

from jobsight.drivers.card import Card, Holder, Reading
from jobsight.drivers.library import Busy, Library, LibraryError, decoded, scaled
from jobsight.drivers.soname import XPUM
from jobsight.host import Host

UNSUPPORTED = 61
# Metrics that are not supported or not enabled.
QUIET = frozenset({32, 33})
MILLI, MEGA, PERCENT = 1e-3, 1_000_000, 0.01
# Numbers of statistics, with their units.
UTILIZATION, POWER, ENERGY, CLOCK, TEMPERATURE, MEMORY_USED, BANDWIDTH = 0, 4, 5, 6, 7, 8, 10  # % W mJ MHz °C B %
MEMORY_TEMPERATURE = 30  # °C
# Numbers of properties.
NAME, UUID, ADDRESS, DRIVER, FIRMWARE, CLOCK_RATE, MEMORY_SIZE = 1, 3, 6, 13, 15, 21, 22
MOST_PROPERTIES, MOST_PROCESSES, MOST_TILES = 100, 1024, 16
# Statistics there are, at least and at most: each release has its own number of them.
LEAST_STATISTICS, MOST_STATISTICS = 30, 64
FIRST_RENDER = 128


class Property(Structure):
    _fields_: ClassVar = [("name", c_int), ("value", c_char * 256)]


class Properties(Structure):
    _fields_: ClassVar = [("card", c_int32), ("properties", Property * MOST_PROPERTIES), ("count", c_int)]


class Statistic(Structure):
    _fields_: ClassVar = [
        ("kind", c_int), ("is_counter", c_bool), ("value", c_uint64), ("accumulated", c_uint64), ("least", c_uint64),
        ("mean", c_uint64), ("most", c_uint64), ("scale", c_uint32),
    ]  # fmt: skip


class Header(Structure):
    """Before the statistics of a card or a tile."""

    _fields_: ClassVar = [("card", c_int32), ("is_tile", c_bool), ("tile", c_int32), ("count", c_int32)]


class Limits(Structure):
    _fields_: ClassVar = [("enabled", c_bool), ("power", c_int32), ("interval", c_int32), ("more", c_int32 * 13)]


class Process(Structure):
    _fields_: ClassVar = [
        ("pid", c_uint32), ("memory", c_uint64), ("shared", c_uint64), ("engine", c_int), ("name", c_char * 256),
    ]  # fmt: skip


class Value(NamedTuple):
    """One statistic, unscaled: now (for a counter, since ever), and the mean since the last look."""

    now: float
    mean: float


class Reader:
    """All cards, again and again."""

    def __init__(self, names: tuple[str, ...] = XPUM, host: Host | None = None) -> None:
        self._host = host or Host()
        self._library = Library(names, UNSUPPORTED, QUIET, {})
        self._library.begin("xpumInit")
        self._busy = Busy()

    def read(self) -> Reading:
        library = self._library
        count = c_int(0)
        if not library.ask("xpumGetDeviceList", None, byref(count)):
            raise LibraryError(library.told() or "xpumGetDeviceList: not supported")
        cards, holders = [], []
        for number in range(count.value):
            card = self._card(number)
            busy = self._busy.add(card.uuid, card.utilization, time.monotonic())
            holders += list(self._holders(number, card.uuid))
            cards.append(card._replace(busy=busy, trouble=library.told()))
        return Reading(cards, holders)

    def _card(self, number: int) -> Card:
        properties = self._properties(number)
        values = self._values(number)
        limit = self._limit(number)
        address, uuid = properties.get(ADDRESS), properties.get(UUID, "")
        clock = properties.get(CLOCK_RATE, "")
        size = properties.get(MEMORY_SIZE, "")
        return Card(
            vendor="intel",
            uuid=uuid if uuid.strip("0-") else f"PCI-{address or number}",
            ordinal=number,
            minor=self._minor(address),
            address=address,
            model=properties.get(NAME),
            driver=properties.get(DRIVER),
            firmware=properties.get(FIRMWARE),
            clock_max=int(clock) * MEGA if clock.isdecimal() else None,
            memory_total=int(size) if size.isdecimal() else None,
            power_limit=limit,
            utilization=scaled(mean(values, UTILIZATION), PERCENT),
            memory_active=scaled(mean(values, BANDWIDTH), PERCENT),
            power=mean(values, POWER),
            energy=scaled(now(values, ENERGY), MILLI),
            clock=whole(scaled(now(values, CLOCK), MEGA)),
            temperature=now(values, TEMPERATURE),
            memory_temperature=now(values, MEMORY_TEMPERATURE),
            memory_used=whole(now(values, MEMORY_USED)),
        )

    def _properties(self, number: int) -> dict[int, str]:
        found = Properties()
        if not self._library.ask("xpumGetDeviceProperties", c_int32(number), byref(found)):
            return {}
        kept = found.properties[: min(max(found.count, 0), MOST_PROPERTIES)]
        return {one.name: decoded(one.value) for one in kept if one.value}

    def _limit(self, number: int) -> float | None:
        """Milliwatts; minus one tile is the whole card."""
        found = Limits()
        asked = self._library.ask("xpumGetDevicePowerLimits", c_int32(number), c_int32(-1), byref(found))
        return found.power * MILLI if asked and found.enabled and found.power > 0 else None

    def _values(self, number: int) -> dict[int, Value]:
        entry = sizeof(Header) + MOST_STATISTICS * sizeof(Statistic)
        room = create_string_buffer(b"\xff" * (MOST_TILES * entry), MOST_TILES * entry)
        count, begin, end = c_uint32(MOST_TILES), c_uint64(), c_uint64()
        arguments = (c_int32(number), room, byref(count), byref(begin), byref(end), c_uint64(0))
        if not self._library.ask("xpumGetStats", *arguments):
            return {}
        return together(list(entries(room, count.value, number)))

    def _minor(self, address: str | None) -> int | None:
        """Of the card's file for computing, /dev/dri/renderD128, which the kernel lists below its address."""
        for name in sorted(self._host.names(f"sys/bus/pci/devices/{address}/drm")) if address else ():
            digits = name.removeprefix("renderD")
            if digits.isdecimal() and int(digits) >= FIRST_RENDER:
                return int(digits)
        return None

    def _holders(self, number: int, uuid: str) -> Iterator[Holder]:
        """Processes and their memory on the card, in bytes; shares of it are not told without waiting."""
        count, room = c_uint32(MOST_PROCESSES), (Process * MOST_PROCESSES)()
        if self._library.ask("xpumGetDeviceProcessState", c_int32(number), room, byref(count)):
            for one in room[: min(count.value, MOST_PROCESSES)]:
                if one.pid:
                    yield Holder(uuid=uuid, pid=one.pid, kind="compute", memory=int(one.memory))


def entries(room: Any, count: int, number: int) -> Iterator[tuple[Header, list[Statistic]]]:
    """The card's or its tiles' statistics. How long an entry is depends on the release: it is seen from where the
    second one begins.
    """
    step = stride(room, number) if count > 1 else 0
    # Where that cannot be seen, what one tile of several says is not said of the card.
    for index in range(min(count, MOST_TILES)) if step is not None else ():
        place = index * (step or 0)
        header = Header.from_buffer(room, place)
        kept = min(max(header.count, 0), MOST_STATISTICS)
        yield header, list((Statistic * kept).from_buffer(room, place + sizeof(Header)))


def stride(room: Any, number: int) -> int | None:
    """How far entries are apart; None if no second one is found."""
    for statistics in range(LEAST_STATISTICS, MOST_STATISTICS + 1):
        step = sizeof(Header) + statistics * sizeof(Statistic)
        header = Header.from_buffer(room, step)
        first = Statistic.from_buffer(room, step + sizeof(Header))
        if (
            header.card == number
            and room.raw[step + Header.is_tile.offset] in (0, 1)
            and 0 <= header.tile < MOST_TILES
            and 0 < header.count <= statistics
            and 0 <= first.kind < MOST_STATISTICS
        ):
            return step
    return None


def together(found: list[tuple[Header, list[Statistic]]]) -> dict[int, Value]:
    """Of each statistic that of the card; where only its tiles have it: their sum, their mean or the hottest."""
    whole_card: dict[int, Value] = {}
    tiles: dict[int, list[Value]] = {}
    for header, statistics in found:
        for one in statistics:
            scale = one.scale or 1
            current = one.accumulated if one.is_counter else one.value
            value = Value(current / scale, one.mean / scale)
            if header.is_tile:
                tiles.setdefault(one.kind, []).append(value)
            else:
                whole_card[one.kind] = value
    for kind, values in tiles.items():
        nows, means = [value.now for value in values], [value.mean for value in values]
        if kind in (POWER, ENERGY, MEMORY_USED):
            joined = Value(sum(nows), sum(means))
        elif kind in (TEMPERATURE, MEMORY_TEMPERATURE):
            joined = Value(max(nows), max(means))
        else:
            joined = Value(sum(nows) / len(nows), sum(means) / len(means))
        whole_card.setdefault(kind, joined)
    return whole_card


def now(values: dict[int, Value], kind: int) -> float | None:
    return values[kind].now if kind in values else None


def mean(values: dict[int, Value], kind: int) -> float | None:
    return values[kind].mean if kind in values else None


def whole(value: float | None) -> int | None:
    return None if value is None else round(value)
