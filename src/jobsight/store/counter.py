"""What turns messages into jobs: the analysis gives the store one, the store knows no more of it."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from jobsight.ingest.accept import Accepted


class Jobs(Protocol):
    """Where earlier jobs are found."""

    def latest(self, cluster: str, scheduler: str, number: str, scope: str) -> dict[str, Any] | None:
        """The document of the newest job of that name."""


class Rows(Protocol):
    """Where earlier rows are found."""

    def query(self, sql: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of the time-series tables."""

    def heads(self, collector: str) -> list[tuple[Any, ...]]:
        """Of the last good run of every boot of every node: cluster, node, boot, time, uptime and pace."""


class Counter(Protocol):
    """Counts messages into jobs, one after the other."""

    def restore(self, small: Jobs, hot: Rows) -> None:
        """Start from what the store holds."""

    def count(self, messages: Sequence[Accepted]) -> tuple[dict[str, list[tuple[Any, ...]]], list[dict[str, Any]]]:
        """Derived rows by table, and the jobs that changed."""
