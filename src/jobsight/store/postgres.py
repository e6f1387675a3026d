"""The store in PostgreSQL, for sites that want one shared database.

Any number of servers may write into the inbox and read. One of them digests, whichever holds the lock; when it goes
another takes over. A batch of the inbox is digested in one transaction: runs, rows, jobs, and the inbox's entries
out. So every message counts once, wherever it was cut off.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import psycopg

from jobsight import catalogue
from jobsight.ingest.accept import Accepted, accept
from jobsight.store import document, inbox, pgrows
from jobsight.store.counter import Counter
from jobsight.store.dialect import translated
from jobsight.store.document import Documents
from jobsight.store.inbox import Inbox
from jobsight.store.pgschema import prepare
from jobsight.store.pool import Connection, Pool, connect, place, said
from jobsight.store.protocol import JobQuery, Node, StoreError

# What is digested at a time: so many entries, or so many bytes packed, which are some hundred thousand rows.
ENTRIES, SIZE = 500, 2**20
# What a message may do to us that nobody foresaw, and what a table says to a value it will not have. Everything else
# is the server's or the network's trouble, and passes.
REFUSALS = (
    psycopg.DataError, psycopg.IntegrityError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError,
)  # fmt: skip
LOCK = "SELECT pg_try_advisory_lock(hashtext('digest'), hashtext(current_schema()))"


class Reader:
    """See `store.counter.Rows`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def query(self, sql: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        return self._pool.query(translated(sql), list(values))

    def heads(self, collector: str) -> list[tuple[Any, ...]]:
        return self.query(HEADS, [collector])


class Postgres:
    """See `store.protocol.Store`."""

    def __init__(
        self, url: str, counter: Counter, derived: dict[str, type[Any]], clock: Callable[[], float] = time.time
    ) -> None:
        self._url = url
        self._counter = counter
        self._clock = clock
        self._derived = derived
        self._tables = {found.name: found.record for found in catalogue.collectors()} | derived
        self._digesting = threading.Lock()
        self._connection: Connection | None = None
        self._owner = False
        self._restored = False
        self._said = ""
        try:
            with connect(url) as connection:
                self._cut = prepare(url, connection, self._tables)
                version = connection.info.server_version // 10000
        except psycopg.Error as error:
            raise StoreError(f"cannot use the {place(url)}: {said(error)}") from None
        self.report = f"{place(url)} (PostgreSQL {version}): {self._cut.report()}"
        self._pool = Pool(url)
        self._documents = Documents(self._pool)
        self._reader = Reader(self._pool)
        # Pages that take their turns must not keep the digest from its own.
        self._past = Pool(url)
        self._inbox = Inbox(url)

    def append(self, lines: Sequence[bytes]) -> "Future[None]":
        return self._inbox.append(lines)

    def digest(self) -> int:
        with self._digesting:
            total = 0
            try:
                connection = self._owned()
                while connection and (entries := self._entries(connection)):
                    total += self._digest(connection, entries)
            except (psycopg.Error, StoreError) as error:
                # Nothing is lost: what was not committed waits in the inbox.
                self._say(f"the inbox waits: {said(error)}")
                self._release()
            else:
                self._said = ""
            return total

    def nodes(self, now: float) -> list[Node]:
        return [Node(*row) for row in self.query(NODES.replace("$now", repr(now)))]

    def jobs(self, query: JobQuery, now: float) -> list[dict[str, Any]]:
        return self._documents.jobs(query, now)

    def job(self, key: str) -> dict[str, Any] | None:
        return self._documents.job(key.replace("\0", "\ufffd"))

    def query(
        self,
        sql: str,
        values: Iterable[Any] = (),
        between: tuple[float, float] | None = None,  # noqa: ARG002  # its planner sees for itself
    ) -> list[tuple[Any, ...]]:
        return self._reader.query(sql, values)

    def compact(self, now: float) -> int:
        """Have days that are over packed, where the server can. No row moves: 0."""
        with self._digesting:
            try:
                if connection := self._owned():
                    self._cut.pack(connection, self._tables, now)
            except psycopg.Error as error:
                self._say(f"packing waits: {said(error)}")
                self._release()
        return 0

    def forget(self, before: float, tables: Iterable[str] = ()) -> int:
        """Drop days that ended before `before`, of all tables if none is named; how many rows. Jobs and their totals
        stay. The server that digests does it.
        """
        named = list(tables)
        with self._digesting:
            try:
                if connection := self._owned():
                    if not named:
                        connection.execute("DELETE FROM latest WHERE time < %s", [before])
                    return self._cut.forget(connection, named or ["run", *self._tables], before)
            except psycopg.Error as error:
                self._say(f"old rows stay: {said(error)}")
                self._release()
        return 0

    def close(self) -> None:
        self._inbox.close()
        with self._digesting:
            self._release()
        self._past.close()
        self._pool.close()

    def _owned(self) -> Connection | None:
        """The connection that holds the lock; None while another server has it."""
        if self._connection is None:
            self._connection = connect(self._url)
            self._owner = self._restored = False
        if not self._owner:
            found = self._connection.execute(LOCK).fetchone()
            self._owner = bool(found and found[0])
        return self._connection if self._owner else None

    def _release(self) -> None:
        # What we know of jobs may be ahead of what is stored, or behind.
        if self._connection is not None:
            # The lock goes with the connection, but the server may take its time to see that this is closed.
            with suppress(psycopg.Error):
                self._connection.execute("SELECT pg_advisory_unlock_all()")
            self._connection.close()
        self._connection, self._owner, self._restored = None, False, False

    def _say(self, text: str) -> None:
        if text != self._said:
            print(f"jobsight: {text}", file=sys.stderr, flush=True)
        self._said = text

    @staticmethod
    def _entries(connection: Connection) -> list[int]:
        """The oldest of the inbox, as many as make a batch."""
        found: list[int] = []
        size = 0
        for number, length in connection.execute(
            "SELECT id, length(payload) FROM inbox WHERE trouble IS NULL ORDER BY id LIMIT %s", [ENTRIES]
        ):
            if found and size + length > SIZE:
                break
            found.append(number)
            size += length
        return found

    def _digest(self, connection: Connection, entries: list[int]) -> int:
        """How many were new. One message must not stop the others: a batch it spoils is halved until it is alone, and
        there it stays, with the reason.
        """
        payloads = connection.execute(
            "SELECT payload FROM inbox WHERE id = ANY(%s) ORDER BY id", [entries]
        ).fetchall()
        lines = [line for (payload,) in payloads for line in inbox.lines_of(payload)]
        try:
            return self._store(connection, entries, lines)
        except REFUSALS as error:
            self._restored = False
            if len(lines) == 1:
                self._say(f"message {entries[0]} of the inbox was set aside: {said(error)}")
                connection.execute("UPDATE inbox SET trouble = %s WHERE id = %s", [said(error), entries[0]])
                return 0
        if len(entries) == 1:
            entries = inbox.divided(connection, entries[0], lines)
        half = len(entries) // 2
        return self._digest(connection, entries[:half]) + self._digest(connection, entries[half:])

    def _store(self, connection: Connection, entries: list[int], lines: list[bytes]) -> int:
        messages = [pgrows.storable(found) for line in lines if isinstance(found := accept(line), Accepted)]
        now = self._clock()
        wanted = {(table, m.time) for m in messages for table in ("run", m.collector, *self._derived)}
        self._cut.ready(connection, wanted, now)
        with connection.transaction():
            fresh = pgrows.entered(connection, messages)
            if not self._restored:
                # Through another connection, so as it was before this batch.
                self._counter.restore(Documents(self._past), Reader(self._past))
                self._restored = True
            derived, jobs = self._counter.count(fresh)
            by_table: dict[str, list[Accepted]] = {}
            for message in fresh:
                by_table.setdefault(message.collector, []).append(message)
            for table, some in by_table.items():
                pgrows.copy(connection, table, self._tables[table], pgrows.rows_of(some, self._tables[table]))
            for table, rows in derived.items():
                if rows:
                    pgrows.copy(connection, table, self._tables[table], rows)
            document.put(connection, jobs)
            pgrows.remember(connection, fresh, now)
            connection.execute("DELETE FROM inbox WHERE id = ANY(%s)", [entries])
        return len(fresh)


HEADS = """SELECT cluster, node, boot, good_time, good_uptime, good_every FROM latest
WHERE collector = ? AND good_time IS NOT NULL"""
# A week is enough to call a node known; what has been silent longer is not on the start page.
NODES = """
SELECT cluster, node, max(time) FILTER (WHERE recent), coalesce(arg_max(every, known), 30),
  arg_max(cpus, good_time), arg_max(total, lately), arg_max(available, lately), arg_max(load1, lately),
  arg_max(model, good_time), count(*) FILTER (WHERE troubled)
FROM (SELECT *, time BETWEEN $now - 7 * 86400 AND $now + 300 AS recent,
    CASE WHEN time BETWEEN $now - 7 * 86400 AND $now + 300 THEN time END AS known,
    CASE WHEN good_time BETWEEN $now - 7 * 86400 AND $now + 300 THEN good_time END AS lately,
    (figures->>'cpus')::bigint AS cpus, (figures->>'total')::bigint AS total,
    (figures->>'available')::bigint AS available, (figures->>'load1')::double precision AS load1,
    figures->>'model' AS model,
    status IN ('failed', 'late') AND time BETWEEN $now - 86400 AND $now + 300 AND 1 = row_number()
      OVER (PARTITION BY cluster, node, collector, time > $now + 300 ORDER BY time DESC) AS troubled
  FROM latest) AS said
GROUP BY cluster, node HAVING bool_or(recent) ORDER BY cluster COLLATE "C", node COLLATE "C"
"""
