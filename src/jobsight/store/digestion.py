"""Batches of the inbox into tables and jobs, each in one transaction: it counts once, wherever it was cut off."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from jobsight.ingest.accept import Accepted, Refused, recall
from jobsight.store import document, inbox, pgrows
from jobsight.store.counter import Counter
from jobsight.store.document import Documents
from jobsight.store.pgreader import Reader
from jobsight.store.pgschema import Layout
from jobsight.store.pool import Connection, Pool, said

# What is digested at a time: so many entries, or so many bytes packed, which are some hundred thousand rows.
ENTRIES, SIZE = 500, 2**20
# What a message may do to us that nobody foresaw, and what a table says to a value it will not have. Everything else
# is the server's or the network's trouble, and passes.
REFUSALS = (
    psycopg.DataError, psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded, ArithmeticError, AttributeError,
    LookupError, TypeError, ValueError,
)  # fmt: skip


class Digestion:
    """What one server does with the inbox while it has the lease. It remembers jobs and series from batch to batch;
    after anything that failed it starts from what is stored.
    """

    def __init__(
        self,
        layout: Layout,
        records: dict[str, type[Any]],
        derived: Iterable[str],
        counter: Counter,
        past: Pool,
        clock: Callable[[], float],
        say: Callable[[str], None],
    ) -> None:
        self._cut, self._tables = layout.cut, layout.tables
        self._records = records
        self._derived = list(derived)
        self._counter = counter
        self._past = past
        self._clock = clock
        self._say = say
        self._restored = False

    def batch(self, connection: Connection) -> int | None:
        """Digest the oldest entries, how many messages were new; None if there is no entry."""
        entries = self._entries(connection)
        return self._digest(connection, entries) if entries else None

    def recall(self) -> None:
        """Jobs were changed by somebody else: the next batch starts from what is stored."""
        self._restored = False

    def doubt(self) -> None:
        """What we know of jobs and of series may be ahead of what is stored, or behind."""
        self._restored = False
        for table in self._tables.values():
            table.doubt()

    @contextmanager
    def doubted(self) -> Iterator[None]:
        """While something is written that may fail."""
        try:
            yield
        except BaseException:
            self.doubt()
            raise

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
        entries, lines = self._unpacked(connection, entries)
        if not entries:
            return 0
        try:
            return self._store(connection, entries, lines)
        except REFUSALS as error:
            if len(lines) == 1:
                self._say(f"message {entries[0]} of the inbox was set aside: {said(error)}")
                connection.execute("UPDATE inbox SET trouble = %s WHERE id = %s", [said(error), entries[0]])
                return 0
        if len(entries) == 1:
            entries = inbox.divided(connection, entries[0], lines)
        half = len(entries) // 2
        return self._digest(connection, entries[:half]) + self._digest(connection, entries[half:])

    def _unpacked(self, connection: Connection, entries: list[int]) -> tuple[list[int], list[bytes]]:
        """The entries that can be read, and their lines; the others stay, with the reason."""
        good, lines = [], []
        for number, payload in connection.execute(
            "SELECT id, payload FROM inbox WHERE id = ANY(%s) ORDER BY id", [entries]
        ).fetchall():
            try:
                lines += inbox.lines_of(payload)
                good.append(number)
            except zlib.error as error:
                self._say(f"entry {number} of the inbox was set aside: {error}")
                connection.execute("UPDATE inbox SET trouble = %s WHERE id = %s", [str(error), number])
        return good, lines

    def _store(self, connection: Connection, entries: list[int], lines: list[bytes]) -> int:
        read = [recall(line) for line in lines]
        messages = [pgrows.storable(found) for found in read if isinstance(found, Accepted)]
        # What a newer server has taken in and this one cannot read waits for one that can.
        bad = [found for found in read if isinstance(found, Refused)]
        now = self._clock()
        places = {name: table.rows for name, table in self._tables.items()} | {"run": "run"}
        wanted = {(places[table], m.time) for m in messages for table in ("run", m.collector, *self._derived)}
        self._cut.ready(connection, wanted, now)
        if not self._restored:
            # Before the transaction: it may take a while, and the database throws out who idles in one.
            self._counter.restore(Documents(self._past), Reader(self._past))
            self._restored = True
        with self.doubted(), connection.transaction():
            fresh = pgrows.entered(connection, messages)
            derived, jobs = self._counter.count(fresh)
            by_table: dict[str, list[Accepted]] = {}
            for message in fresh:
                by_table.setdefault(message.collector, []).append(message)
            for table, some in by_table.items():
                self._tables[table].copy(connection, pgrows.rows_of(some, self._records[table]))
            for table, rows in derived.items():
                if rows:
                    self._tables[table].copy(connection, rows)
            document.put(connection, jobs)
            pgrows.remember(connection, fresh, now)
            for item in bad:
                inbox.set_aside(connection, item.line, f"{item.path}: {item.reason}")
            connection.execute("DELETE FROM inbox WHERE id = ANY(%s)", [entries])
        for item in bad:
            self._say(f"a message of the inbox was set aside: {item.path}: {item.reason}")
        return len(fresh)
