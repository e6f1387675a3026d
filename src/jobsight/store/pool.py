"""Connections to PostgreSQL: one where something is kept on it, a few that readers share."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.adapt import Buffer, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from jobsight.store.protocol import StoreError

Connection = psycopg.Connection[tuple[Any, ...]]
# Many readers take turns: PostgreSQL's connections are processes, and its default is a hundred for everybody.
SIZE = 8
FORM = "expected an address such as postgresql://USER@HOST/DATABASE"


class _Number(Loader):
    """A sum of whole numbers is `numeric` here. We want what we put in: whole numbers whole, others as they are."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


def connect(url: str) -> Connection:
    """A connection on which every statement commits by itself unless a transaction was begun."""
    # A server that vanished without a word must not hold us for hours.
    kept = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "connect_timeout": 10}
    try:
        alive = make_conninfo(url, **kept)
    except psycopg.ProgrammingError:
        # Not what the library says: it repeats the place that is wrong, which may be in the password.
        raise psycopg.ProgrammingError(f"{FORM}; % in a password is written %25, @ %40, / %2F") from None
    connection = psycopg.connect(alive, autocommit=True, client_encoding="utf-8", application_name="jobsight")
    connection.adapters.register_loader("numeric", _Number)
    return connection


def place(url: str) -> str:
    """The database in words, without the password."""
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "database"
    return f"database {given.get('dbname') or 'of its user'} on {given.get('host') or 'this machine'}"


class Pool:
    """Connections for reading. A server that was restarted is noticed and asked again."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._turn = threading.BoundedSemaphore(SIZE)
        self._idle: list[Connection] = []
        self._closed = False

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """What a SELECT in PostgreSQL's words yields."""
        with self._turn:
            while True:
                connection, known = self._taken()
                try:
                    rows = connection.execute(sql, values).fetchall()
                except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                    broken = connection.broken or connection.closed
                    connection.close()
                    # One that had waited may have been cut off long ago; a fresh one tells the truth.
                    if known and broken:
                        continue
                    raise StoreError(f"the {place(self._url)} does not answer: {said(error)}") from None
                except BaseException:
                    connection.close()
                    raise
                self._back(connection)
                return rows

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _taken(self) -> tuple[Connection, bool]:
        """A connection, and whether it has been used before."""
        try:
            return self._idle.pop(), True
        except IndexError:
            return self._fresh(), False

    def _fresh(self) -> Connection:
        try:
            connection = connect(self._url)
            # Whatever a page asks, it can only read.
            connection.execute("SET default_transaction_read_only = on")
        except psycopg.Error as error:
            raise StoreError(f"cannot reach the {place(self._url)}: {said(error)}") from None
        return connection

    def _back(self, connection: Connection) -> None:
        if self._closed:
            with suppress(psycopg.Error):
                connection.close()
        else:
            self._idle.append(connection)


def said(error: Exception) -> str:
    """The first line of what the server says."""
    return (str(error).splitlines() or [type(error).__name__])[0]
