"""The time-series tables: DuckDB, one file, one owning process.

Fresh rows are in the tables of schema `main`. Readers have views of the same names in schema `whole`: those rows and
the ones that `store.cold` has moved to Parquet files.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import duckdb
import msgspec

from jobsight import catalogue
from jobsight.ingest.accept import Accepted
from jobsight.schema.record import fields_of
from jobsight.schema.sqltable import DUCKDB, STAMP, additions, create
from jobsight.schema.units import base
from jobsight.store.protocol import StoreError
from jobsight.store.readers import Readers

NAME = "hot.duckdb"
RUN_TYPES = {
    "cluster": "VARCHAR", "node": "VARCHAR", "boot": "VARCHAR", "collector": "VARCHAR", "time": "DOUBLE",
    "uptime": "DOUBLE", "every": "DOUBLE", "status": "VARCHAR", "seconds": "DOUBLE", "error": "VARCHAR",
    "missing": "VARCHAR", "count": "BIGINT",
}  # fmt: skip
NEEDED = ("cluster", "node", "boot", "collector", "time", "status")
RUN = f"""CREATE TABLE IF NOT EXISTS run ({
    ", ".join(f"{name} {kind}{' NOT NULL' if name in NEEDED else ''}" for name, kind in RUN_TYPES.items())
})"""
SEGMENT = "CREATE TABLE IF NOT EXISTS segment (number BIGINT NOT NULL)"
# Our own layout's number: a newer one is refused, an older one brought up to date. Since 2 rows may be in files, of
# which a program of layout 1 would know nothing.
LAYOUT = 2
# Read again in a second or two by a start after a crash.
CHECKPOINT = "128MiB"
# What the tables say to a value they will not have. Anything else is the disk's or the engine's trouble.
REFUSALS = (
    duckdb.ConversionException,
    duckdb.ConstraintException,
    duckdb.InvalidInputException,
    duckdb.ParserException,
)


class Hot:
    """One DuckDB file. Each call has a cursor of its own: readers and the loader do not wait for each other."""

    def __init__(self, path: str, derived: dict[str, type[Any]]) -> None:
        self._scratch = os.path.join(path, "load")
        os.makedirs(self._scratch, exist_ok=True)
        self._tables = {found.name: found.record for found in catalogue.collectors()} | derived
        self.path = os.path.join(path, NAME)
        self.readers = Readers()
        try:
            self._connection = duckdb.connect(self.path)
        except duckdb.IOException as error:
            raise StoreError(f"{path}: {str(error).splitlines()[0]}") from None
        self._prepare(path)

    def _prepare(self, path: str) -> None:
        run = self._connection.execute
        run("CREATE TABLE IF NOT EXISTS layout (number INTEGER)")
        found = run("SELECT max(number) FROM layout").fetchone()
        number = found[0] if found else None
        if number is not None and number > LAYOUT:
            raise StoreError(f"{path} was written by a newer jobsight (layout {number}, this one knows {LAYOUT})")
        if number != LAYOUT:
            run("DELETE FROM layout")
            run("INSERT INTO layout VALUES (?)", [LAYOUT])
        run("CREATE SCHEMA IF NOT EXISTS whole")
        run(RUN)
        run(SEGMENT)
        for name, record in self._tables.items():
            run(create(name, record))
            present = {row[1] for row in run(f"PRAGMA table_info('{name}')").fetchall()}
            for statement in additions(name, record, present):
                run(statement)
        # With no file read again and again for what stands at its end.
        run("SET GLOBAL parquet_metadata_cache = true")
        # Each time the last rows of every table are packed anew; until then they are in the engine's own log.
        run(f"SET GLOBAL checkpoint_threshold = '{CHECKPOINT}'")

    def columns(self) -> dict[str, list[str]]:
        """Every table and what its rows hold."""
        own = {name: [*STAMP, *(field.name for field in fields_of(record))] for name, record in self._tables.items()}
        return {"run": list(RUN_TYPES)} | own

    def record(self, table: str) -> type[Any] | None:
        """What a table's rows are; `run` has no record."""
        return self._tables.get(table)

    def loaded(self) -> int:
        """The number of the last segment whose rows are here; 0 if none is."""
        return int(self.query("SELECT coalesce(max(number), 0) FROM segment")[0][0])

    def load(
        self,
        number: int,
        messages: Sequence[Accepted],
        derived: dict[str, list[tuple[Any, ...]]],
        refuse: Callable[[list[Accepted]], None],
    ) -> None:
        """Rows of one segment and what was derived from them. `refuse` gets the messages that the tables would not
        take, before the rest is committed: then the segment is done with.
        """
        try:
            self._load(number, messages, derived)
        except REFUSALS:
            good = [message for message in messages if self._takes(message)]
            refuse([message for message in messages if message not in good])
            self._load(number, good, derived)

    def _takes(self, message: Accepted) -> bool:
        """Whether a message loads by itself."""
        with self._connection.cursor() as cursor:
            cursor.execute("BEGIN")
            try:
                self._load_messages(cursor, [message])
            except REFUSALS:
                return False
            finally:
                with suppress(duckdb.Error):
                    cursor.execute("ROLLBACK")
            return True

    def _load(self, number: int, messages: Sequence[Accepted], derived: dict[str, list[tuple[Any, ...]]]) -> None:
        with self.transaction() as cursor:
            self._load_messages(cursor, messages)
            for table, rows in derived.items():
                if rows:
                    self._insert(cursor, table, rows)
            cursor.execute("DELETE FROM segment")
            cursor.execute("INSERT INTO segment VALUES (?)", [number])

    def query(self, sql: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """What SQL answers over fresh and moved rows alike."""
        with self.readers.reading(), self._connection.cursor() as cursor:
            cursor.execute("SET search_path = 'whole,main'")
            return cursor.execute(sql, list(values)).fetchall()

    def heads(self, collector: str) -> list[tuple[Any, ...]]:
        """See `store.counter.Rows`."""
        return self.query(
            "SELECT cluster, node, boot, arg_max(time, uptime), max(uptime), arg_max(every, uptime) FROM run "
            "WHERE collector = ? AND status = 'ok' GROUP BY cluster, node, boot",
            [collector],
        )

    @contextmanager
    def transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor on the tables themselves; all of what is done with it holds, or none."""
        cursor = self._connection.cursor()
        cursor.execute("BEGIN")
        try:
            yield cursor
            cursor.execute("COMMIT")
        except BaseException:
            # A commit that failed has rolled back already, and says so.
            with suppress(duckdb.Error):
                cursor.execute("ROLLBACK")
            raise
        finally:
            cursor.close()

    def close(self) -> None:
        self._connection.close()

    def _load_messages(self, cursor: duckdb.DuckDBPyConnection, messages: Sequence[Accepted]) -> None:
        by_collector: dict[str, list[bytes]] = {}
        for message in messages:
            by_collector.setdefault(message.collector, []).append(message.line)
        if messages:
            self._insert_columns(cursor, "run", RUN_TYPES, [_run(message) for message in messages])
        for collector, lines in by_collector.items():
            # DuckDB reads column-shaped JSON by itself, four times quicker than through rows of Python objects.
            path = os.path.join(self._scratch, f"{collector}.jsonl")
            with open(path, "wb") as scratch:
                scratch.write(b"\n".join(lines))
            cursor.execute(_insert_rows(collector, self._tables[collector], path, max(map(len, lines))))
            os.unlink(path)

    def insert(self, cursor: duckdb.DuckDBPyConnection, table: str, rows: list[tuple[Any, ...]]) -> None:
        """Rows of a derived table, in a transaction of the caller's, who keeps the loader from its own."""
        self._insert(cursor, table, rows)

    def _insert(self, cursor: duckdb.DuckDBPyConnection, table: str, rows: list[tuple[Any, ...]]) -> None:
        types = {name: DUCKDB[kind] for name, kind in STAMP.items()}
        types |= {field.name: DUCKDB[base(field.unit)] for field in fields_of(self._tables[table])}
        self._insert_columns(cursor, table, types, rows)

    def _insert_columns(
        self, cursor: duckdb.DuckDBPyConnection, table: str, types: dict[str, str], rows: list[tuple[Any, ...]]
    ) -> None:
        path = os.path.join(self._scratch, f"{table}.json")
        text = msgspec.json.encode(dict(zip(types, zip(*rows, strict=True), strict=True)))
        with open(path, "wb") as scratch:
            scratch.write(text)
        columns = ", ".join(f"{name}: '{kind}[]'" for name, kind in types.items())
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(types)}) SELECT {', '.join(f'unnest({name})' for name in types)} FROM "
            f"read_json('{quoted(path)}', columns = {{{columns}}}, maximum_object_size = {_room(len(text))})"
        )
        os.unlink(path)


def _run(message: Accepted) -> tuple[Any, ...]:
    return (
        *message.identity, message.uptime, message.every, message.status.value, message.seconds, message.error,
        msgspec.json.encode(message.missing).decode(), message.count,
    )  # fmt: skip


def _room(longest: int) -> int:
    """What the engine holds ready for one object: a few times of it, so not more than there is."""
    return max(2**20, 2 * longest)


def _source(record: type[Any], path: str, longest: int) -> str:
    """The scratch file as a table function, its types those of the record."""
    rows = ", ".join(f"{f.name} {DUCKDB[base(f.unit)]}[]" for f in fields_of(record))
    fixed = ", ".join(f"{name}: 'VARCHAR'" for name in STAMP)
    return (
        f"read_json('{quoted(path)}', format = 'newline_delimited', maximum_object_size = {_room(longest)}, "
        f"columns = {{{fixed}, rows: 'STRUCT({rows})'}})"
    )


def quoted(path: str) -> str:
    """Between apostrophes in SQL."""
    return path.replace("'", "''")


# Microseconds over a million: the same double that Python makes of the same text, so identities compare equal.
TIME = "epoch_us(time::TIMESTAMPTZ) / 1e6"


def _insert_rows(table: str, record: type[Any], path: str, longest: int) -> str:
    names = [f.name for f in fields_of(record)]
    return (
        f"INSERT INTO {table} (cluster, node, boot, time, {', '.join(names)}) SELECT cluster, node, boot, {TIME}, "
        f"{', '.join(f'unnest(rows.{name})' for name in names)} FROM {_source(record, path, longest)}"
    )
