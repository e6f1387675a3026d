"""What any store must do. `tests/store/contract.py` is the same in tests."""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

# What was last seen longer ago than this many sampling intervals, and these seconds for its way to us, is silent.
FRESH = 2.5
SLACK = 5.0


def fresh(seen: float, every: float, now: float) -> bool:
    return now <= seen + FRESH * every + SLACK


class StoreError(RuntimeError):
    """The store cannot be used, and a sentence that says why."""


class Node(NamedTuple):
    """A node as its latest messages show it."""

    cluster: str
    name: str
    seen: float
    every: float
    cpus: int | None
    memory: int | None
    memory_available: int | None
    load: float | None
    model: str | None
    troubles: int
    """Collectors whose latest run failed or was late."""


class JobQuery(NamedTuple):
    """Which jobs; None means any."""

    since: float | None = None
    until: float | None = None
    owner: str | None = None
    node: str | None = None
    command: str | None = None
    scheduler: str | None = None
    state: str | None = None
    """`running`, `ended`, or `silent`: neither known to run nor to have ended."""
    id: str | None = None
    text: str | None = None
    """Part of the id, the owner, the command or the node."""
    limit: int = 1000


class Store(Protocol):
    """Rows, jobs and where they came from."""

    def append(self, lines: Sequence[bytes]) -> "Future[None]":
        """Make accepted messages durable; done when they are."""

    def digest(self) -> int:
        """Load what was appended into tables and jobs; how many messages were new."""

    def nodes(self, now: float) -> list[Node]:
        """The nodes heard of in the last week."""

    def jobs(self, query: JobQuery, now: float) -> list[dict[str, Any]]:
        """Job documents, newest first."""

    def job(self, key: str) -> dict[str, Any] | None:
        """One job's document."""

    def query(
        self, sql: str, values: Iterable[Any] = (), between: tuple[float, float] | None = None
    ) -> list[tuple[Any, ...]]:
        """Rows of the time-series tables. With `between` the caller promises that no row of another time matters."""

    def compact(self, now: float) -> int:
        """Make what is over smaller; how many rows moved."""

    def forget(self, before: float) -> int:
        """Drop rows older than `before`, or the most of them that can be dropped at once; how many. Jobs stay."""

    def close(self) -> None:
        """Finish; what was appended stays."""
