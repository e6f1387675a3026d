"""The rows that a node gives about itself, from what its jobs do.

What the system itself does is small and even, so that the node's counters are its jobs' and a little more.
"""

from collections.abc import Iterable
from math import exp
from typing import NamedTuple

from jobsight.collect.agent import Agent
from jobsight.collect.cpu import Cpu
from jobsight.collect.disk import Disk
from jobsight.collect.hardware import Hardware
from jobsight.collect.load import Load
from jobsight.collect.memory import Memory
from jobsight.collect.network import Network
from jobsight.collect.pressure import Pressure
from jobsight.schema.units import Bytes, Count, Ratio, Seconds
from jobsight.simulate.plan import Tenant
from jobsight.simulate.site import GIB, Node
from jobsight.simulate.work import Level

# What the system uses of each core, and of memory; its cache.
SYSTEM_CPU = 0.002
SYSTEM_MEMORY, SYSTEM_CACHE = 3 * GIB, 2 * GIB
SYSTEM_WRITES = 20_000
# Bytes that each second of CPU time of a job on several nodes sends.
TALK = 2_000_000
PACKET = 4096
# Threads for each CPU below which none waits, and from which on some always do.
EASY, CROWDED = 0.9, 1.3

Levels = list[tuple[Tenant, Level]]


class Past:
    """What jobs that have ended since the node booted had used, and its load averages."""

    def __init__(self) -> None:
        self.cores: dict[int, float] = {}
        self.cards: dict[int, float] = {}
        self.read = 0.0
        self.written = 0.0
        self.sent = 0.0
        self.time: float | None = None
        self.loads = (0.0, 0.0)
        # When the controller was last asked, and what the node had taken by then.
        self.metered: tuple[float, float] | None = None
        self.waited = 0.0
        self.waited_until: float | None = None

    def end(self, tenant: Tenant, level: Level) -> None:
        """Take what a job had used when it ended."""
        for core, used in spread(tenant, level).items():
            self.cores[core] = self.cores.get(core, 0.0) + used
        for card in tenant.place.gpus:
            self.cards[card] = self.cards.get(card, 0.0) + level.gpu
        self.read += level.read
        self.written += level.written
        self.sent += talk(tenant, level)

    def smooth(self, time: float, now: float) -> tuple[float, float]:
        """Load over five and fifteen minutes."""
        if self.time is None:
            self.loads = now, now
        else:
            five, fifteen = (exp(-(time - self.time) / span) for span in (300.0, 900.0))
            self.loads = now + (self.loads[0] - now) * five, now + (self.loads[1] - now) * fifteen
        self.time = time
        return self.loads

    def wait(self, time: float, part: float) -> float:
        """Seconds in which a task waited for a CPU, if that part of the time since the last look is added."""
        self.waited += part * (0.0 if self.waited_until is None else time - self.waited_until)
        self.waited_until = time
        return self.waited


def spread(tenant: Tenant, level: Level) -> dict[int, float]:
    """CPU time by core: a job with fewer threads than cores leaves the last of them idle. Who was given none goes
    around on all.
    """
    draft, cores = tenant.truth.draft, tenant.place.cores
    many, make = draft.ranks * draft.threads, tenant.place.node.make
    used: Iterable[int] = cores[:many] or range(make.cores)
    if draft.doubled:
        # First all first threads of cores, then all second ones, as kernels count.
        each = make.cores // make.threads
        used = [core + each * turn for core in cores[: many // make.threads] for turn in range(make.threads)]
    found = tuple(used)
    return dict.fromkeys(found, level.cpu / len(found))


def talk(tenant: Tenant, level: Level) -> float:
    return level.cpu * TALK if len(tenant.truth.places) > 1 else 0.0


class Seen(NamedTuple):
    """A node at one instant."""

    node: Node
    time: float
    uptime: float
    levels: Levels
    past: Past


def hardware(seen: Seen) -> list[Hardware]:
    make = seen.node.make
    return [
        Hardware(
            model=make.model,
            cpus=Count(make.cores),
            cores=Count(make.cores // make.threads),
            sockets=Count(make.sockets),
            threads=Count(make.threads),
            memory=Bytes(make.memory),
            system="Rocky Linux 9.6 (Blue Onyx)",
            kernel="5.14.0-570.12.1.el9_6.x86_64",
            architecture="x86_64",
        )
    ]


def memory(seen: Seen) -> list[Memory]:
    own = sum(level.memory for _, level in seen.levels)
    cache = SYSTEM_CACHE + sum(level.cache for _, level in seen.levels)
    total = seen.node.make.memory
    available = max(0, int(total - SYSTEM_MEMORY - own))
    return [
        Memory(
            total=Bytes(total),
            available=Bytes(available),
            free=Bytes(max(0, int(available - cache))),
            cached=Bytes(int(min(cache, available))),
            shared=Bytes(GIB // 8),
            dirty=Bytes(2**20),
            swap_total=Bytes(0),
            swap_free=Bytes(0),
        )
    ]


def pressure(seen: Seen) -> list[Pressure]:
    """Of tasks that wait for a CPU: all the time where more want to run than can, hardly ever where there is room."""
    full = _threads(seen) / seen.node.make.cores
    waited = seen.past.wait(seen.time, min(1.0, max(0.0, (full - EASY) / (CROWDED - EASY))))
    return [Pressure(resource="cpu", some_time=Seconds(round(waited, 6)))]


def _threads(seen: Seen) -> float:
    """That run or want to."""
    return sum(_wanted(tenant, level) for tenant, level in seen.levels) + SYSTEM_CPU * seen.node.make.cores


def load(seen: Seen) -> list[Load]:
    wanted = _threads(seen)
    five, fifteen = seen.past.smooth(seen.time, wanted)
    threads = sum(t.truth.draft.ranks * t.truth.draft.threads for t, _ in seen.levels)
    return [
        Load(
            load1=Ratio(round(wanted, 2)),
            load5=Ratio(round(five, 2)),
            load15=Ratio(round(fifteen, 2)),
            runnable=Count(1 + int(wanted)),
            existing=Count(420 + 6 * seen.node.make.cores + threads),
        )
    ]


def _wanted(tenant: Tenant, level: Level) -> float:
    """Threads that run or wait for a core; who writes waits for a disk and counts, too."""
    draft = tenant.truth.draft
    if level.kind == "checkpoint":
        return float(draft.ranks)
    busy = level.rate > 0.05
    return max(level.rate, draft.ranks * draft.threads * draft.waits) if busy else level.rate


def cpu(seen: Seen) -> list[Cpu]:
    used = dict(seen.past.cores)
    for tenant, level in seen.levels:
        for core, seconds in spread(tenant, level).items():
            used[core] = used.get(core, 0.0) + seconds
    rows = []
    for core in range(seen.node.make.cores):
        jobs = used.get(core, 0.0)
        kernel = 0.03 * jobs + SYSTEM_CPU * seen.uptime
        rows.append(
            Cpu(
                cpu=core,
                user_time=Seconds(round(0.97 * jobs, 2)),
                nice_time=Seconds(0.0),
                system_time=Seconds(round(kernel, 2)),
                idle_time=Seconds(round(max(0.0, seen.uptime - 0.97 * jobs - kernel), 2)),
                iowait_time=Seconds(0.0),
                interrupt_time=Seconds(0.0),
                stolen_time=Seconds(0.0),
            )
        )
    return rows


def disk(seen: Seen) -> list[Disk]:
    read = int(seen.past.read + sum(level.read for _, level in seen.levels))
    written = int(seen.past.written + sum(level.written for _, level in seen.levels) + SYSTEM_WRITES * seen.uptime)
    return [
        Disk(
            device="nvme0n1",
            reads=Count(read // 2**20),
            read=Bytes(read // 512 * 512),
            read_time=Seconds(round(read / 3e9, 3)),
            writes=Count(written // 2**20),
            written=Bytes(written // 512 * 512),
            write_time=Seconds(round(written / 1.5e9, 3)),
            queue=Count(0),
            busy_time=Seconds(round(read / 3e9 + written / 1.5e9, 3)),
            major=259,
            minor=0,
        )
    ]


def network(seen: Seen) -> list[Network]:
    sent = int(seen.past.sent + sum(talk(tenant, level) for tenant, level in seen.levels) + 2000 * seen.uptime)
    return [
        Network(
            interface="ib0",
            received=Bytes(sent),
            received_packets=Count(sent // PACKET),
            received_errors=Count(0),
            received_drops=Count(0),
            sent=Bytes(sent),
            sent_packets=Count(sent // PACKET),
            sent_errors=Count(0),
            sent_drops=Count(0),
        )
    ]


def agent(seen: Seen) -> list[Agent]:
    messages = int(seen.uptime / 10)
    return [
        Agent(
            cpu_time=Seconds(round(0.0006 * seen.uptime, 2)),
            memory=Bytes(21 * 2**20),
            threads=Count(4),
            messages=Count(messages),
            failed=Count(0),
            sent=Count(messages),
            dropped=Count(0),
            waiting=Bytes(0),
            waiting_messages=Count(0),
        )
    ]
