"""The store in PostgreSQL, for sites that want one shared database.

Any number of servers may write into the inbox and read. One of them digests, whichever holds the lock; when it goes
another takes over. A batch of the inbox is digested in one transaction: runs, rows, jobs, and the inbox's entries
out. So every message counts once, wherever it was cut off.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cached_property
from typing import Any
from uuid import UUID

import psycopg

from jobsight import catalogue
from jobsight.store import inbox
from jobsight.store.counter import Counter
from jobsight.store.dialect import bounded
from jobsight.store.digestion import Digestion
from jobsight.store.document import Documents
from jobsight.store.findings import TABLES, StoredFindings
from jobsight.store.inbox import Inbox
from jobsight.store.lease import Lease
from jobsight.store.pgamendment import FORGOTTEN, PgAmendments
from jobsight.store.pgreader import Reader
from jobsight.store.pgschema import prepare
from jobsight.store.pgstatus import status
from jobsight.store.pgtokens import Database
from jobsight.store.pool import Connection, Pool, connect, place, said
from jobsight.store.protocol import LABEL, MOST_WAITING, Backlog, Change, JobQuery, Node, StoreError
from jobsight.store.sight import Sight
from jobsight.store.status import Status


class Postgres:
    """See `store.protocol.Store`."""

    def __init__(
        self,
        url: str,
        counter: Counter,
        derived: dict[str, type[Any]],
        clock: Callable[[], float] = time.time,
        most: int = MOST_WAITING,
    ) -> None:
        """With `most` bytes in the inbox no more is taken."""
        self._url = url
        records = {found.name: found.record for found in catalogue.collectors()} | derived
        self._digesting = threading.RLock()
        self._lease = Lease(url)
        self._said = ""
        try:
            with connect(url) as connection:
                layout = prepare(url, connection, records)
                version = connection.info.server_version // 10000
        except psycopg.Error as error:
            raise StoreError(f"cannot use the {place(url)}: {said(error)}") from None
        self.cut, self.tables, self._namespace = layout
        self._amendments = PgAmendments(self.cut, self.tables, clock)
        self.report = f"{place(url)} (PostgreSQL {version}): {self.cut.report()}"
        self._pool = Pool(url)
        self._documents = Documents(self._pool)
        self._reader = Reader(self._pool)
        # Pages that take their turns must not keep the digest from its own.
        self._past = Pool(url)
        self.digestion = Digestion(layout, records, derived, counter, self._past, clock, self._say)
        self._most = most
        self._inbox = Inbox(url, most)

    @property
    def digests(self) -> bool:
        """Whether this is the server that digests."""
        return self._lease.held

    def held(self) -> Connection | None:
        """For whoever must have the store alone: the connection with the lock; None while another server has it."""
        with self._digesting:
            return self._lease.connection()

    def append(self, lines: Sequence[bytes]) -> "Future[None]":
        return self._inbox.append(lines)

    def backlog(self) -> Backlog:
        """Since when an entry waits is not known."""
        ((size,),) = self._pool.query(inbox.WAITING, [])
        return Backlog(size, self._most, None)

    def reconsider(self) -> int:
        """Have what was set aside digested again; how many messages."""
        try:
            with connect(self._url) as connection:
                return connection.execute("UPDATE inbox SET trouble = NULL WHERE trouble IS NOT NULL").rowcount
        except psycopg.Error as error:
            raise StoreError(f"cannot use the {place(self._url)}: {said(error)}") from None

    def digest(self) -> int:
        with self._digesting:
            total = 0
            try:
                connection = self._lease.connection()
                while connection and (new := self.digestion.batch(connection)) is not None:
                    total += new
            except (psycopg.Error, StoreError) as error:
                # Nothing is lost: what was not committed waits in the inbox.
                self._say(f"the inbox waits: {said(error)}")
                self._release()
            else:
                self._said = ""
            return total

    def nodes(self, now: float) -> list[Node]:
        return self._reader.nodes(now)

    def jobs(self, query: JobQuery, now: float) -> list[dict[str, Any]]:
        return self._documents.jobs(query, now)

    def job(self, key: str, sight: Sight | None = None) -> dict[str, Any] | None:
        return self._documents.job(key.replace("\0", "\ufffd"), sight)

    def running(self, now: float, sight: Sight | None = None) -> list[str]:
        return self._documents.running(now, sight)

    def accounts(self, sight: Sight | None = None) -> list[str]:
        return self._documents.accounts(sight)

    def query(
        self, sql: str, values: Iterable[Any] = (), between: tuple[float, float] | None = None
    ) -> list[tuple[Any, ...]]:
        if between is None:
            return self._reader.query(sql, values)
        within, times = bounded(sql, {"run", *self.tables})
        return self._reader.query(within, [*between * times, *values])

    def compact(self, now: float) -> int:
        """Have days that are over packed, where the server can. No row moves: 0."""
        with self._digesting:
            try:
                if connection := self._lease.connection():
                    self.cut.pack(connection, [table.rows for table in self.tables.values()], now)
            except psycopg.Error as error:
                self._say(f"packing waits: {said(error)}")
                self._release()
        return 0

    def forget(self, before: float, tables: Iterable[str] = ()) -> int:
        """Drop days that ended before `before`, of all tables if none is named; how many rows. Jobs and their totals
        stay. The server that digests does it.
        """
        named = list(tables)
        total = 0
        with self._digesting:
            try:
                if connection := self._lease.connection():
                    if not named or "run" in named:
                        connection.execute("DELETE FROM latest WHERE time < %s", [before])
                    for table in named or ["run", *self.tables]:
                        total += self._forget(connection, table, before)
            except psycopg.Error as error:
                self._say(f"old rows stay: {said(error)}")
                self._release()
        return total

    def _forget(self, connection: Connection, name: str, before: float) -> int:
        table = self.tables.get(name)
        try:
            # In one: a series goes with its last rows.
            with connection.transaction():
                gone = self.cut.forget(connection, table.rows if table else name, before)
                if table:
                    table.forget_series(connection, self.cut.edge(table.rows, before))
                connection.execute(FORGOTTEN, [name, before])
        except psycopg.errors.LockNotAvailable:
            # Somebody reads: the next time will do.
            return 0
        return gone

    def forget_jobs(self, before: float) -> int:
        """Drop jobs last seen before that; how many. The server that digests does it."""
        with self.still() as may:
            if not may:
                return 0
            with self._changing() as connection:
                self.digestion.recall()
                return connection.execute("DELETE FROM job WHERE seen < %s", [before]).rowcount

    def status(self) -> Status:
        return status(place(self._url), self._reader, self.tables, self.backlog().size)

    @contextmanager
    def still(self) -> Iterator[bool]:
        """See `store.protocol.Amends`, also for the next ones."""
        with self._digesting:
            yield self._may_change() is not None

    def latest(self, cluster: str, scheduler: str, number: str, scope: str, until: float) -> dict[str, Any] | None:
        return self._documents.latest(cluster, scheduler, number, scope, until)

    def named(self, cluster: str, scheduler: str, numbers: Sequence[str]) -> list[dict[str, Any]]:
        return self._documents.named(cluster, scheduler, numbers)

    def horizon(self, table: str) -> float:
        found = self.query("SELECT time FROM horizon WHERE source = ?", [table])
        return float(found[0][0]) if found else 0.0

    def mark(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        with self._changing() as connection:
            self._amendments.mark(connection, table, rows)

    def unmark(self, table: str, places: Sequence[tuple[str, str, float, float]]) -> None:
        with self._changing() as connection:
            self._amendments.unmark(connection, table, places)

    def change(self, changes: Sequence[Change]) -> None:
        with self._changing() as connection:
            # What is counted next starts from what is stored then.
            self.digestion.recall()
            self._amendments.change(connection, changes)

    def refill(
        self,
        table: str,
        span: tuple[float, float],
        sql: str,
        label: Sequence[tuple[Any, ...]],
        names: Sequence[str] = LABEL,
        reads: tuple[float, float] | None = None,  # noqa: ARG002  # what the statement says is enough here
    ) -> int:
        with self._changing() as connection:
            return self._amendments.refill(connection, table, span, sql, label, names)

    def namespace(self) -> UUID:
        return self._namespace

    @cached_property
    def findings(self) -> StoredFindings:
        return StoredFindings(Database(self._url, TABLES, ("finding",)))

    def close(self) -> None:
        if "findings" in vars(self):
            self.findings.close()
        self._inbox.close()
        with self._digesting:
            self._release()
        self._past.close()
        self._pool.close()

    def _may_change(self) -> Connection | None:
        try:
            return self._lease.connection()
        except psycopg.Error as error:
            self._say(f"nothing can be changed now: {said(error)}")
            self._release()
            return None

    @contextmanager
    def _changing(self) -> Iterator[Connection]:
        """The connection that may change what was counted. Whatever fails, all is as it was."""
        with self._digesting, self.digestion.doubted():
            connection = self._may_change()
            if connection is None:
                raise StoreError(f"another server digests into the {place(self._url)}")
            try:
                yield connection
            except psycopg.Error as error:
                self._release()
                raise StoreError(f"the {place(self._url)} has not taken a change: {said(error)}") from None

    def _release(self) -> None:
        self.digestion.doubt()
        self._lease.release()

    def _say(self, text: str) -> None:
        if text != self._said:
            print(f"jobsight: {text}", file=sys.stderr, flush=True)
        self._said = text
