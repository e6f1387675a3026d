"""What a job does on one node, as curves that can be integrated exactly.

A life is a row of phases. Within one everything is linear in time, but for a wobble of the CPU rate that adds nothing
over a whole phase: so each phase's totals are known, and so is the total at any instant between.
"""

from bisect import bisect_right
from collections.abc import Sequence
from math import cos, pi
from typing import NamedTuple

# CPU rate: waves of the given size and about so many seconds; together they stay far below the rate itself.
WAVES = ((0.012, 2900.0), (0.011, 640.0), (0.009, 171.0))
# Their lengths differ from phase to phase, up to twice as long.
GOLDEN = 0.6180339887


class Phase(NamedTuple):
    """A stretch in which a job does one thing."""

    kind: str
    """`load`, `compute`, `serial`, `checkpoint`, `hung`, `wait`."""
    seconds: float
    cores: float
    """Cores kept busy on a node, on average."""
    memory: tuple[float, float]
    """Bytes of its own on a node, at the begin and at the end."""
    read: float = 0.0
    """Bytes a second on a node."""
    written: float = 0.0
    gpu: float = 0.0
    """Part of the time in which each of its GPUs computes."""
    gpu_memory: float = 0.0
    """Part of each GPU's memory in use."""


class Level(NamedTuple):
    """How far a job has come on a node at one instant."""

    cpu: float
    read: float
    written: float
    memory: float
    cache: float
    peak: float
    """The most memory and cache there ever were together."""
    rate: float
    """Cores busy, wobble left aside."""
    kind: str
    """Of the phase it is in."""
    gpu: float
    """Seconds in which each of its cards computed."""
    gpu_rate: float
    gpu_memory: float
    """Part of each card's memory in use."""


class _Piece(NamedTuple):
    begin: float
    seconds: float
    start: Level
    read: float
    written: float
    memory: float
    cache: float
    waves: tuple[tuple[float, float], ...]


class Curve:
    """What one job does on one node, from its start to its end."""

    def __init__(self, start: float, phases: Sequence[Phase], room: float, share: float = 1.0) -> None:
        """`room`: memory it may have there; cache takes what its own memory leaves, up to a half. `share`: its part
        of the work where nodes are not used alike.
        """
        most = max(max(phase.memory) for phase in phases)
        space = max(0.0, min(0.5 * room, room - most))
        self._pieces: list[_Piece] = []
        now = Level(0.0, 0.0, 0.0, phases[0].memory[0], 0.0, phases[0].memory[0], 0.0, "", 0.0, 0.0, 0.0)
        for phase in phases:
            now = self._add(start, phase, share, space, now)
            start += phase.seconds
        self._begins = [piece.begin for piece in self._pieces]
        self.end = start
        self._last = now._replace(rate=0.0, gpu_rate=0.0)

    def _add(self, begin: float, phase: Phase, share: float, space: float, before: Level) -> Level:
        seconds, rate = phase.seconds, phase.cores * share
        moved = (phase.read + phase.written) * share * seconds
        cache = min(space, before.cache + moved)
        low, high = phase.memory
        start = before._replace(
            rate=rate, kind=phase.kind, memory=low, peak=max(before.peak, low + before.cache), gpu_rate=phase.gpu,
            gpu_memory=phase.gpu_memory,
        )  # fmt: skip
        waves = []
        for number, (size, period) in enumerate(WAVES):
            longer = 1 + (begin * GOLDEN + number * 0.37) % 1
            turns = 2 * pi * max(1, round(seconds / (period * longer))) / seconds
            waves.append((rate * size / turns, turns))
        piece = _Piece(
            begin, seconds, start, phase.read * share, phase.written * share, (high - low) / seconds,
            (cache - before.cache) / seconds, tuple(waves) if rate else (),
        )  # fmt: skip
        self._pieces.append(piece)
        return Level(
            before.cpu + rate * seconds, before.read + piece.read * seconds, before.written + piece.written * seconds,
            high, cache, max(start.peak, high + cache), rate, phase.kind, before.gpu + phase.gpu * seconds, phase.gpu,
            phase.gpu_memory,
        )  # fmt: skip

    def at(self, time: float) -> Level:
        """Totals and levels at an instant; before the start nothing, after the end what was left."""
        if time >= self.end:
            return self._last
        place = bisect_right(self._begins, time) - 1
        if place < 0:
            return NOTHING
        begin, _, start, read, written, memory, cache, waves = self._pieces[place]
        past = time - begin
        cpu = start.cpu + start.rate * past
        for size, turns in waves:
            cpu += size * (1.0 - cos(turns * past))
        own, pages = start.memory + memory * past, start.cache + cache * past
        return Level(
            cpu, start.read + read * past, start.written + written * past, own, pages, max(start.peak, own + pages),
            start.rate, start.kind, start.gpu + start.gpu_rate * past, start.gpu_rate, start.gpu_memory,
        )  # fmt: skip

    def peak(self) -> float:
        """The most memory of its own there ever is."""
        ends = (piece.start.memory + piece.memory * piece.seconds for piece in self._pieces)
        return max(*(piece.start.memory for piece in self._pieces), *ends)


NOTHING = Level(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "", 0.0, 0.0, 0.0)


def cut(phases: Sequence[Phase], seconds: float) -> tuple[Phase, ...]:
    """The phases of a life that ends earlier."""
    left, found = seconds, []
    for phase in phases:
        if left <= 0:
            break
        part = min(1.0, left / phase.seconds)
        low, high = phase.memory
        found.append(phase._replace(seconds=min(left, phase.seconds), memory=(low, low + (high - low) * part)))
        left -= phase.seconds
    return tuple(found)


def length(phases: Sequence[Phase]) -> float:
    return sum(phase.seconds for phase in phases)
