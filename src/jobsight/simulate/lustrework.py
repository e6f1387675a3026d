"""Who uses a simulated Lustre file system, when and how much: jobs on nodes, people on login nodes, the system."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from jobsight.simulate.lustreclient import Client
from jobsight.simulate.truth import Truth

MIB = 2**20
# A request moves no more.
LARGEST = 4 * MIB
# Names are used once for so many bytes.
FILE = 64 * MIB


class Use(NamedTuple):
    """One process, or all of a job on one node, over its life. Totals are of bytes since its start."""

    client: Client
    start: float
    end: float
    read: Callable[[float], float]
    written: Callable[[float], float]
    opens: float = 0.2
    """A second, besides those that come with bytes."""
    stripes: int = 2
    """Object targets its files lie on."""
    request: int = LARGEST
    """Bytes in one."""


class Phase(NamedTuple):
    """Some time with a steady rate, in bytes a second."""

    begin: float
    end: float
    rate: float


class Line:
    """Bytes over time, from phases: can be asked for any instant."""

    def __init__(self, phases: list[Phase]) -> None:
        self._phases = phases

    def __call__(self, time: float) -> float:
        return sum(phase.rate * max(0.0, min(time, phase.end) - phase.begin) for phase in self._phases)


def invented(seed: int, begin: float, end: float, users: int, nodes: int, jobs: int) -> list[Use]:
    """Some jobs on some nodes: steady ones, ones that write a checkpoint now and then, one that hammers names; people
    on login nodes; root everywhere.
    """
    chance = Random(f"{seed}/lustre/work")  # noqa: S311
    found: list[Use] = []
    for number in range(jobs):
        uid = 10_000 + number % users
        start = begin + chance.random() * max(0.0, (end - begin) * 0.8) - 1800.0
        stop = start + 600.0 + chance.random() * 4 * 3600.0
        stripes = 1 if number % 7 == 0 else chance.choice((1, 2, 4))
        for _ in range(chance.choice((1, 1, 2, 4))):
            host = f"c{1 + chance.randrange(nodes)}"
            client = Client(host, uid, str(41_000 + number), "solver")
            read, written = _lines(number, start, stop, chance)
            opens = 40.0 if number % 11 == 5 else 0.05 + chance.random()
            found.append(Use(client, start, stop, read, written, opens, stripes, LARGEST >> (number % 3)))
    for number in range(max(1, users // 4)):
        client = Client(f"login{1 + number % 2}", 10_000 + number, "", chance.choice(("rsync", "vim", "wget")))
        start = begin + chance.random() * (end - begin) / 2
        line = Line([Phase(start, end, 2e6 * chance.random())])
        found.append(Use(client, start, end, line, Line([]), 0.3, 1, MIB))
    return found + [
        Use(Client(f"c{1 + number}", 0, "", "kworker"), begin - 60.0, end, Line([]), Line([]), 0.0, 99)
        for number in range(nodes)
    ]


def _lines(number: int, start: float, stop: float, chance: Random) -> tuple[Line, Line]:
    rate = 10 ** (5.0 + 3.5 * chance.random())
    read = [Phase(start, min(stop, start + 900.0), rate)]
    if number % 3 == 0:
        # With pauses longer than an entry is kept.
        read += [Phase(at, at + 120.0, rate) for at in _steps(start + 1800.0, stop, 1800.0)]
    written = [Phase(at, at + 60.0, 3 * rate) for at in _steps(start + 600.0, stop, 900.0)]
    return Line(read), Line(written)


def _steps(begin: float, end: float, every: float) -> list[float]:
    made, at = [], begin
    while at < end:
        made.append(at)
        at += every
    return made


def of_jobs(truths: tuple[Truth, ...], seed: int = 1) -> list[Use]:
    """The jobs of a simulated cluster, with what they read and write there."""
    found = []
    for truth in truths:
        if not truth.started or truth.scheduler != "slurm":
            continue
        chance = Random(f"{seed}/lustre/{truth.number}")  # noqa: S311
        stripes = chance.choice((1, 1, 2, 4))
        for place in truth.places:
            curve = place.curve
            client = Client(place.node.name, truth.user.uid, truth.number, truth.draft.kind)
            found.append(
                Use(
                    client,
                    truth.start,
                    truth.end,
                    lambda time, curve=curve: curve.at(time).read,  # type: ignore[misc]
                    lambda time, curve=curve: curve.at(time).written,  # type: ignore[misc]
                    5.0 if truth.kind == "hammering" else 0.05,
                    stripes,
                )
            )
    return found
