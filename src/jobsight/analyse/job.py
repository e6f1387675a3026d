"""A job and its running totals: what is left when the rows are gone."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct, field

from jobsight.analyse.usage import Usage

# Schedulers whose ids count on one node only; others name a job for the whole cluster.
LOCAL = frozenset({"session", "systemd", "docker", "podman", "containerd", "htcondor"})
COMMANDS = 20
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
        if usage.memory is not None:
            self.memory_seconds += usage.memory * usage.covered
            self.memory_covered += usage.covered


class Job(Struct):
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

    def part(self, node: str, source: str) -> Part:
        """The totals of one node and source, made at first use."""
        for part in self.parts:
            if part.node == node and part.source == source:
                return part
        self.parts.append(Part(node, source))
        return self.parts[-1]

    def add_owners(self, owners: Iterable[str]) -> None:
        """Whose job it is: root's helpers run in everybody's, so anybody else comes before root."""
        if self.owner in ("", "root"):
            self.owner = next((owner for owner in owners if owner != "root"), self.owner or "root")

    def describe(self, labels: dict[str, Any]) -> None:
        """Take what an allocation says of it. What it does not say stays as it was."""
        for mine, theirs in LABELS.items():
            if value := labels.get(theirs):
                setattr(self, mine, value)
        if labels.get("owner"):
            self.add_owners([labels["owner"]])

    def add_command(self, command: str, cpu: float) -> None:
        """Which commands used how much; the smallest are forgotten when there are too many."""
        self.commands[command] = self.commands.get(command, 0.0) + cpu
        if len(self.commands) > 2 * COMMANDS:
            largest = sorted(self.commands.items(), key=lambda item: -item[1])[:COMMANDS]
            self.commands = dict(largest)

    @property
    def alive(self) -> bool:
        return any(part.alive for part in self.parts)

    @property
    def command(self) -> str:
        """What the job is, in a word: the command that used the most."""
        return max(self.commands, key=lambda name: self.commands[name], default="")

    @property
    def nodes(self) -> list[str]:
        return sorted({part.node for part in self.parts})


def _plus(total: Any, more: Any) -> Any:
    """A sum in which missing is not zero."""
    if more is None:
        return total
    return more if total is None else total + more


def _most(peak: Any, value: Any) -> Any:
    if value is None:
        return peak
    return value if peak is None else max(peak, value)
