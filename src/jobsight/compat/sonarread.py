"""Sonar's documents as our messages: `sample` becomes `process`, `load`, `disk` and `memory`; `sysinfo` `hardware`.

A message is made if its record can be filled: what a record needs and the format does not tell is not invented. So
there is no `cpu` (busy time alone, where ours has it by kind), and `memory` only where `free` may be missing.

Which boot a sample belongs to is told since Sonar 0.17, and before it by the epoch of jobs that are not Slurm's.
A node has booted anew if it did so after its last sample; otherwise its clock was set.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from jobsight import catalogue
from jobsight.compat import sonarreadprocess, sonarreadsystem
from jobsight.compat.sonarreadfields import Fields, UnreadableError
from jobsight.compat.sonarreadprocess import Past, Seen
from jobsight.schema.message import Message, Origin, Status
from jobsight.schema.record import fields_of

# 2020-01-01: where epochs begin. Producers write 1 where the clock was never set.
FIRST_EPOCH = 1_577_836_800
UNKNOWN_BOOT = "sonar"
# Uptime of a node that is met so soon after its boot that all it did can be dated.
YOUNG = 3600.0
# Boots nearer than this are one: the kernel's idea of it moves when the clock is set.
STEP = 2.0
# Boots of a node whose processes are remembered.
REMEMBERED = 3
LEAST = 0.001
NOBODY = Past(None, {}, frozenset())
# Values that stand in a row because its record needs them, and say nothing.
MISSING = {"memory_virtual": "absent", "cpu_user": "absent", "cpu_system": "absent", "session": "absent"}


class Reading(NamedTuple):
    """What a document was, and what became of it."""

    kind: str
    """`sample`, `sysinfo`, `job`, `cluster` or `errors`."""
    messages: list[Message]


class Boot:
    """One boot of a node, from its first sample to its last."""

    def __init__(self, name: str, base: float | None, first: float) -> None:
        self.name = name
        self.base = base
        self.first = self.last = first
        self.past = Past(0.0 if base is not None and first - base <= YOUNG else None, {}, frozenset())
        self.clock = 0.0

    def uptime(self, time: float, boot: float | None) -> float:
        """Where nobody knows when the node booted, seconds are counted from 1970: differences and dates are right."""
        if self.base is None:
            return time
        return max(LEAST, time - (self.base if boot is None else boot))


class Node:
    """What is remembered of one node."""

    def __init__(self) -> None:
        self.boots: list[Boot] = []
        self.memory: int | None = None

    def boot_of(self, time: float, boot: float | None) -> Boot:
        """The boot a sample belongs to; a new one if it is none of those known."""
        for known in self.boots:
            if known.first <= time <= known.last:
                return known
        before = [known for known in self.boots if known.last < time]
        if before and (boot is None or boot <= before[-1].last):
            return before[-1]
        for known in self.boots:
            if boot is None or known.base is None:
                if boot == known.base:
                    return known
            elif abs(boot - known.base) <= STEP:
                return known
        made = Boot(UNKNOWN_BOOT if boot is None else f"{UNKNOWN_BOOT}-{int(boot)}", boot, time)
        self.boots = sorted([*self.boots, made], key=lambda known: known.first)
        for forgotten in self.boots[:-REMEMBERED]:
            forgotten.past = NOBODY
        return made

    def dump(self) -> str:
        boots = [[b.name, b.base, b.first, b.last, b.clock, b.past.since, sorted(b.past.blurred),
                  list(b.past.seen.items())] for b in self.boots]  # fmt: skip
        return json.dumps([self.memory, boots], separators=(",", ":"))

    @classmethod
    def load(cls, text: str) -> "Node":
        node = cls()
        node.memory, boots = json.loads(text)
        for name, base, first, last, clock, since, blurred, seen in boots:
            boot = Boot(name, base, first)
            boot.last, boot.clock = last, clock
            boot.past = Past(since, {pid: Seen._make(traits) for pid, traits in seen}, frozenset(blurred))
            node.boots.append(boot)
        return node


class Reader:
    """Takes documents, each node's in the order of their times, and gives messages."""

    def __init__(self, recall: Callable[[str, str], str | None], cluster: str | None = None) -> None:
        """`cluster`: of documents that name none. `recall`: what `changed` gave when this node was last read."""
        self._cluster = cluster
        self._recall = recall
        self._nodes: dict[tuple[str, str], Node] = {}

    def changed(self) -> dict[tuple[str, str], str]:
        """What to remember of the nodes read since the last call, so that another reader can go on."""
        made = {place: node.dump() for place, node in self._nodes.items()}
        self._nodes.clear()
        return made

    def read(self, document: Any) -> Reading:
        """UnreadableError if it is not what the format says."""
        top = Fields(document, "$")
        if top.has("topic") and top.has("value"):
            # As Sonar prints what it would send to Kafka.
            top = top.within("value")
        if top.has("errors") and top.has("data"):
            raise UnreadableError(top.path, "both data and errors")
        if top.has("errors"):
            return Reading("errors", [made for error in top.objects("errors") if (made := self._error(error))])
        body = top.within("data")
        kind, about = body.needed("type"), body.within("attributes")
        match kind:
            case "sample":
                return Reading(kind, self._sample(about))
            case "sysinfo":
                return Reading(kind, self._sysinfo(about))
            case "job" | "jobs":
                return Reading("job", [])
            case "cluster":
                return Reading(kind, [])
        raise UnreadableError(f"{body.path}.type", f"expected sample, sysinfo, job or cluster, got {kind[:40]!r}")

    def _sample(self, about: Fields) -> list[Message]:
        place, time = self._place(about), _time(about)
        system, jobs = about.within("system"), about.objects("jobs")
        booted = _booted(system, jobs, time)
        node = self._node(place)
        boot = node.boot_of(time, booted)
        uptime = boot.uptime(time, booted)
        late = uptime <= boot.clock
        rows, past = sonarreadprocess.rows(jobs, uptime, NOBODY if late else boot.past)
        parts = {
            "process": columns(rows),
            "load": sonarreadsystem.load(system),
            "disk": sonarreadsystem.disks(system),
            "memory": sonarreadsystem.memory(system, node.memory),
        }
        if not late:
            boot.past, boot.clock = past, uptime
            boot.first, boot.last = min(boot.first, time), max(boot.last, time)
        origin = Origin(*place, boot.name)
        return [
            message(origin, name, time, uptime, found)
            for name, found in parts.items()
            # No processes is a heartbeat; no other rows is no knowledge.
            if name == "process" or (found and complete(name, found))
        ]

    def _sysinfo(self, about: Fields) -> list[Message]:
        place, time = self._place(about), _time(about)
        found = sonarreadsystem.hardware(about)
        if not found:
            raise UnreadableError(about.path, "no cores or no memory")
        self._node(place).memory = found["memory"][0]
        # Which boot it is of is not told, and does not matter.
        return [message(Origin(*place, UNKNOWN_BOOT), "hardware", time, time, found)]

    def _error(self, error: Fields) -> Message | None:
        """A run that failed. Without place and time there is nothing to keep it under."""
        detail = error.needed("detail")
        time = error.time("time")
        if time is None or not error.text("node") or not (error.text("cluster") or self._cluster):
            return None
        named = detail.partition(":")[0]
        collector = "hardware" if named == "hardware" else "process"
        made = message(Origin(*self._place(error), UNKNOWN_BOOT), collector, time, time, {})
        return made._replace(status=Status.FAILED, error=detail, missing={})

    def _place(self, about: Fields) -> tuple[str, str]:
        cluster = about.text("cluster") or self._cluster
        if not cluster:
            raise UnreadableError(f"{about.path}.cluster", "no cluster is named: name one with --cluster")
        return cluster, about.needed("node")

    def _node(self, place: tuple[str, str]) -> Node:
        if place not in self._nodes:
            remembered = self._recall(*place)
            self._nodes[place] = Node.load(remembered) if remembered else Node()
        return self._nodes[place]


def _time(about: Fields) -> float:
    time = about.time("time")
    if time is None or time <= 0:
        raise UnreadableError(f"{about.path}.time", "this field is needed")
    return time


def _booted(system: Fields, jobs: list[Fields], time: float) -> float | None:
    """When the node booted, if the document tells."""
    boot = system.time("boot")
    if boot is None:
        epoch = max((job.whole("epoch") for job in jobs), default=0)
        boot = float(epoch + FIRST_EPOCH) if epoch > 1 else None
    return boot if boot is not None and 0 < boot <= time else None


def columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """The rows on their side, less what only served to read them."""
    return {name: [row[name] for row in rows] for name in rows[0] if name != "share"} if rows else {}


def complete(collector: str, found: dict[str, list[Any]]) -> bool:
    """Whether all is there that the record needs."""
    return all(field.optional or field.name in found for field in fields_of(catalogue.collector(collector).record))


def message(origin: Origin, collector: str, time: float, uptime: float, rows: dict[str, list[Any]]) -> Message:
    return Message(
        origin=origin,
        collector=collector,
        time=time,
        uptime=uptime,
        every=None,
        status=Status.OK,
        seconds=0.0,
        error=None,
        missing=MISSING if collector == "process" and rows else {},
        rows=rows,
    )
