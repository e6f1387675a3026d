"""A job and its running totals: what is left when the rows are gone."""

from collections.abc import Iterable
from functools import cached_property
from math import fsum
from typing import Any

from msgspec import Struct, field

from jobsight.analyse.batch import Batch, joined
from jobsight.analyse.growth import Gain, growth
from jobsight.analyse.usage import Usage
from jobsight.collector import ParseError
from jobsight.formats import nodelist
from jobsight.store.counter import HOURLY

# Schedulers whose ids count on one node only; others name a job for the whole cluster.
LOCAL = frozenset({"session", "systemd", "docker", "podman", "containerd", "htcondor"})
COMMANDS = 20
# Parts that are quicker looked through than looked up.
FEW = 8
# What a job is told by an allocation, and the columns that tell it.
LABELS = {"number": "number", "name": "name", "account": "account", "partition": "partition", "allocated": "nodes"}


class Part(Struct):
    """Running totals of one job on one node by one source."""

    node: str
    source: str
    time: float = 0.0
    alive: bool = True
    seconds: float = 0.0
    covered: float = 0.0
    cpu_time: float | None = None
    cpus: int | None = None
    memory: int | None = None
    memory_seconds: float = 0.0
    memory_covered: float = 0.0
    memory_peak: int | None = None
    memory_limit: int | None = None
    threads_peak: int | None = None
    processes_peak: int | None = None
    read: int | None = None
    written: int | None = None
    oom_kills: int | None = None
    group_peak: int | None = None
    """The kernel's own high-water mark of the control group, page cache included."""
    cpu_waited: float | None = None
    """Time in which a task of the control group waited for a CPU."""
    operations: int | None = None
    """Reads and writes of storage by the control group."""
    zombies_peak: int | None = None
    began: float | None = None
    """When it began here: its first process, or the first sight of its control group."""
    every: float = 0.0
    """Seconds between samples when it was last seen here."""
    commands: dict[str, float] = field(default_factory=dict)
    gpus: int | None = None
    """Cards it held at the most."""
    gpu_time: float | None = None
    """Time in which they computed, added up."""
    gpu_held: float | None = None
    """Time in which they were held, added up."""
    gpu_observed: float | None = None
    """Of that, the time of which it is known whether they computed."""
    gpu_memory_peak: int | None = None

    def add(self, time: float, usage: Usage) -> None:
        """Take one more interval."""
        self.time, self.alive = time, True
        self.seconds += usage.seconds
        self.covered += usage.covered
        self.cpu_time = _plus(self.cpu_time, usage.cpu_time)
        self.read = _plus(self.read, usage.read)
        self.written = _plus(self.written, usage.written)
        self.oom_kills = _plus(self.oom_kills, usage.oom_kills)
        self.threads_peak = _most(self.threads_peak, usage.threads)
        self.processes_peak = _most(self.processes_peak, usage.processes)
        self.memory_peak = _most(self.memory_peak, usage.memory)
        self.memory = usage.memory
        self.cpus = usage.cpus if usage.cpus is not None else self.cpus
        self.memory_limit = usage.memory_limit
        if usage.gpus is not None:
            self.gpus = _most(self.gpus, usage.gpus)
            self.gpu_time = _plus(self.gpu_time, usage.gpu_time)
            self.gpu_held = _plus(self.gpu_held, usage.gpus * usage.seconds)
            if usage.gpu_time is not None:
                # Over a gap a card's own count may have gone on, or not.
                whole = usage.gpu_time > usage.gpus * usage.covered
                known = usage.gpus * (usage.seconds if whole else usage.covered)
                self.gpu_observed = _plus(self.gpu_observed, known)
            self.gpu_memory_peak = _most(self.gpu_memory_peak, usage.gpu_memory)
        if usage.memory is not None:
            self.memory_seconds += usage.memory * usage.covered
            self.memory_covered += usage.covered

    def add_group(self, before: dict[str, Any], now: dict[str, Any]) -> None:
        """Take what a control group counts that no interval of usage has."""
        self.group_peak = now["memory_peak"]
        for mine, theirs in (("cpu_waited", "pressure_cpu"), ("operations", "reads"), ("operations", "writes")):
            if now[theirs] is not None:
                setattr(self, mine, _plus(getattr(self, mine), growth([before.get(theirs) or 0, now[theirs]])))

    def begin(self, time: float) -> None:
        self.began = time if self.began is None else min(self.began, time)

    def add_commands(self, commands: Iterable[str], used: Iterable[Gain]) -> None:
        """What each of its processes used; the smallest are forgotten when there are too many."""
        found: dict[str, list[float]] = {}
        for command, gain in zip(commands, used, strict=True):
            if gain.cpu or command not in self.commands:
                found.setdefault(command, []).append(gain.cpu)
        for command in sorted(found):
            self.commands[command] = self.commands.get(command, 0.0) + fsum(found[command])
        self.commands = _largest(self.commands)


class Job(Struct, dict=True):
    """One job: who, what, where, when, and its totals."""

    key: str
    cluster: str
    scheduler: str
    id: str
    scope: str
    """`node/boot` where the id counts on one node only, else empty."""
    owner: str
    started: float
    seen: float
    every: float
    guessed: bool = False
    """Whether `started` is a guess: a control group does not tell its age, processes do."""
    number: str = ""
    """What people know it by, where the node names it otherwise: Slurm's SLUIDs stand for numbers."""
    name: str = ""
    account: str = ""
    partition: str = ""
    allocated: str = ""
    """Its nodes as the scheduler writes them, those not heard of included."""
    commands: dict[str, float] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    batch: Batch | None = None
    """What its scheduler says of it: the first word on state, times and what it was given."""

    def tell(self, batch: Batch) -> bool:
        """Take what the scheduler says, and whether that is new."""
        found = batch if self.batch is None else joined(self.batch, batch)
        if found == self.batch:
            return False
        self.batch = found
        self.owner = found.owner or self.owner
        for mine, value in self._told().items():
            setattr(self, mine, value)
        return True

    def _told(self) -> dict[str, str]:
        """The labels that are the scheduler's word."""
        if self.batch is None:
            return {}
        found = {mine: getattr(self.batch, theirs) for mine, theirs in LABELS.items()}
        return {mine: value for mine, value in found.items() if value}

    def part(self, node: str, source: str) -> Part:
        """The totals of one node and source, made at first use."""
        if len(self.parts) > FEW:
            found = self._places.get((node, source))
        else:
            found = next((part for part in self.parts if part.node == node and part.source == source), None)
        if found is None:
            found = Part(node, source)
            self.parts.append(found)
            if len(self.parts) > FEW:
                self._places[node, source] = found
        return found

    @cached_property
    def _places(self) -> dict[tuple[str, str], Part]:
        """Of a job on many nodes: it is asked for one of them thousands of times a minute."""
        return {(part.node, part.source): part for part in self.parts}

    def add_owners(self, owners: Iterable[str]) -> None:
        """Whose job it is: root's helpers run in everybody's, so anybody else comes before root."""
        if self.owner in ("", "root") and not (self.batch and self.batch.owner):
            self.owner = min((owner for owner in owners if owner != "root"), default=self.owner or "root")

    def describe(self, labels: dict[str, Any]) -> bool:
        """Take what an allocation says of it, and whether that is new. What it does not say stays as it was."""
        told = {mine: value for mine, theirs in LABELS.items() if (value := labels.get(theirs))} | self._told()
        new = {mine: value for mine, value in told.items() if value != getattr(self, mine)}
        for mine, value in new.items():
            setattr(self, mine, value)
        owner = self.owner
        if labels.get("owner"):
            self.add_owners([labels["owner"]])
        return bool(new) or owner != self.owner

    def __post_init__(self) -> None:
        # Documents from before each part had its own.
        if self.commands and self.parts and not any(part.commands for part in self.parts):
            next((part for part in self.parts if part.source == "process"), self.parts[0]).commands = self.commands

    def settle(self) -> None:
        """Make the whole of its parts: the same whichever node was heard first."""
        self.parts.sort(key=lambda part: (part.node, part.source))
        if self.parts:
            self.seen, every = max((part.time, part.every) for part in self.parts)
            self.every = every or self.every
        self._settle_start()
        if self.batch is not None:
            self.seen = max([self.batch.seen, *(part.time for part in self.parts)])
        commands: dict[str, float] = {}
        for part in self.parts:
            for command, cpu in part.commands.items():
                commands[command] = commands.get(command, 0.0) + cpu
        self.commands = _largest(commands)

    def _settle_start(self) -> None:
        """Processes know when they began; where there are none, the first sight of a group is the best guess."""
        processes = [part.began for part in self.parts if part.source == "process"]
        told = processes or [part.began for part in self._sampled]
        known = [began for began in told if began is not None]
        if known and len(known) == len(told):
            self.started, self.guessed = min(known), not processes
        if self.batch is not None and self.batch.start is not None:
            self.started, self.guessed = self.batch.start, False
        elif self.batch is not None and not self.parts:
            self.started, self.guessed = self.batch.submit or self.batch.told, True

    @property
    def alive(self) -> bool:
        """Whether it runs, as far as is known. Its scheduler's word counts unless it was sampled later."""
        sampled = any(part.alive for part in self._sampled)
        if self.batch is None:
            return sampled
        if self.batch.over or self.waits:
            return False
        return sampled or self.batch.told > max((part.time for part in self.parts), default=0.0)

    @property
    def waits(self) -> bool:
        """Whether it is queued. One that is seen to run has begun, whatever was heard last of the queue."""
        return self.batch is not None and self.batch.waits and not any(part.alive for part in self._sampled)

    @property
    def _sampled(self) -> list[Part]:
        """What tells that it is there. A card may be somebody's who has gone, where nobody took it back."""
        return [part for part in self.parts if part.source != "gpu"] or self.parts

    @property
    def pace(self) -> float:
        """Seconds after which it should be heard of again."""
        return HOURLY if self.batch is not None and not self.batch.over else self.every

    @property
    def command(self) -> str:
        """What the job is, in a word: the command that used the most."""
        return max(self.commands, key=lambda name: self.commands[name], default="")

    @property
    def nodes(self) -> list[str]:
        return sorted({part.node for part in self.parts})

    @property
    def places(self) -> list[str]:
        """The nodes it was seen on, and those its scheduler names, which may leave out a domain."""
        seen = self.nodes
        short = {name.partition(".")[0] for name in seen} | set(seen)
        return seen + [name for name in given_nodes(self.batch) if name not in short]


def given_nodes(batch: Batch | None) -> list[str]:
    """The nodes a scheduler names; none where its list is not one we can read."""
    try:
        if batch is None or not batch.nodes:
            return []
        # Most jobs have one, and there are many jobs.
        return nodelist.expand(batch.nodes) if "[" in batch.nodes or "," in batch.nodes else [batch.nodes]
    except ParseError:
        return []


def _largest(commands: dict[str, float]) -> dict[str, float]:
    if len(commands) <= 2 * COMMANDS:
        return commands
    return dict(sorted(commands.items(), key=lambda item: -item[1])[:COMMANDS])


def _plus(total: Any, more: Any) -> Any:
    """A sum in which missing is not zero."""
    if more is None:
        return total
    return more if total is None else total + more


def _most(peak: Any, value: Any) -> Any:
    if value is None:
        return peak
    return value if peak is None else max(peak, value)
