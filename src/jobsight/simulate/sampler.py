"""One node's agent: walks through the plan and gives the messages that node would send."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from jobsight.schema.message import Message, Origin, Status
from jobsight.schema.record import columns
from jobsight.simulate import accounting, card, machine, meter, tenant
from jobsight.simulate.accounting import Accounting
from jobsight.simulate.machine import Levels, Past, Seen
from jobsight.simulate.outage import Boot
from jobsight.simulate.plan import Plan, Tenant
from jobsight.simulate.site import Node
from jobsight.simulate.work import Level

HOUR = 3600.0
# What a node tells about itself, by collector; what it tells of its jobs is below.
ABOUT: dict[str, Callable[[Seen], list[Any]]] = {
    "hardware": machine.hardware,
    "memory": machine.memory,
    "load": machine.load,
    "pressure": machine.pressure,
    "cpu": machine.cpu,
    "disk": machine.disk,
    "network": machine.network,
    "agent": machine.agent,
    "gpu": card.gpu,
    "gpucard": card.gpucard,
    "gpuprocess": card.gpuprocess,
    "power": meter.power,
    "ipmi": meter.ipmi,
}
METERS = ("power", "ipmi")
CARDS = ("gpu", "gpucard", "gpuprocess")
OF_JOBS = ("allocation", "process", "cgroup")
# Told once an hour and after a boot.
SELDOM = ("hardware", "gpucard")
ALL = (*ABOUT, *OF_JOBS, *accounting.COLLECTORS)
# Without that of each CPU: sixty-four rows a sample, which few questions need.
USUAL = tuple(name for name in ALL if name != "cpu")


class Sampling(NamedTuple):
    """How nodes are sampled."""

    every: float = 60.0
    collectors: tuple[str, ...] = USUAL
    rollup: bool = True
    """Whether a job's processes that are alike share a row."""


class Sampler:
    """Walks forward only: what is asked for lies after what was asked for before."""

    def __init__(self, plan: Plan, node: Node, sampling: Sampling) -> None:
        self._plan = plan
        self._node = node
        self.sampling = sampling
        chance = Random(f"{plan.wish.seed}/sampler/{node.name}")  # noqa: S311
        # Each node samples at a second of its own.
        self._offset = round(chance.random() * sampling.every, 3)
        self._lost = chance
        self._coming = list(reversed(plan.tenants[node.name]))
        self._active: list[Tenant] = []
        self._past = Past()
        self._accounting = Accounting(plan) if node is plan.site.controller else None
        self._boot: Boot | None = None
        self._described = 0.0

    def times(self, since: float, until: float) -> Iterator[float]:
        """When this node samples, from `since` to before `until`."""
        every = self.sampling.every
        turn = -((self._offset - since) // every)
        while (time := turn * every + self._offset) < until:
            if time >= since:
                yield time
            turn += 1

    def messages(self, since: float, until: float) -> Iterator[Message]:
        """What it sends in that time; nothing while it is down."""
        for time in self.times(since, until):
            boot = self._boot_at(time)
            if boot is not None:
                yield from self._sample(time, boot)

    def _boot_at(self, time: float) -> Boot | None:
        boots = self._plan.boots[self._node.name]
        found = next((boot for boot in boots if boot.begin <= time < boot.end), None)
        if found is not None and found is not self._boot:
            self._boot, self._past, self._described = found, Past(), 0.0
        return found

    def _sample(self, time: float, boot: Boot) -> Iterator[Message]:
        levels = self._levels(time, boot)
        seen = Seen(self._node, time, time - boot.begin, levels, self._past)
        origin = Origin(self._plan.wish.cluster, self._node.name, boot.name)
        for collector in self.sampling.collectors:
            if collector in SELDOM and time < self._described + HOUR:
                continue
            rows = self._rows(collector, seen, boot)
            if rows is not None and self._arrives():
                yield self._message(origin, collector, seen, rows)
        for collector, rows in self._told(time).items():
            if self._arrives():
                yield self._message(origin, collector, seen, rows)
        if time >= self._described + HOUR:
            self._described = time

    def _rows(self, collector: str, seen: Seen, boot: Boot) -> list[Any] | None:
        """None where a node has nothing of the kind."""
        if collector in CARDS and not self._node.make.gpus:
            return None
        if collector in METERS and not meter.has(collector, self._node.make.kind):
            return None
        if collector in ABOUT:
            return ABOUT[collector](seen)
        return self._of_jobs(collector, seen, boot) if collector in OF_JOBS else None

    def _told(self, time: float) -> dict[str, list[Any]]:
        """What the batch system tells where it runs."""
        told = self._accounting.rows(time) if self._accounting else {}
        return {name: rows for name, rows in told.items() if name in self.sampling.collectors}

    def _levels(self, time: float, boot: Boot) -> Levels:
        """The jobs there are, and how far they have come."""
        while self._coming and self._coming[-1].truth.start < time:
            self._active.append(self._coming.pop())
        levels: list[tuple[Tenant, Level]] = []
        stay = []
        for one in self._active:
            if one.truth.end > time:
                stay.append(one)
                levels.append((one, one.place.curve.at(time)))
            elif one.truth.end > boot.begin:
                self._past.end(one, one.place.curve.at(one.truth.end))
        self._active = stay
        return levels

    def _of_jobs(self, collector: str, seen: Seen, boot: Boot) -> list[Any] | None:
        if not self._node.make.partition and collector != "process":
            return None
        batch = [(one, level) for one, level in seen.levels if one.truth.scheduler == "slurm"]
        if collector == "allocation":
            return [tenant.allocation(one) for one, _ in batch]
        if collector == "cgroup":
            return [tenant.cgroup(one, seen.time, level) for one, level in batch]
        rollup = self.sampling.rollup
        return [
            row
            for one, level in seen.levels
            if seen.time - one.truth.start > tenant.PROGRAM_DELAY
            for row in tenant.processes(one, boot.begin, level, rollup=rollup)
        ]

    def _arrives(self) -> bool:
        lost = self._plan.faults.lost
        return not lost or self._lost.random() >= lost

    def _message(self, origin: Origin, collector: str, seen: Seen, rows: list[Any]) -> Message:
        every = HOUR if collector in SELDOM else self.sampling.every
        return Message(
            origin=origin,
            collector=collector,
            time=seen.time,
            uptime=seen.uptime,
            every=every,
            status=Status.OK,
            seconds=0.002,
            error=None,
            missing={},
            rows=columns(type(rows[0]), rows) if rows else {},
        )
