"""What turns messages into jobs: the analysis gives the store one, the store knows no more of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from jobsight.ingest.accept import Accepted

# A scheduler's word on a job that waits or runs is told again within the hour.
HOURLY = 3600.0


class Entry(NamedTuple):
    """A job as tables of jobs keep it: the columns that are searched by, and the whole as a document."""

    key: str
    cluster: str
    scheduler: str
    id: str
    scope: str
    owner: str
    command: str
    nodes: str
    """With a space before and after each."""
    started: float
    seen: float
    every: float
    alive: bool
    document: str
    number: str
    words: str
    account: str
    waits: bool = False
    """Whether it is queued and has not begun."""


class Jobs(Protocol):
    """Where earlier jobs are found."""

    def latest(self, cluster: str, scheduler: str, number: str, scope: str, until: float) -> dict[str, Any] | None:
        """The document of the newest job of that name that had started by then."""

    def named(self, cluster: str, scheduler: str, numbers: Sequence[str]) -> list[dict[str, Any]]:
        """The documents of all jobs of these numbers that count for the whole cluster."""


class Rows(Protocol):
    """Where earlier rows are found."""

    def query(self, sql: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of the time-series tables."""

    def heads(self, collector: str) -> list[tuple[Any, ...]]:
        """Of the last good run of every boot of every node: cluster, node, boot, time, uptime and pace."""


class Counter(Protocol):
    """Counts messages into jobs, one after the other."""

    wanted: Mapping[str, tuple[str, ...]]
    """The columns it looks at, by collector."""

    def restore(self, small: Jobs, hot: Rows) -> None:
        """Start from what the store holds."""

    def count(self, messages: Sequence[Accepted]) -> tuple[dict[str, list[tuple[Any, ...]]], list[Entry]]:
        """Derived rows by table, and the jobs that changed."""
