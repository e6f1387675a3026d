"""Nodes of a Slurm cluster: in which partitions, in what state, with what, and how much of it is given away.

Source: `scontrol --details --oneliner show nodes`, see scontrol(1), run where `slurmjob` runs. Nodes that are alike
share a row: `nodes` names them as a list of ranges, exactly.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from jobsight.collector import ParseError, collector
from jobsight.host import Host
from jobsight.schema.record import gauge, label, record
from jobsight.schema.units import Bytes, Count, Seconds

MIB = 2**20
FACT = re.compile(r"(?:^| )([A-Za-z]+)=(\S*)")
# Who gave the reason, and when: `[root@1794725654]`.
GIVEN = re.compile(r"\s*\[([^@\]\s]*)@([0-9]{1,12})\]")
# What a state can end with, see sinfo(1) under NODE STATE CODES.
MARKS = {
    "*": "NOT_RESPONDING", "~": "POWERED_DOWN", "#": "POWERING_UP", "!": "POWERING_DOWN", "%": "POWERING_DOWN",
    "$": "MAINTENANCE", "@": "REBOOT_REQUESTED", "^": "REBOOT_ISSUED", "-": "PLANNED",
}  # fmt: skip


@record
class Slurmnode:
    """Nodes of a cluster that are alike."""

    nodes: str = label("Which: n[01-16,20].")
    partitions: str | None = label("The partitions they are in.", default=None)
    state: str = label("The state: IDLE, ALLOCATED, MIXED, DOWN …")
    flags: str | None = label("What else is said of the state: DRAIN, MAINTENANCE, NOT_RESPONDING …", default=None)
    reason: str | None = label("Why they are down or drained, as the administrator wrote it.", default=None)
    reason_by: str | None = label("Who wrote it.", default=None)
    gres: str | None = label("Generic resources of each: gpu:a100:4.", default=None)
    features: str | None = label("Features of each.", default=None)
    version: str | None = label("The version of slurmd.", default=None)
    reason_since: Seconds | None = gauge("When the reason was written, since 1970.", default=None)
    node_count: Count = gauge("How many they are.")
    cpus: Count | None = gauge("CPUs of each.", default=None)
    memory: Bytes | None = gauge("Memory of each, as configured.", default=None)
    gpus: Count | None = gauge("GPUs of each.", default=None)
    cpus_given: Count | None = gauge("CPUs given to jobs, of all together.", default=None)
    memory_given: Bytes | None = gauge("Memory given to jobs, of all together.", default=None)
    gpus_given: Count | None = gauge("GPUs given to jobs, of all together.", default=None)
    sockets: Count | None = gauge("Sockets of each.", default=None)
    cores: Count | None = gauge("Cores of a socket.", default=None)
    threads: Count | None = gauge("Threads of a core.", default=None)


class Options(NamedTuple):
    """Where and how it asks."""

    here: bool | None = None
    """Whether this machine asks; where not set, the one slurmctld runs on does."""
    user: str = "slurm"
    """Who may see everything."""
    limit: Seconds = Seconds(8.0)
    """How long the call may take."""


class Node(NamedTuple):
    """One node: what nodes can have in common, and what is added up."""

    name: str
    alike: tuple[Any, ...]
    given: tuple[int | None, ...]


@collector(every=60, runs=("scontrol",), through=("setpriv", "sudo"))
def slurmnode(host: Host, options: Options) -> Iterator[Slurmnode]:
    from jobsight.drivers.scheduler import Errand, check_here
    from jobsight.drivers.slurm import VARIABLES

    check_here(host, options.here, "slurmctld")
    errand = Errand(host, "slurmnode", options.limit, options.user)
    if errand.rests():
        host.miss("nodes", "late")
        return
    nodes, bad = parse(errand.ask(("scontrol", "--details", "--oneliner", "show", "nodes"), variables=VARIABLES))
    if bad:
        host.miss("nodes", "failed")
    yield from grouped(nodes)


def parse(text: str) -> tuple[list[Node], int]:
    """The nodes, and how many could not be understood. A reason may hold line breaks."""
    nodes, bad = [], 0
    for line in re.split(r"\n(?=NodeName=)", text.strip()):
        try:
            nodes.append(node(line))
        except ParseError:
            bad += bool(line)
    if bad and not nodes:
        raise ParseError(f"expected lines that begin NodeName=, got {text[:80]!r}")
    return nodes, bad


def node(line: str) -> Node:
    """One node, from `NodeName=n1 Arch=x86_64 … State=IDLE+DRAIN … Reason=bad dimm [root@1794725654]`."""
    from jobsight.formats import slurmtext

    # Words an administrator wrote come last and may look like anything.
    line, reasoned, words = line.partition(" Reason=")
    facts: dict[str, str] = {}
    for name, value in FACT.findall(line):
        facts.setdefault(name, "" if value in slurmtext.NOTHING else value)
    if not facts.get("NodeName") or not facts.get("State"):
        raise ParseError(f"expected NodeName= and State=, got {line[:80]!r}")
    whole, given = slurmtext.tres(facts.get("CfgTRES", "")), slurmtext.tres(facts.get("AllocTRES", ""))
    reason, by, since = _reason(words) if reasoned else (None, None, None)
    memory = slurmtext.number(facts.get("RealMemory", ""))
    taken = slurmtext.number(facts.get("AllocMem", ""))
    counts = [slurmtext.number(facts.get(name, "")) for name in ("Sockets", "CoresPerSocket", "ThreadsPerCore")]
    cpus = slurmtext.number(facts.get("CPUTot", ""))
    alike = (
        facts.get("Partitions") or None,
        *states(facts["State"]),
        reason,
        by,
        facts.get("Gres") or None,
        facts.get("ActiveFeatures") or None,
        facts.get("Version") or None,
        since,
        cpus,
        None if memory is None else memory * MIB,
        whole.gpus,
        *counts,
    )
    # A node whose GPUs are known and of which none is named as given has given none.
    gpus = given.gpus if given.gpus is not None or whole.gpus is None else 0
    used = (slurmtext.number(facts.get("CPUAlloc", "")), None if taken is None else taken * MIB, gpus)
    return Node(facts["NodeName"], alike, used)


def states(text: str) -> tuple[str, str | None]:
    """`IDLE+DRAIN*` → IDLE and DRAIN,NOT_RESPONDING."""
    bare = text.rstrip("".join(MARKS))
    word, *flags = bare.upper().split("+")
    if not word.replace("_", "").isalpha():
        raise ParseError(f"state: expected a word, got {text[:40]!r}")
    flags += [MARKS[mark] for mark in text[len(bare) :]]
    return word, ",".join(sorted(set(flags))) or None


def grouped(nodes: list[Node]) -> Iterator[Slurmnode]:
    """One row for all that are alike."""
    from jobsight.formats import nodelist

    groups: dict[tuple[Any, ...], list[Node]] = {}
    for one in nodes:
        groups.setdefault(one.alike, []).append(one)
    for alike, members in groups.items():
        partitions, state, flags, reason, by, gres, features, version, since, cpus, memory, gpus, *counts = alike
        given = [
            None if None in column else sum(column) for column in zip(*(one.given for one in members), strict=True)
        ]
        yield Slurmnode(
            nodes=nodelist.compress(one.name for one in members),
            partitions=partitions,
            state=state,
            flags=flags,
            reason=reason,
            reason_by=by,
            gres=gres,
            features=features,
            version=version,
            reason_since=since,
            node_count=Count(len(members)),
            cpus=cpus,
            memory=memory,
            gpus=gpus,
            cpus_given=given[0],
            memory_given=given[1],
            gpus_given=given[2],
            sockets=counts[0],
            cores=counts[1],
            threads=counts[2],
        )


def _reason(words: str) -> tuple[str | None, str | None, float | None]:
    """`bad dimm [root@1794725654]`: Slurm's mark stands behind the first line, further lines and fields follow it."""
    from jobsight.formats import slurmtext

    words = re.split(r" (?:Comment|Extra)=", words)[0]
    marks = list(GIVEN.finditer(words))
    if not marks:
        return words.strip() or None, None, None
    by, since = marks[-1].groups()
    lines = [words[: marks[-1].start()].strip(), words[marks[-1].end() :].strip()]
    return "\n".join(filter(None, lines)) or None, by or None, slurmtext.instant(since)
