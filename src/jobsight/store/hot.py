"""The time-series tables: DuckDB, one file, one owning process.

Fresh rows are in the tables of schema `main`. Readers have views of the same names in schema `whole`: those rows and
the ones that `store.cold` has moved to Parquet files.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import duckdb
import msgspec

from jobsight import catalogue
from jobsight.ingest.accept import LARGEST, Accepted
from jobsight.schema.record import fields_of
from jobsight.schema.sqltable import DUCKDB, STAMP, additions, create
from jobsight.schema.units import base
from jobsight.store.protocol import StoreError
from jobsight.store.readers import Readers

NAME = "hot.duckdb"
RUN = """CREATE TABLE IF NOT EXISTS run (
  cluster VARCHAR NOT NULL, node VARCHAR NOT NULL, boot VARCHAR NOT NULL, collector VARCHAR NOT NULL,
  time DOUBLE NOT NULL, uptime DOUBLE, every DOUBLE, status VARCHAR NOT NULL, seconds DOUBLE, error VARCHAR,
  missing VARCHAR, count BIGINT)"""
RUN_COLUMNS = ("cluster", "node", "boot", "collector", "time", "uptime", "every", "status", "seconds", "error",
               "missing", "count")  # fmt: skip
SEGMENT = "CREATE TABLE IF NOT EXISTS segment (number BIGINT NOT NULL)"
# Our own layout's number: a newer one is refused, an older one brought up to date. Since 2 rows may be in files, of
# which a program of layout 1 would know nothing.
LAYOUT = 2
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

    def columns(self) -> dict[str, list[str]]:
        """Every table and what its rows hold."""
        own = {name: [*STAMP, *(field.name for field in fields_of(record))] for name, record in self._tables.items()}
        return {"run": list(RUN_COLUMNS)} | own

    def record(self, table: str) -> type[Any] | None:
        """What a table's rows are; `run` has no record."""
        return self._tables.get(table)

    def loaded(self) -> int:
        """The number of the last segment whose rows are here; 0 if none is."""
        return int(self.query("SELECT coalesce(max(number), 0) FROM segment")[0][0])

    def load(
        self, number: int, messages: Sequence[Accepted], derived: dict[str, list[tuple[Any, ...]]]
    ) -> list[Accepted]:
        """Rows of one segment and what was derived from them; the messages that the tables would not take."""
        try:
            self._load(number, messages, derived)
        except REFUSALS:
            good = [message for message in messages if self._takes(message)]
            self._load(number, good, derived)
            return [message for message in messages if message not in good]
        return []

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
        for collector, lines in by_collector.items():
            # DuckDB reads column-shaped JSON by itself, four times quicker than through rows of Python objects.
            path = os.path.join(self._scratch, f"{collector}.jsonl")
            with open(path, "wb") as scratch:
                scratch.write(b"\n".join(lines))
            source = _source(self._tables[collector], path)
            cursor.execute(_insert_run(source))
            cursor.execute(_insert_rows(collector, self._tables[collector], source))
            os.unlink(path)

    def _insert(self, cursor: duckdb.DuckDBPyConnection, table: str, rows: list[tuple[Any, ...]]) -> None:
        path = os.path.join(self._scratch, f"{table}.json")
        with open(path, "wb") as scratch:
            scratch.write(msgspec.json.encode({"rows": list(zip(*rows, strict=True))}))
        names = ["cluster", "node", "boot", "time", *(f.name for f in fields_of(self._tables[table]))]
        kinds = ["VARCHAR"] * 3 + ["DOUBLE", *(DUCKDB[base(f.unit)] for f in fields_of(self._tables[table]))]
        picked = ", ".join(f"unnest(CAST(rows[{i}] AS {kind}[]))" for i, kind in enumerate(kinds, 1))
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {picked} FROM read_json('{quoted(path)}', "
            f"columns = {{rows: 'JSON[]'}}, maximum_object_size = 1073741824)"
        )
        os.unlink(path)


def _source(record: type[Any], path: str) -> str:
    """The scratch file as a table function, its types those of the record."""
    rows = ", ".join(f"{f.name} {DUCKDB[base(f.unit)]}[]" for f in fields_of(record))
    names = ("cluster", "node", "boot", "collector", "time", "status", "error")
    fixed = ", ".join(f"{name}: 'VARCHAR'" for name in names)
    return (
        f"read_json('{quoted(path)}', format = 'newline_delimited', maximum_object_size = {2 * LARGEST}, columns = "
        f"{{{fixed}, uptime: 'DOUBLE', every: 'DOUBLE', seconds: 'DOUBLE', missing: 'JSON', "
        f"rows: 'STRUCT({rows})'}})"
    )


def quoted(path: str) -> str:
    """Between apostrophes in SQL."""
    return path.replace("'", "''")


# Microseconds over a million: the same double that Python makes of the same text, so identities compare equal.
TIME = "epoch_us(time::TIMESTAMPTZ) / 1e6"


def _insert_run(source: str) -> str:
    return (
        "INSERT INTO run (cluster, node, boot, collector, time, uptime, every, status, seconds, error, missing) "
        f"SELECT cluster, node, boot, collector, {TIME}, uptime, every, status, seconds, error, missing FROM {source}"
    )


def _insert_rows(table: str, record: type[Any], source: str) -> str:
    names = [f.name for f in fields_of(record)]
    return (
        f"INSERT INTO {table} (cluster, node, boot, time, {', '.join(names)}) "
        f"SELECT cluster, node, boot, {TIME}, {', '.join(f'unnest(rows.{name})' for name in names)} FROM {source}"
    )
