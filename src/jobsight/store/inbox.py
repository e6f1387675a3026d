"""Messages as they came, in a table of their own: acknowledged when they are committed there, digested later.

Many requests share one commit. A commit whose answer is lost may be made again; the same message twice is one.
"""

import errno
import queue
import threading
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import Future

import psycopg

from jobsight.formats.number import volume
from jobsight.ingest.limit import BusyError
from jobsight.store.pool import Connection, connect, said
from jobsight.store.protocol import MOST_WAITING

# Level 1: the payload is read once more and then gone.
LEVEL = 1
# The most that one commit takes (payloads).
GROUP = 200

TABLE = """CREATE TABLE IF NOT EXISTS inbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload bytea NOT NULL, trouble text)"""
# What waits, set aside entries apart. Their lengths are known without reading them.
WAITING = "SELECT coalesce(sum(length(payload)), 0)::bigint FROM inbox WHERE trouble IS NULL"
# The table's size on disk is known at once, and no less than what waits in it: then nobody need add up.
FULL = f"SELECT pg_total_relation_size('inbox') >= %(most)s AND ({WAITING}) >= %(most)s"
# How often that is asked at most (seconds).
ASK = 1.0
# It is packed already; the server need not try.
STORAGE = "ALTER TABLE inbox ALTER COLUMN payload SET STORAGE EXTERNAL"


def packed(lines: Sequence[bytes]) -> bytes:
    return zlib.compress(b"\n".join(lines), LEVEL)


def lines_of(payload: bytes) -> list[bytes]:
    return zlib.decompress(payload).split(b"\n")


def enter(connection: Connection, payloads: Sequence[bytes]) -> None:
    """Add payloads, in the transaction that is open."""
    with connection.cursor() as cursor, cursor.copy("COPY inbox (payload) FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["bytea"])
        for payload in payloads:
            copy.write_row((payload,))


def divided(connection: Connection, entry: int, lines: Sequence[bytes]) -> list[int]:
    """Make an entry of each line of one; their numbers."""
    with connection.transaction():
        rows = connection.execute(
            "INSERT INTO inbox (payload) SELECT * FROM unnest(%s::bytea[]) RETURNING id",
            [[packed([x]) for x in lines]],
        ).fetchall()
        connection.execute("DELETE FROM inbox WHERE id = %s", [entry])
    return [number for (number,) in rows]


def set_aside(connection: Connection, line: bytes, trouble: str) -> None:
    """Keep a message that cannot be digested, as an entry of its own, in the transaction that is open."""
    written = trouble.replace("\0", "\ufffd")
    connection.execute("INSERT INTO inbox (payload, trouble) VALUES (%s, %s)", [packed([line]), written])


class Inbox:
    """Thread-safe; one thread writes, on a connection of its own."""

    def __init__(self, url: str, most: int = MOST_WAITING) -> None:
        """With `most` bytes waiting, whoever brought them, no more is taken."""
        self._url = url
        self._most = most
        self._full = False
        self._due = 0.0
        self._connection: Connection | None = None
        self._waiting: queue.Queue[tuple[bytes, Future[None]] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._write, name="inbox", daemon=True)
        self._thread.start()

    def append(self, lines: Sequence[bytes]) -> "Future[None]":
        """Done when the lines are committed; BusyError if too much waits."""
        done: Future[None] = Future()
        self._waiting.put((packed(lines), done))
        return done

    def close(self) -> None:
        self._waiting.put(None)
        self._thread.join()
        self._drop()

    def _write(self) -> None:
        last = False
        while not last and (first := self._waiting.get()) is not None:
            # What came in while the last commit ran goes with this one: under load groups grow by themselves.
            group = [first]
            while len(group) < GROUP and not self._waiting.empty():
                item = self._waiting.get()
                if item is None:
                    last = True
                    break
                group.append(item)
            self._commit(group)

    def _commit(self, group: "list[tuple[bytes, Future[None]]]") -> None:
        # A request that was broken off waits no more; what it brought is written all the same.
        waiting = [done for _, done in group if done.set_running_or_notify_cancel()]
        try:
            self._insert([payload for payload, _ in group])
        except BusyError as error:
            for done in waiting:
                done.set_exception(error)
            return
        except (psycopg.Error, OSError) as error:
            self._drop()
            for done in waiting:
                done.set_exception(OSError(errno.EIO, f"the database has not taken it: {said(error)}"))
            return
        for done in waiting:
            done.set_result(None)

    def _insert(self, payloads: list[bytes]) -> None:
        if self._connection is not None:
            try:
                self._insert_with(self._connection, payloads)
            except (psycopg.OperationalError, psycopg.InterfaceError):
                # The server may have been restarted since; a fresh connection tells.
                self._drop()
            else:
                return
        self._connection = connect(self._url)
        # Acknowledged is on disk, whatever the database's default is.
        self._connection.execute(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
        self._insert_with(self._connection, payloads)

    def _insert_with(self, connection: Connection, payloads: list[bytes]) -> None:
        if (now := time.monotonic()) >= self._due:
            found = connection.execute(FULL, {"most": self._most}).fetchone()
            self._full, self._due = bool(found and found[0]), now + ASK
        if self._full:
            raise BusyError(f"{volume(self._most)} wait to be digested: as much as may")
        with connection.transaction():
            enter(connection, payloads)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
