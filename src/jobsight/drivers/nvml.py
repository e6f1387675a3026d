"""NVIDIA's cards. Runs in a process of its own, see `drivers.attendant`.

Whatever a card does not support stays None; a call that fails otherwise is named in the card's `trouble`. Means over
the time since the last sample come from the library's own buffer of samples and, from Hopper on, from its performance
monitor, which counts rather than samples; neither needs a privilege.
"""

from collections.abc import Iterator
from ctypes import byref, c_int, c_uint, c_ulonglong, c_void_p
from typing import Any

from jobsight.drivers.card import Card, Holder, Reading
from jobsight.drivers.nvmllibrary import PERCENT, Field, Library, Memory, NvmlError, Pci, Running, Violation
from jobsight.drivers.nvmlmean import Means
from jobsight.drivers.nvmlxid import Xids

MILLI, MEGA, NANO = 1e-3, 1_000_000, 1e-9
SM_CLOCK, MEMORY_CLOCK = 1, 2
CORRECTED, UNCORRECTED, SINCE_EVER = 0, 1, 1
POWER_POLICY, THERMAL_POLICY = 0, 1
MEMORY_TEMPERATURE = 82
MOST_PROCESSES = 256

ARCHITECTURES = {2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing", 7: "Ampere", 8: "Ada", 9: "Hopper",
                 10: "Blackwell"}  # fmt: skip
# Why a card runs slower than it could. Idle, and what somebody asked for, are no reasons.
REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal",
    0x40: "hardware thermal",
    0x80: "power brake",
}


def scaled(value: int | None, by: float) -> Any:
    return None if value is None else value * by


class Reader:
    """All cards, again and again; remembers what means are taken against."""

    def __init__(self, library: Library | None = None) -> None:
        self._library = library or Library()
        self._means = Means(self._library)
        self._xids = Xids(self._library)
        self._fixed: dict[str, Card] = {}

    def read(self) -> Reading:
        library = self._library
        count = library.number("nvmlDeviceGetCount_v2")
        if count is None:
            raise NvmlError(library.told() or "nvmlDeviceGetCount_v2: not supported")
        cards: list[Card] = []
        holders: list[Holder] = []
        driver, release = library.text("nvmlSystemGetDriverVersion"), self._cuda()
        for index in range(count):
            handle = c_void_p()
            if not library.ask("nvmlDeviceGetHandleByIndex_v2", c_uint(index), byref(handle)):
                cards.append(Card("nvidia", ordinal=index, trouble=library.told() or "no such card"))
                continue
            card = self._card(handle, index)._replace(driver=driver, library=release)
            card = self._means.of(handle, card)._replace(xid=self._xids.of(handle))
            held = list(self._holders(handle, card.uuid))
            parts = list(self._instances(handle, card)) if card.divided else []
            cards += [card._replace(trouble=library.told()), *parts]
            holders += held
        return Reading(cards, holders)

    def _cuda(self) -> str | None:
        version = self._library.number("nvmlSystemGetCudaDriverVersion_v2", kind=c_int)
        return None if version is None else f"CUDA {version // 1000}.{version % 1000 // 10}"

    def _card(self, handle: c_void_p, index: int) -> Card:
        library = self._library
        number = library.number
        mode = c_uint()
        divided = library.ask("nvmlDeviceGetMigMode", handle, byref(mode), byref(c_uint())) and mode.value == 1
        return self._fixed_of(handle, index)._replace(
            divided=divided,
            fan=scaled(number("nvmlDeviceGetFanSpeed", handle), PERCENT),
            clock=scaled(number("nvmlDeviceGetClockInfo", handle, c_uint(SM_CLOCK)), MEGA),
            memory_clock=scaled(number("nvmlDeviceGetClockInfo", handle, c_uint(MEMORY_CLOCK)), MEGA),
            temperature=scaled(number("nvmlDeviceGetTemperature", handle, c_uint(0)), 1.0),
            memory_temperature=self._field(handle, MEMORY_TEMPERATURE),
            throttle=self._throttle(handle),
            power_capped=self._violation(handle, POWER_POLICY),
            overheated=self._violation(handle, THERMAL_POLICY),
            ecc_corrected=self._errors(handle, CORRECTED),
            ecc_uncorrected=self._errors(handle, UNCORRECTED),
            **self._memory(handle),
            **self._power(handle),
        )

    def _fixed_of(self, handle: c_void_p, index: int) -> Card:
        """What a card is, asked once: some of it is dear, and after a change of driver this process ends."""
        library, uuid = self._library, self._library.text("nvmlDeviceGetUUID", handle) or ""
        if uuid and uuid in self._fixed:
            return self._fixed[uuid]._replace(ordinal=index)
        number, text, pci = library.number, library.text, Pci()
        found = Card(
            vendor="nvidia",
            uuid=uuid,
            ordinal=index,
            minor=number("nvmlDeviceGetMinorNumber", handle),
            address=pci.address.decode() if library.ask("nvmlDeviceGetPciInfo_v3", handle, byref(pci)) else None,
            model=text("nvmlDeviceGetName", handle),
            architecture=ARCHITECTURES.get(number("nvmlDeviceGetArchitecture", handle) or 0),
            firmware=text("nvmlDeviceGetVbiosVersion", handle),
            clock_max=scaled(number("nvmlDeviceGetMaxClockInfo", handle, c_uint(SM_CLOCK)), MEGA),
            memory_clock_max=scaled(number("nvmlDeviceGetMaxClockInfo", handle, c_uint(MEMORY_CLOCK)), MEGA),
        )
        self._fixed[uuid] = found
        return found

    def _memory(self, handle: c_void_p) -> dict[str, Any]:
        found = Memory()
        if not self._library.ask("nvmlDeviceGetMemoryInfo", handle, byref(found)):
            return {}
        return {"memory_total": int(found.total), "memory_used": int(found.used)}

    def _power(self, handle: c_void_p) -> dict[str, Any]:
        number = self._library.number
        least, most = c_uint(), c_uint()
        known = self._library.ask("nvmlDeviceGetPowerManagementLimitConstraints", handle, byref(least), byref(most))
        return {
            "power": scaled(number("nvmlDeviceGetPowerUsage", handle), MILLI),
            "power_limit": scaled(number("nvmlDeviceGetEnforcedPowerLimit", handle), MILLI),
            "power_least": least.value * MILLI if known else None,
            "power_most": most.value * MILLI if known else None,
            "energy": scaled(number("nvmlDeviceGetTotalEnergyConsumption", handle, kind=c_ulonglong), MILLI),
        }

    def _throttle(self, handle: c_void_p) -> str | None:
        # The call was renamed; older libraries have the first name only.
        for name in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
            reasons = self._library.number(name, handle, kind=c_ulonglong)
            if reasons is not None:
                return ", ".join(word for bit, word in REASONS.items() if reasons & bit)
        return None

    def _violation(self, handle: c_void_p, policy: int) -> float | None:
        found = Violation()
        asked = self._library.ask("nvmlDeviceGetViolationStatus", handle, c_uint(policy), byref(found))
        return found.time * NANO if asked else None

    def _errors(self, handle: c_void_p, kind: int) -> int | None:
        name = "nvmlDeviceGetTotalEccErrors"
        return self._library.number(name, handle, c_uint(kind), c_uint(SINCE_EVER), kind=c_ulonglong)

    def _field(self, handle: c_void_p, number: int) -> float | None:
        found = (Field * 1)()
        found[0].id = number
        if not self._library.ask("nvmlDeviceGetFieldValues", handle, c_int(1), found) or found[0].status:
            return None
        return float(found[0].value.uint)

    def _holders(self, handle: c_void_p, uuid: str) -> Iterator[Holder]:
        """Processes on a card, each once; one may compute and draw."""
        shares = self._means.shares(handle, uuid)
        for kind in ("Compute", "Graphics"):
            for one in self._running(f"nvmlDeviceGet{kind}RunningProcesses", handle):
                sm, memory = shares.get(one.pid, (None, None))
                yield Holder(uuid, one.pid, kind.lower(), one.memory, sm, memory)

    def _running(self, name: str, handle: c_void_p) -> list[Running]:
        count, room = c_uint(MOST_PROCESSES), (Running * MOST_PROCESSES)()
        # Without _v3 an older library fills a smaller structure: better none than wrong ones.
        return list(room[: count.value]) if self._library.ask(f"{name}_v3", handle, byref(count), room) else []

    def _instances(self, handle: c_void_p, card: Card) -> Iterator[Card]:
        """The instances of a divided card: their memory, and from Hopper on their use."""
        library = self._library
        for number in range(library.number("nvmlDeviceGetMaxMigDeviceCount", handle) or 0):
            part = c_void_p()
            if library.call("nvmlDeviceGetMigDeviceHandleByIndex", handle, c_uint(number), byref(part)):
                continue
            uuid = library.text("nvmlDeviceGetUUID", part) or ""
            found = Card(vendor="nvidia", uuid=uuid, parent=card.uuid, ordinal=card.ordinal, minor=card.minor,
                         address=card.address, model=library.text("nvmlDeviceGetName", part) or card.model,
                         **self._memory(part))  # fmt: skip
            yield self._means.of_instance(handle, part, found)._replace(trouble=library.told())
