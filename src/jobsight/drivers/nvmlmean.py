"""Means over the time since the last sample: what a card was busy with, and who kept it so.

The performance monitor (GPM, from Hopper on) keeps counters; two of its samples give exact means. Older cards have a
buffer of utilisation samples, some fifteen seconds long, of which those since the last look are averaged. From either
grow counters (`busy`, bytes over PCIe): a message that is lost then costs no use.
"""

import time
from ctypes import Structure, byref, c_char_p, c_double, c_int, c_uint, c_ulonglong, c_void_p
from typing import Any, ClassVar

from jobsight.drivers.card import Card
from jobsight.drivers.nvmllibrary import MIB, PERCENT, Library, ProcessSample, Sample, Utilization

VERSION = 1
UTILIZATION_SAMPLES = 1
ACTIVE, SM_ACTIVE, OCCUPANCY, TENSOR, DRAM, SENT, RECEIVED = 1, 2, 3, 5, 10, 20, 21
METRICS = (ACTIVE, SM_ACTIVE, OCCUPANCY, TENSOR, DRAM, SENT, RECEIVED)
# As large as the library's own structure.
MOST_METRICS = 333
# Seconds; over less the monitor has nothing to say.
SHORTEST = 0.1


class Support(Structure):
    _fields_: ClassVar = [("version", c_uint), ("supported", c_uint)]


class Metric(Structure):
    _fields_: ClassVar = [
        ("id", c_uint), ("status", c_int), ("value", c_double), ("short", c_char_p), ("long", c_char_p),
        ("unit", c_char_p),
    ]  # fmt: skip


class Metrics(Structure):
    _fields_: ClassVar = [
        ("version", c_uint), ("count", c_uint), ("first", c_void_p), ("second", c_void_p),
        ("metrics", Metric * MOST_METRICS),
    ]  # fmt: skip


class Kept:
    """Of one card, or one instance: the last sample, and what has been counted since the first."""

    def __init__(self) -> None:
        self.at = 0.0
        self.sample: c_void_p | None = None
        self.seen = 0
        self.seen_processes = 0
        self.busy = 0.0
        self.sent = self.received = 0.0


class Means:
    """What is kept of every card."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._kept: dict[str, Kept] = {}

    def of(self, handle: c_void_p, card: Card) -> Card:
        """The card with its means. At the first look there is only what it does just now."""
        kept = self._kept.setdefault(card.uuid, Kept())
        now = time.monotonic()
        seconds, kept.at = (now - kept.at if kept.at else 0.0), now
        rates = Utilization()
        if self._library.ask("nvmlDeviceGetUtilizationRates", handle, byref(rates)):
            card = card._replace(utilization=rates.gpu * PERCENT, memory_utilization=rates.memory * PERCENT)
        if not self._has_monitor(handle):
            mean = self._buffered(handle, kept)
            card = card if mean is None else card._replace(utilization=mean)
        card = self._monitored(handle, None, kept, seconds, card)
        if card.utilization is not None:
            kept.busy += card.utilization * seconds
            card = card._replace(busy=kept.busy)
        return card

    def of_instance(self, handle: c_void_p, part: c_void_p, card: Card) -> Card:
        """The same for an instance: there is the monitor or nothing."""
        number = self._library.number("nvmlDeviceGetGpuInstanceId", part)
        if number is None or not card.uuid:
            return card
        kept = self._kept.setdefault(card.uuid, Kept())
        now = time.monotonic()
        seconds, kept.at = (now - kept.at if kept.at else 0.0), now
        card = self._monitored(handle, number, kept, seconds, card)
        if card.utilization is not None:
            kept.busy += card.utilization * seconds
            card = card._replace(busy=kept.busy)
        return card

    def shares(self, handle: c_void_p, uuid: str) -> dict[int, tuple[float, float]]:
        """Of each process on the card, its mean share of the SMs and of the memory's time since the last look."""
        kept = self._kept.setdefault(uuid, Kept())
        count = c_uint(0)
        name = "nvmlDeviceGetProcessUtilization"
        self._library.call(name, handle, None, byref(count), c_ulonglong(kept.seen_processes))
        if not count.value:
            return {}
        room = (ProcessSample * count.value)()
        if self._library.call(name, handle, room, byref(count), c_ulonglong(kept.seen_processes)):
            return {}
        sums: dict[int, list[float]] = {}
        for one in room[: count.value]:
            if one.pid and one.sm <= 100 and one.memory <= 100:
                kept.seen_processes = max(kept.seen_processes, one.time)
                total = sums.setdefault(one.pid, [0.0, 0.0, 0.0])
                total[0] += 1
                total[1] += one.sm * PERCENT
                total[2] += one.memory * PERCENT
        return {pid: (sm / number, memory / number) for pid, (number, sm, memory) in sums.items()}

    def _buffered(self, handle: c_void_p, kept: Kept) -> float | None:
        """Mean of the samples since the last look."""
        kind, count = c_int(), c_uint(0)
        arguments = (handle, c_uint(UTILIZATION_SAMPLES), c_ulonglong(kept.seen), byref(kind), byref(count))
        if self._library.call("nvmlDeviceGetSamples", *arguments, None) or not count.value:
            return None
        room = (Sample * count.value)()
        if self._library.call("nvmlDeviceGetSamples", *arguments, room):
            return None
        first = not kept.seen
        found = [one for one in room[: count.value] if one.time > kept.seen and one.value.uint <= 100]
        kept.seen = max([kept.seen, *(one.time for one in found)])
        # The first time the buffer is of a past that nobody asked about.
        return None if first or not found else sum(one.value.uint for one in found) * PERCENT / len(found)

    def _monitored(self, handle: c_void_p, instance: int | None, kept: Kept, seconds: float, card: Card) -> Card:
        """The monitor's means since its last sample, where there is a monitor."""
        if not self._has_monitor(handle):
            return card
        sample = self._sample(handle, instance)
        before, kept.sample = kept.sample, sample
        if sample is None or before is None:
            return card
        found = self._metrics(before, sample) if seconds >= SHORTEST else {}
        self._library.call("nvmlGpmSampleFree", before)
        if SENT in found and RECEIVED in found:
            kept.sent += found[SENT] * MIB * seconds
            kept.received += found[RECEIVED] * MIB * seconds
            card = card._replace(pcie_sent=int(kept.sent), pcie_received=int(kept.received))
        return card._replace(
            utilization=share(found, ACTIVE) if ACTIVE in found else card.utilization,
            sm_active=share(found, SM_ACTIVE),
            sm_occupancy=share(found, OCCUPANCY),
            tensor_active=share(found, TENSOR),
            memory_active=share(found, DRAM),
        )

    def _has_monitor(self, handle: c_void_p) -> bool:
        support = Support(VERSION, 0)
        return not self._library.call("nvmlGpmQueryDeviceSupport", handle, byref(support)) and bool(support.supported)

    def _sample(self, handle: c_void_p, instance: int | None) -> c_void_p | None:
        sample = c_void_p()
        if self._library.call("nvmlGpmSampleAlloc", byref(sample)):
            return None
        if instance is None:
            failed = self._library.call("nvmlGpmSampleGet", handle, sample)
        else:
            failed = self._library.call("nvmlGpmMigSampleGet", handle, c_uint(instance), sample)
        if failed:
            self._library.call("nvmlGpmSampleFree", sample)
            return None
        return sample

    def _metrics(self, before: c_void_p, now: c_void_p) -> dict[int, float]:
        asked = Metrics(VERSION, len(METRICS), before, now)
        for place, number in enumerate(METRICS):
            asked.metrics[place].id = number
        if not self._library.ask("nvmlGpmMetricsGet", byref(asked)):
            return {}
        answers: list[Any] = asked.metrics[: len(METRICS)]
        return {one.id: one.value for one in answers if not one.status and one.value == one.value}


def share(found: dict[int, float], metric: int) -> float | None:
    """A percentage as a ratio. The monitor rounds: a little more than all is all."""
    value = found.get(metric)
    return None if value is None else min(1.0, value * PERCENT) if value <= 101 else value * PERCENT
