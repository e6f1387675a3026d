"""Messages for the suites of this folder: made by hand, or from recorded machines."""

from pathlib import Path
from typing import Any

from jobsight import catalogue
from jobsight.compat.sonar import Document, Translator
from jobsight.recording import Replay, replay
from jobsight.schema.message import Message, Origin, Status

RECORDED = Path(__file__).parent.parent / "collect"
MACHINES = sorted(path.parent for path in RECORDED.glob("process/*/root"))

# 2026-11-15T08:00:00Z; the node has been up for a day.
NOON = 1794729600.0
UP = 86400.0
BOOT = int(NOON - UP)
EPOCH = BOOT - 1577836800

PROCESS: dict[str, Any] = {
    "pid": 100, "started": 86000.0, "parent": 1, "session": 100, "process_group": 100, "scheduler": "session",
    "job": "100", "owner": "ann", "command": "sim", "state": "S", "threads": 1, "cpu_user": 0.0, "cpu_system": 0.0,
    "cpu_children": 0.0, "memory_anon": 0, "memory_shared": 0, "memory_virtual": 10**9, "read": None, "written": None,
}  # fmt: skip


def message(collector: str, rows: list[dict[str, Any]], after: float = 0.0, **changes: Any) -> Message:
    """One run of a collector, some seconds after NOON."""
    columns = {name: tuple(row[name] for row in rows) for name in rows[0]} if rows else {}
    made = Message(
        origin=Origin("fox", "n1", "boot1"),
        collector=collector,
        time=NOON + after,
        uptime=UP + after,
        every=30.0,
        status=Status.OK,
        seconds=0.0,
        error=None,
        missing={},
        rows=columns,
    )
    return made._replace(**changes)


def processes(*rows: dict[str, Any], after: float = 0.0, **changes: Any) -> Message:
    """A process message; each row says how it differs from PROCESS."""
    return message("process", [{**PROCESS, **row} for row in rows], after, **changes)


def translator() -> Translator:
    return Translator(offset=3600)


def attributes(document: Document) -> dict[str, Any]:
    found: dict[str, Any] = document.content["data"]["attributes"]
    return found


def sampled(*messages: Message) -> dict[str, Any]:
    """The attributes of the sample that the last message completes."""
    made = translator()
    *_, documents = [made.documents(one) for one in messages]
    (sample,) = [document for document in documents if document.kind == "sample"]
    return attributes(sample)


def only_process(*messages: Message) -> dict[str, Any]:
    """The one process of that sample."""
    (job,) = sampled(*messages)["jobs"]
    (found,) = job["processes"]
    assert isinstance(found, dict)
    return found


def recorded(machine: Path, after: float = 0.0) -> list[Message]:
    """One round on a recorded machine, as the agent runs it; what it lacks is taken from another."""
    found = []
    uptime = Replay(str(machine / "root")).uptime()
    for name in ("cpu", "disk", "hardware", "load", "memory", "process"):
        place = RECORDED / name / machine.name
        root = (place if place.exists() else RECORDED / name / "vm-cgroup-v1") / "root"
        made = replay(catalogue.collector(name), Replay(str(root)))
        found.append(made._replace(time=NOON + after, uptime=uptime + after, seconds=0.05, every=30.0))
    return found
