"""Tokens and invites in a SQLite file of their own, or in the PostgreSQL store; see `ingest.token.Tokens`.

Not in the store's own file: the command line adds and revokes while the server runs, and the server sees it with the
next question. Who may write the file may make tokens; there is no other way to make one.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from jobsight.ingest.token import Invite, Token
from jobsight.settings import DATABASES
from jobsight.store.protocol import StoreError

TABLES = (
    """CREATE TABLE IF NOT EXISTS token (
      id TEXT PRIMARY KEY, digest TEXT NOT NULL UNIQUE, cluster TEXT NOT NULL, node TEXT,
      made DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION, revoked DOUBLE PRECISION, used DOUBLE PRECISION,
      invite TEXT)""",
    """CREATE TABLE IF NOT EXISTS invite (
      id TEXT PRIMARY KEY, digest TEXT NOT NULL UNIQUE, cluster TEXT NOT NULL, node TEXT,
      made DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION, uses INTEGER NOT NULL, lifetime DOUBLE PRECISION,
      spent INTEGER NOT NULL, revoked DOUBLE PRECISION)""",
)
# A file of this number or less is ours; columns are only ever added.
LAYOUT = 1
# How long a question waits for another process's commit.
PATIENCE = 10.0


class Door(Protocol):
    """A way to a database. Values stand for `?`."""

    waits: bool

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...

    def change(self, *statements: tuple[str, Sequence[Any]]) -> int:
        """All or none, in one transaction. One that changes no row ends it, and nothing is done: 0; else the rows
        the last one changed.
        """

    def each(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """The same with every row, in one transaction."""

    def close(self) -> None: ...


class StoredTokens:
    """See `ingest.token.Tokens`."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.waits = door.waits

    def needed(self) -> bool:
        return bool(self._door.query("SELECT 1 FROM token LIMIT 1"))

    def find(self, number: str) -> Token | None:
        return next(iter(self._tokens("WHERE id = ?", [number])), None)

    def find_invite(self, number: str) -> Invite | None:
        return next(iter(self._invites("WHERE id = ?", [number])), None)

    def traded(self, invite: str, digest: str) -> Token | None:
        return next(iter(self._tokens("WHERE invite = ? AND digest = ?", [invite, digest])), None)

    def add(self, token: Token) -> None:
        self._door.change(_insert("token", token))

    def add_invite(self, invite: Invite) -> None:
        self._door.change(_insert("invite", invite))

    def spend(self, token: Token) -> bool:
        used = "UPDATE invite SET spent = spent + 1 WHERE id = ? AND spent < uses AND revoked IS NULL"
        return bool(self._door.change((used, [token.invite]), _insert("token", token)))

    def revoke(self, number: str, now: float) -> bool:
        # The first time stays.
        kept = "SET revoked = coalesce(revoked, ?) WHERE id = ?"
        return any(self._door.change((f"UPDATE {table} {kept}", [now, number])) for table in ("token", "invite"))

    def touch(self, used: Mapping[str, float]) -> None:
        later = "UPDATE token SET used = ? WHERE id = ? AND (used IS NULL OR used < ?)"
        self._door.each(later, [(instant, number, instant) for number, instant in used.items()])

    def tokens(self) -> list[Token]:
        return self._tokens("ORDER BY made, id", [])

    def invites(self) -> list[Invite]:
        return self._invites("ORDER BY made, id", [])

    def close(self) -> None:
        self._door.close()

    def _tokens(self, rest: str, values: Sequence[Any]) -> list[Token]:
        return [
            Token(*row) for row in self._door.query(f"SELECT {', '.join(Token._fields)} FROM token {rest}", values)
        ]

    def _invites(self, rest: str, values: Sequence[Any]) -> list[Invite]:
        rows = self._door.query(f"SELECT {', '.join(Invite._fields)} FROM invite {rest}", values)
        return [Invite(*row) for row in rows]


def _insert(table: str, item: Token | Invite) -> tuple[str, Sequence[Any]]:
    # A secret two have is one that came twice at the same time: the first one counts.
    marks = ", ".join("?" for _ in item)
    return f"INSERT INTO {table} ({', '.join(item._fields)}) VALUES ({marks}) ON CONFLICT DO NOTHING", list(item)


class File:
    """A SQLite file that several processes have open. One connection reads and another writes: a question is never
    kept waiting by a disk that takes its time over somebody's change.
    """

    waits = False

    def __init__(self, path: str, tables: Sequence[str] = TABLES) -> None:
        self._path = path
        self._tables = tables
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        with self._errors():
            _made(path)
            self._writer = _connect(path)
            self._prepare()
            self._reader = _connect(path)

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._reading, self._errors():
            return self._reader.execute(sql, values).fetchall()

    def change(self, *statements: tuple[str, Sequence[Any]]) -> int:
        changed = 0
        with self._writing, self._errors(), self._transaction() as connection:
            for sql, values in statements:
                changed = connection.execute(sql, values).rowcount
                if not changed:
                    connection.execute("ROLLBACK")
                    break
        return changed

    def each(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._writing, self._errors(), self._transaction() as connection:
            connection.executemany(sql, rows)

    def close(self) -> None:
        self._reader.close()
        self._writer.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield self._writer
            if self._writer.in_transaction:
                self._writer.execute("COMMIT")
        finally:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def _prepare(self) -> None:
        # Who reads does not wait for who writes.
        self._writer.execute("PRAGMA journal_mode = WAL")
        self._writer.execute("PRAGMA synchronous = FULL")
        (number,) = self._writer.execute("PRAGMA user_version").fetchone()
        if number > LAYOUT:
            raise StoreError(f"{self._path} was written by a newer jobsight")
        if number < LAYOUT:
            for statement in self._tables:
                self._writer.execute(statement)
            self._writer.execute(f"PRAGMA user_version = {LAYOUT}")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"cannot use {self._path}: {error}") from None


def _connect(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=PATIENCE, check_same_thread=False, isolation_level=None)


def _made(path: str) -> None:
    """The file, for its owner alone. One that root makes belongs to whom the store belongs to: the server must write
    it too.
    """
    with suppress(FileExistsError):
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            if os.geteuid() == 0:
                folder = os.stat(os.path.dirname(path))
                os.fchown(fd, folder.st_uid, folder.st_gid)
        finally:
            os.close(fd)


def open_tokens(place: str) -> StoredTokens:
    """Those of the store in a directory or a database."""
    if place.startswith(DATABASES):
        try:
            from jobsight.store.pgtokens import Database
        except ImportError:
            raise StoreError("the client for PostgreSQL is not installed: pip install 'jobsight[postgres]'") from None
        return StoredTokens(Database(place))
    try:
        os.stat(place)
    except FileNotFoundError:
        raise StoreError(f"there is no store in {place} yet: start `jobsight serve` first") from None
    except OSError as error:
        raise StoreError(f"cannot use {place}: {error.strerror}") from None
    return StoredTokens(File(os.path.join(place, "tokens.sqlite")))
