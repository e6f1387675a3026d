"""A message: one run of one collector on one node, with its rows as columns."""

from enum import StrEnum
from typing import Any, NamedTuple

# Within a schema number only nullable fields may be added.
SCHEMA = 1


class Status(StrEnum):
    """How a run went."""

    OK = "ok"
    ABSENT = "absent"
    FAILED = "failed"
    LATE = "late"


class Origin(NamedTuple):
    """Where messages come from: the part of the identity that a node shares between its collectors."""

    cluster: str
    node: str
    boot: str


class Message(NamedTuple):
    """One run of one collector. (cluster, node, boot, collector, time) is its identity."""

    origin: Origin
    collector: str
    time: float
    """Seconds since 1970, UTC, at the call; ISO 8601 on the wire."""
    uptime: float
    """Seconds since boot at `time`: what turns a start time since boot into a date, whatever the clock did."""
    every: float | None
    """Seconds until the next run is due, None for a single run: how long the values hold."""
    status: Status
    seconds: float
    error: str | None
    missing: dict[str, str]
    """Columns with values that could not be had, and why: `{"read": "forbidden"}`."""
    rows: dict[str, Any]
