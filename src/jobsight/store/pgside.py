"""The PostgreSQL store as a copy sees it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from jobsight.store import document, pgrows
from jobsight.store.counter import Entry
from jobsight.store.pgamendment import FORGOTTEN
from jobsight.store.pool import connect, place, said
from jobsight.store.postgres import Postgres
from jobsight.store.protocol import StoreError
from jobsight.store.side import BATCH, DAY, Figures, Kinds, Mark, Piece, Row

COPIED = """CREATE TABLE IF NOT EXISTS copied (
  source text NOT NULL, name text NOT NULL, day bigint NOT NULL, figures text NOT NULL, PRIMARY KEY (name, day))"""
JOBS = 1000


@contextmanager
def opened(store: Postgres, url: str, kinds: dict[str, Kinds], now: float) -> Iterator["PgSide"]:
    """Whatever the database says against it is a StoreError."""
    try:
        yield PgSide(store, url, kinds, now)
    except psycopg.Error as error:
        raise StoreError(f"the {place(url)}: {said(error)}; run again to go on") from None


class PgSide:
    """See `store.side.Side`. While it is open it holds the lock of the server that digests: others take messages into
    the inbox, where they wait.
    """

    def __init__(self, store: Postgres, url: str, kinds: dict[str, Kinds], now: float) -> None:
        self.store = store
        self.place = f"the {place(url)}"
        self._url = url
        self._kinds = kinds
        self._now = now
        # What was acknowledged and is not digested yet belongs to it, too.
        store.digest()
        held = store.held()
        if held is None:
            raise StoreError(f"a server digests into {self.place}: stop it first")
        self._connection = held
        if store.query("SELECT count(*) FROM inbox WHERE trouble IS NULL") != [(0,)]:
            raise StoreError(f"messages wait in the inbox of {self.place} and could not be digested")
        self._connection.execute(COPIED)

    def site(self) -> str:
        return str(self.store.query("SELECT namespace FROM site")[0][0])

    def read(self, table: str, day: int) -> Iterator[list[Row]]:
        columns = ", ".join(self._kinds[table])
        # On a connection of its own, with a cursor there: the client would otherwise fetch everything at once.
        with connect(self._url) as connection, connection.transaction(), connection.cursor(name="copy") as cursor:
            cursor.execute(
                f"SELECT {columns} FROM {table} WHERE time >= %s AND time < %s", [day * DAY, (day + 1) * DAY]
            )
            while rows := cursor.fetchmany(BATCH):
                yield rows

    def replace(self, table: str, day: int, rows: Iterator[list[Row]], mark: Mark) -> int:
        own = self.store.tables.get(table)
        name = own.rows if own else table
        self.store.cut.ready(self._connection, [(name, float(day * DAY))], self._now)
        stored = (pgrows.without(row) for some in rows for row in some)
        with self.store.digestion.doubted(), self._connection.transaction():
            self._connection.execute(
                f"DELETE FROM {name} WHERE time >= %s AND time < %s", [day * DAY, (day + 1) * DAY]
            )
            number = own.copy(self._connection, stored) if own else self._copy_runs(stored)
            self._connection.execute("DELETE FROM copied WHERE name = %s AND day = %s", [table, day])
            self._connection.execute(
                "INSERT INTO copied VALUES (%s, %s, %s, %s)", [mark.source, table, day, json.dumps(mark.figures)]
            )
        return number

    def _copy_runs(self, rows: Iterator[Row]) -> int:
        number = 0
        statement = f"COPY run ({', '.join(pgrows.RUN)}) FROM STDIN (FORMAT BINARY)"
        with self._connection.cursor() as cursor, cursor.copy(statement) as target:
            target.set_types(list(pgrows.RUN.values()))
            for row in rows:
                target.write_row(row)
                number += 1
        return number

    def marks(self) -> dict[Piece, Mark]:
        rows = self._connection.execute("SELECT source, name, day, figures FROM copied").fetchall()
        return {(name, day): Mark(source, tuple(json.loads(figures))) for source, name, day, figures in rows}

    def jobs(self) -> Iterator[list[Entry]]:
        last = ""
        asked = f"""SELECT {", ".join(Entry._fields)} FROM job WHERE key COLLATE "C" > %s
            ORDER BY key COLLATE "C" LIMIT %s"""
        while rows := [Entry(*row) for row in self._connection.execute(asked, [last, JOBS])]:
            yield rows
            last = rows[-1].key

    def put(self, jobs: list[Entry]) -> None:
        with self._connection.transaction():
            document.put(self._connection, [Entry(*pgrows.without(tuple(job))) for job in jobs])

    def weighed(self) -> Figures:
        return self.store.query("SELECT count(*), sum(length(document)) FROM job")[0]

    def finish(self, horizons: dict[str, float]) -> None:
        with self._connection.transaction():
            for horizon in horizons.items():
                self._connection.execute(FORGOTTEN, horizon)
            # What each node said last follows from its runs.
            pgrows.remember_again(self._connection, self._now)
