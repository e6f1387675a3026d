"""Our messages as the JSON documents that Sonar writes, for what reads Sonar: Jobanalyzer, slurm-monitor.

A `sample` is made when the `process` message comes, with the newest `cpu`, `disk`, `load` and `memory` rows of the
same round: the agent runs collectors in the order of their names, so they have come by then. A `sysinfo` is made from
`hardware`.

In that format a missing number means zero. So a number we do not have is left out and not replaced by a similar one.
"""

import json
import time
from collections.abc import Callable
from math import floor
from typing import Any, NamedTuple

from jobsight import __version__
from jobsight.compat import sonarsample, sonarsysinfo
from jobsight.compat.cpushare import Sample
from jobsight.compat.text import clean
from jobsight.schema.message import Message, Status

COLLECTORS = ("allocation", "cpu", "disk", "hardware", "load", "memory", "process")
PARTS = ("cpu", "disk", "load", "memory")

# A value is used for one and a half of its collector's intervals; of a single run, for so many seconds.
REACH = 1.5
SINGLE = 60.0

# The clock may be set, and then boot seems to move; jobs without a scheduler are told apart by it. Small steps are
# not passed on.
STEP = 2.0
# Exactly these two: slurm-monitor refuses a message with a third.
META = {"producer": "jobsight", "version": __version__}


class Document(NamedTuple):
    """One Sonar document and what its destination needs to know of it."""

    kind: str
    """`sample` or `sysinfo`: Sonar's type, part of topics, addresses and file names."""
    cluster: str
    node: str
    time: float
    content: dict[str, Any]


class Node:
    """What is remembered of one boot of one node."""

    def __init__(self, boot: str) -> None:
        self.boot = boot
        self.since: int | None = None
        self.newest: dict[str, Message] = {}
        self.numbers: dict[tuple[str, str], int] = {}
        self.before: Sample | None = None

    def booted(self, message: Message) -> int:
        """When the node booted, the same for all its samples. Rounded down, as the kernel does for its own."""
        since = message.time - message.uptime
        if self.since is None or abs(since - self.since) > STEP:
            self.since = floor(since)
        return self.since


class Translator:
    """Takes messages in the order they were made and gives documents."""

    def __init__(self, offset: int | None = None) -> None:
        """`offset`: of local time, in seconds east of UTC; the machine's own if not given."""
        self._offset = offset
        self._nodes: dict[tuple[str, str], Node] = {}

    def documents(self, message: Message) -> list[Document]:
        """What this message completes; mostly nothing."""
        place = (message.origin.cluster, message.origin.node)
        node = self._nodes.get(place)
        if node is None or node.boot != message.origin.boot:
            node = self._nodes[place] = Node(message.origin.boot)
        match message.collector:
            case "process":
                return self._document("sample", message, lambda: self._sample(node, message))
            case "hardware":
                return self._document("sysinfo", message, lambda: sonarsysinfo.attributes(message.rows))
            case "allocation" if message.status == Status.OK:
                node.numbers = sonarsample.numbers(message.rows)
            case name if name in PARTS:
                node.newest[name] = message
        return []

    def _sample(self, node: Node, message: Message) -> dict[str, Any]:
        parts = {name: part.rows for name in PARTS if (part := node.newest.get(name)) and fresh(part, message)}
        boot = node.booted(message)
        now = Sample(message.uptime, message.seconds, sonarsample.totals(message.rows))
        circumstance = sonarsample.Circumstance(boot, node.numbers, node.before, now)
        node.before = now
        return {
            "system": {"boot": timestamp(boot, 0), **sonarsample.system(parts)},
            "jobs": sonarsample.jobs(message.rows, circumstance),
        }

    def _document(self, kind: str, message: Message, attributes: Callable[[], dict[str, Any]]) -> list[Document]:
        """The document of one run: its attributes, or what went wrong."""
        about = {"time": timestamp(message.time, self._offset)}
        about |= {"cluster": clean(message.origin.cluster), "node": clean(message.origin.node)}
        match message.status:
            case Status.ABSENT:
                return []
            case Status.OK:
                content = {"meta": META, "data": {"type": kind, "attributes": {**about, **attributes()}}}
            case status:
                detail = f"{message.collector}: {clean(message.error or status.value)}"
                content = {"meta": META, "errors": [{**about, "detail": detail}]}
        return [Document(kind, message.origin.cluster, message.origin.node, message.time, content)]


def fresh(part: Message, now: Message) -> bool:
    """Whether a node's values still hold at the time of a sample. By uptime: the clock may be set in between."""
    reach = SINGLE if part.every is None else REACH * part.every
    return part.status == Status.OK and 0 <= now.uptime - part.uptime <= reach


def timestamp(seconds: float, offset: int | None) -> str:
    """`2026-11-15T09:16:37+01:00`."""
    whole = floor(seconds)
    if offset is None:
        offset = time.localtime(whole).tm_gmtoff
    sign = "-" if offset < 0 else "+"
    hours, minutes = divmod(abs(offset) // 60, 60)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole + offset))}{sign}{hours:02d}:{minutes:02d}"


def encode(document: Document) -> bytes:
    """One line of JSON, newline included."""
    return (json.dumps(document.content, separators=(",", ":"), check_circular=False) + "\n").encode()
