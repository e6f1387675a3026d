"""The embedded store as a copy sees it."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import duckdb
import msgspec

from jobsight.schema.sqltable import DUCKDB
from jobsight.store.counter import Entry
from jobsight.store.embedded import Embedded
from jobsight.store.hot import quoted
from jobsight.store.protocol import StoreError
from jobsight.store.side import BATCH, DAY, Figures, Kinds, Mark, Piece, Row

COPIED = "CREATE TABLE IF NOT EXISTS copied (source VARCHAR, name VARCHAR, day BIGINT, figures VARCHAR)"
# Rows put into the tables after which those of days that are over are moved to files.
MANY = 5_000_000
# Jobs read at a time: their documents are some kilobytes each.
JOBS = 1000


@contextmanager
def opened(store: Embedded, path: str, kinds: dict[str, Kinds], now: float) -> Iterator["EmbeddedSide"]:
    """Whatever engines and disk say against it is a StoreError."""
    try:
        yield EmbeddedSide(store, path, kinds, now)
    except (duckdb.Error, sqlite3.Error, OSError) as error:
        raise StoreError(f"{path}: {str(error).splitlines()[0]}; run again to go on") from None


class EmbeddedSide:
    """See `store.side.Side`."""

    def __init__(self, store: Embedded, path: str, kinds: dict[str, Kinds], now: float) -> None:
        self.store = store
        self.place = path
        self._path = path
        self._kinds = kinds
        self._now = now
        self._waiting = 0
        # What was acknowledged and is not loaded yet belongs to it, too.
        store.digest()
        with store.hot.transaction() as cursor:
            cursor.execute(COPIED)

    def site(self) -> str:
        return str(self.store.small.namespace())

    def read(self, table: str, day: int) -> Iterator[list[Row]]:
        hot = self.store.hot
        with hot.readers.reading(), hot.transaction() as cursor:
            cursor.execute("SET search_path = 'whole,main'")
            span = f"time >= {day * DAY} AND time < {(day + 1) * DAY}"
            cursor.execute(f"SELECT {', '.join(self._kinds[table])} FROM {table} WHERE {span}")
            while rows := cursor.fetchmany(BATCH):
                yield rows

    def replace(self, table: str, day: int, rows: Iterator[list[Row]], mark: Mark) -> int:
        number = 0
        # In a transaction of its own: broken off between the two, the day is copied the next time.
        self.store.cold.clear_day(table, day * DAY)
        with self.store.hot.transaction() as cursor:
            for some in rows:
                self._insert(cursor, table, some)
                number += len(some)
            cursor.execute("DELETE FROM copied WHERE name = ? AND day = ?", [table, day])
            cursor.execute(
                "INSERT INTO copied VALUES (?, ?, ?, ?)", [mark.source, table, day, json.dumps(mark.figures)]
            )
        self._waiting += number
        if self._waiting >= MANY:
            self._move()
        return number

    def _insert(self, cursor: duckdb.DuckDBPyConnection, table: str, rows: list[Row]) -> None:
        """Through a file: the engine reads columns in JSON many times quicker than it takes rows from Python."""
        path = os.path.join(self._path, "load", f"copy-{table}.json")
        kinds = self._kinds[table]
        with open(path, "wb") as scratch:
            scratch.write(msgspec.json.encode(dict(zip(kinds, zip(*rows, strict=True), strict=True))))
        columns = ", ".join(f"{name}: '{DUCKDB[kind]}[]'" for name, kind in kinds.items())
        cursor.execute(
            f"INSERT INTO main.{table} ({', '.join(kinds)}) SELECT {', '.join(f'unnest({name})' for name in kinds)} "
            f"FROM read_json('{quoted(path)}', columns = {{{columns}}}, maximum_object_size = 1073741824)"
        )
        os.unlink(path)

    def marks(self) -> dict[Piece, Mark]:
        rows = self.store.hot.query("SELECT source, name, day, figures FROM copied")
        return {(name, day): Mark(source, tuple(json.loads(figures))) for source, name, day, figures in rows}

    def jobs(self) -> Iterator[list[Entry]]:
        asked = f"SELECT {', '.join(Entry._fields)} FROM job WHERE key > ? ORDER BY key LIMIT ?"
        with closing(sqlite3.connect(os.path.join(self._path, "small.sqlite"))) as connection:
            last = ""
            while rows := [Entry(*row) for row in connection.execute(asked, [last, JOBS])]:
                yield [entry._replace(alive=bool(entry.alive), waits=bool(entry.waits)) for entry in rows]
                last = rows[-1].key

    def put(self, jobs: list[Entry]) -> None:
        self.store.small.put(jobs, [])

    def weighed(self) -> Figures:
        with closing(sqlite3.connect(os.path.join(self._path, "small.sqlite"))) as connection:
            found: Figures = connection.execute("SELECT count(*), sum(length(document)) FROM job").fetchone()
            return found

    def finish(self, horizons: dict[str, float]) -> None:
        for table, time in horizons.items():
            self.store.cold.forgot(table, time)
        self._move()

    def _move(self) -> None:
        """Days that are over go to files."""
        self.store.cold.compact(self._now, least=1)
        self._waiting = 0
