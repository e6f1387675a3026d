"""Tokens and invites in the PostgreSQL store: any number of servers know the same. See `store.tokens.Door`."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg

from jobsight.store.pool import Connection, connect, place, said
from jobsight.store.protocol import StoreError
from jobsight.store.tokens import TABLES

T = TypeVar("T")


class Database:
    """One connection, a lock around it: every question is short. A server that was restarted is asked again."""

    waits = True

    def __init__(self, url: str, tables: Sequence[str] = TABLES, needed: Sequence[str] = ("token", "invite")) -> None:
        """`needed`: what these statements make."""
        self._url = url
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        # Where they are there nothing is written: who only reads may have no right to.
        there = " AND ".join(f"to_regclass('{name}') IS NOT NULL" for name in needed)
        if self.query(f"SELECT {there}") == [(False,)]:
            self._with(lambda connection: _create(connection, tables))

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        text = sql.replace("?", "%s")
        return self._with(lambda connection: connection.execute(text, values).fetchall())

    def change(self, *statements: tuple[str, Sequence[Any]]) -> int:
        return self._with(lambda connection: _changed(connection, statements))

    def each(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._with(lambda connection: _each(connection, sql.replace("?", "%s"), rows))

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _with(self, act: Callable[[Connection], T]) -> T:
        with self._lock:
            known = self._connection is not None
            try:
                return self._tried(act)
            except psycopg.Error as error:
                lost = self._connection is None
                # One that had waited may have been cut off long ago; a fresh one tells the truth. What was under way
                # is not done twice: a key that is spent twice by the same secret is spent once.
                if not (known and lost):
                    raise StoreError(f"the {place(self._url)} does not do it: {said(error)}") from None
            try:
                return self._tried(act)
            except psycopg.Error as error:
                raise StoreError(f"the {place(self._url)} does not answer: {said(error)}") from None

    def _tried(self, act: Callable[[Connection], T]) -> T:
        if self._connection is None:
            self._connection = connect(self._url)
        try:
            return act(self._connection)
        except BaseException:
            if self._connection.broken or self._connection.closed:
                self._connection.close()
                self._connection = None
            raise


def _create(connection: Connection, tables: Sequence[str]) -> None:
    with connection.transaction():
        # Two servers that start at once: the second finds them made.
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('token'), hashtext(current_schema()))")
        for statement in tables:
            connection.execute(statement)


def _each(connection: Connection, sql: str, rows: Sequence[Sequence[Any]]) -> None:
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(sql, rows)


def _changed(connection: Connection, statements: Sequence[tuple[str, Sequence[Any]]]) -> int:
    changed = 0
    with connection.transaction():
        for sql, values in statements:
            changed = connection.execute(sql.replace("?", "%s"), values).rowcount
            if not changed:
                raise psycopg.Rollback
    return changed
