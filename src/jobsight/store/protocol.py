"""What any store must do. `tests/store/contract.py` is the same in tests."""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from uuid import UUID

from jobsight.store.counter import Entry
from jobsight.store.sight import Sight

if TYPE_CHECKING:
    from jobsight.store.findings import Findings

# What was last seen longer ago than this many sampling intervals, and these seconds for its way to us, is silent.
FRESH = 2.5
SLACK = 5.0


def fresh(seen: float, every: float, now: float) -> bool:
    return now <= seen + FRESH * every + SLACK


class StoreError(RuntimeError):
    """The store cannot be used, and a sentence that says why."""


class InUseError(StoreError):
    """Another process has it."""


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
    """`pending`, `running`, `ended`, or `silent`: neither known to wait or run nor to have ended."""
    id: str | None = None
    text: str | None = None
    """Part of the id, the owner, the command or the node."""
    limit: int = 1000
    begun: float | None = None
    """Started then or later."""
    ids: tuple[str, ...] = ()
    """Known by one of these; any if there are none."""
    accounts: tuple[str, ...] = ()
    """Charged to one of these; any if there are none."""
    sight: Sight | None = None
    """What whoever asks may see; None is everything."""


class Backlog(NamedTuple):
    """Messages that are durable and not yet in tables and jobs."""

    size: int
    """In bytes, as they wait."""
    most: int
    """With more than this waiting nothing is taken."""
    age: float | None
    """Seconds the oldest has waited; None if none does."""


# The most that waits, unless the settings say otherwise (bytes).
MOST_WAITING = 2 * 2**30


class Change(NamedTuple):
    """What a node's usage is now known to be: rows of some jobs are replaced, and their documents with them."""

    cluster: str
    node: str
    since: float
    until: float
    """Rows to be replaced lie in this time."""
    keys: list[str]
    """Jobs whose usage rows on this node go."""
    usage: list[tuple[Any, ...]]
    """Rows that come in their place, with their stamp, in the order of the record."""
    due: list[tuple[Any, ...]]
    """Rows to be entered in `due`."""
    jobs: list[Entry]
    gone: list[str]
    """Jobs of which nothing is left."""
    marks: tuple[float, float]
    """From which time to which marks of this node in `late` are done with, once all this is stored."""


# No interval of usage is spread further back than this (seconds): a node may be silent for weeks, but a number may
# also be mad.
REACH = 40 * 86400.0
# Columns of the table `label` that a rollup may join: see `Store.refill`.
LABEL = ("job_key", "source", "owner", "account", "partition", "command")


class Amends(Protocol):
    """What a store does so that analysis can put right what was counted: see `analyse.recount`, `analyse.rollup`.

    `late` and `due` are tables of marks, see `analyse.late`. Marks go last: broken off anywhere, it is done again,
    with the same result.
    """

    def still(self) -> AbstractContextManager[bool]:
        """While this lasts nothing is digested, and all that was counted is stored. False if that cannot be had now
        (another server digests, a disk is full): then nothing must be changed.
        """

    def latest(self, cluster: str, scheduler: str, number: str, scope: str, until: float) -> dict[str, Any] | None:
        """The document of the newest job of that name that had started by then."""

    def named(self, cluster: str, scheduler: str, numbers: Sequence[str]) -> list[dict[str, Any]]:
        """The documents of all jobs of these numbers that count for the whole cluster."""

    def horizon(self, table: str) -> float:
        """Rows of a table are complete from this time on: older ones were dropped. 0 if none ever was."""

    def mark(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Enter rows into `late` or `due`."""

    def unmark(self, table: str, places: Sequence[tuple[str, str, float, float]]) -> None:
        """Take marks out: of a cluster and node, from one time to another, both included."""

    def change(self, changes: Sequence[Change]) -> None:
        """Store changes; what is counted next starts from what is stored then."""

    def refill(
        self,
        table: str,
        span: tuple[float, float],
        sql: str,
        label: Sequence[tuple[Any, ...]],
        names: Sequence[str] = LABEL,
        reads: tuple[float, float] | None = None,
    ) -> int:
        """Replace a table's rows from a time to before another by what SQL yields, in one commit; how many there are
        now. The SQL yields the table's columns in their order and may read other tables and `label`, a table of the
        rows given, whose columns are texts of these names. `reads` is the time of the rows that it reads: from the
        span's beginning to long after its end if not said.
        """

    def namespace(self) -> UUID:
        """What identifiers of series are made in: random, made once, each site's own."""


class Store(Amends, Protocol):
    """Rows, jobs and where they came from."""

    def append(self, lines: Sequence[bytes]) -> "Future[None]":
        """Make accepted messages durable; done when they are. BusyError while too many wait to be digested."""

    def backlog(self) -> Backlog:
        """What waits to be digested."""

    @property
    def digests(self) -> bool:
        """Whether it is this process that digests. Where several share a store one does."""

    def digest(self) -> int:
        """Load what was appended into tables and jobs; how many messages were new."""

    def nodes(self, now: float) -> list[Node]:
        """The nodes heard of in the last week."""

    def jobs(self, query: JobQuery, now: float) -> list[dict[str, Any]]:
        """Job documents, newest first."""

    def job(self, key: str, sight: Sight | None = None) -> dict[str, Any] | None:
        """One job's document; None also if it is not to be seen."""

    def running(self, now: float, sight: Sight | None = None) -> list[str]:
        """The keys of all jobs that run, however many."""

    def accounts(self, sight: Sight | None = None) -> list[str]:
        """The accounts that jobs in sight are charged to."""

    def query(
        self, sql: str, values: Iterable[Any] = (), between: tuple[float, float] | None = None
    ) -> list[tuple[Any, ...]]:
        """Rows of the time-series tables. With `between` the caller promises that no row of another time matters."""

    @property
    def findings(self) -> "Findings":
        """What was found, and what became of it."""

    def compact(self, now: float) -> int:
        """Make what is over smaller; how many rows moved."""

    def forget(self, before: float, tables: Iterable[str] = ()) -> int:
        """Drop rows older than `before`, or the most of them that can be dropped at once, of all tables if none is
        named; how many. Jobs stay.
        """

    def forget_jobs(self, before: float) -> int:
        """Drop jobs last seen before that; how many."""

    def close(self) -> None:
        """Finish; what was appended stays."""
