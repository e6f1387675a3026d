"""Rows that are over: Parquet files, sorted so that one job's rows lie together.

A file is written beside its name, synced and renamed; then one DuckDB transaction takes its rows out of the table,
enters it in the catalogue and puts it into the view that readers have. Before that commit the file does not count,
after it the rows in the table do not: nothing is there twice or missing at any moment, and a crash leaves at most a
file that no catalogue names. The catalogue is in the database of the tables, not beside it, for that one commit.
"""

import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import duckdb

from jobsight.schema.record import fields_of
from jobsight.store.hot import NAME, Hot, quoted
from jobsight.store.plan import HOUR, LEAST, Move, Piece, moves, name
from jobsight.store.protocol import StoreError

CATALOGUE = """CREATE TABLE IF NOT EXISTS cold.file (
  name VARCHAR NOT NULL, source VARCHAR NOT NULL, level VARCHAR NOT NULL, start DOUBLE NOT NULL,
  oldest DOUBLE NOT NULL, newest DOUBLE NOT NULL, rows BIGINT NOT NULL, size BIGINT NOT NULL, made DOUBLE NOT NULL,
  fields VARCHAR NOT NULL)"""
SUFFIX = ".parquet"
UNFINISHED = ".new"
# What names a job, most telling first: a table that has one of these is sorted by it before anything else.
JOB = ("job_key", "scheduler", "job")
FORM = "FORMAT parquet, COMPRESSION zstd"


class Cold:
    """The files of one store and their catalogue."""

    def __init__(self, path: str, hot: Hot) -> None:
        self._path = os.path.join(path, "cold")
        self._hot = hot
        self._moving = threading.Lock()
        present = set(_present(self._path))
        with hot.transaction() as cursor:
            cursor.execute("CREATE SCHEMA IF NOT EXISTS cold")
            cursor.execute(CATALOGUE)
            for piece in _pieces(cursor):
                if piece.name not in present:
                    print(f"jobsight: {piece.name} is gone, and {piece.rows} rows with it", file=sys.stderr)
                    cursor.execute("DELETE FROM cold.file WHERE name = ?", [piece.name])
            for table in hot.columns():
                self._show(cursor, table)
            known = {piece.name for piece in _pieces(cursor)}
        for file in present - known:
            os.unlink(os.path.join(self._path, file))

    def pieces(self) -> list[Piece]:
        """The catalogue."""
        with self._hot.transaction() as cursor:
            return _pieces(cursor)

    def query(self, sql: str, values: Iterable[Any], between: tuple[float, float]) -> list[tuple[Any, ...]]:
        """What SQL answers that asks for no row outside of a time: files that have none of it are not opened. Their
        number grows with every day, and one job's page must not.
        """
        with self._hot.readers.reading(), self._hot.transaction() as cursor:
            pieces = [piece for piece in _pieces(cursor) if _meets(piece, between)]
            for table in self._hot.columns():
                # One too many, for a column of the same name, costs a little time; one too few there cannot be.
                if re.search(rf"\b{table}\b", sql):
                    view = self._view(table, [piece for piece in pieces if piece.source == table])
                    cursor.execute(f"CREATE TEMP VIEW {table} AS {view}")
            return cursor.execute(sql, list(values)).fetchall()

    def compact(self, now: float, least: int = LEAST) -> int:
        """Move what is due; how many rows went to files. Nobody waits for this: neither readers nor the loader."""
        with self._moving:
            moved = 0
            for table in self._hot.columns():
                for move in moves(table, self._hours(table), self._of(table), now, least):
                    moved += self._move(move, now)
            return moved

    def forget(self, table: str, before: float) -> int:
        """Drop files whose rows are all older than `before`, and such rows of the table; how many rows went."""
        with self._moving:
            old = [piece for piece in self._of(table) if piece.newest < before]
            with self._hot.transaction() as cursor:
                deleted = cursor.execute(f"DELETE FROM main.{table} WHERE time < ?", [before]).fetchone()
                if old:
                    self._drop(cursor, old)
                    self._show(cursor, table)
            self._hot.readers.unlink(self._paths(old))
            return sum(piece.rows for piece in old) + int(deleted[0] if deleted else 0)

    def close(self) -> None:
        """Wait for what is under way."""
        with self._moving:
            pass

    def _of(self, table: str) -> list[Piece]:
        return [piece for piece in self.pieces() if piece.source == table]

    def _hours(self, table: str) -> dict[float, int]:
        asked = f"SELECT floor(time / {HOUR}) * {HOUR}, count(*) FROM main.{table} GROUP BY 1"
        return dict(self._hot.query(asked))

    def _move(self, move: Move, now: float) -> int:
        """One file made of rows and of files, in one transaction; the number of rows that left the table."""
        file = self._free(move)
        path = os.path.join(self._path, file)
        try:
            with self._hot.transaction() as cursor:
                counted = cursor.execute(f"SELECT count(*) FROM main.{move.source} WHERE {_span(move)}").fetchone()
                moved = int(counted[0]) if counted else 0
                _make_folder(os.path.dirname(path), self._path)
                self._write(cursor, move, path + UNFINISHED)
                piece = self._weighed(cursor, move, file, now, moved)
                settle(path + UNFINISHED, path)
                cursor.execute(f"DELETE FROM main.{move.source} WHERE {_span(move)}")
                self._drop(cursor, move.replaces)
                cursor.execute(f"INSERT INTO cold.file VALUES ({', '.join('?' * len(piece))})", list(piece))
                self._show(cursor, move.source)
        except (OSError, duckdb.Error, StoreError):
            # A full disk, most likely: every row is where it was. What was written is in the way.
            self._clear(file)
            raise
        self._hot.readers.unlink(self._paths(move.replaces))
        return moved

    def _clear(self, file: str) -> None:
        """Remove what a move that failed has left. Not by guess: a commit may hold and still end in an error."""
        path = os.path.join(self._path, file)
        with suppress(duckdb.Error):
            if file not in {piece.name for piece in self.pieces()}:
                self._hot.readers.unlink([path + UNFINISHED, path])

    def _write(self, cursor: duckdb.DuckDBPyConnection, move: Move, path: str) -> None:
        names = self._hot.columns()[move.source]
        rows = f"SELECT {_listed(names)} FROM main.{move.source} WHERE {_span(move)}"
        parts = [rows, *self._files(move.source, move.replaces)]
        order = _listed(self._order(move.source))
        cursor.execute(f"COPY ({' UNION ALL '.join(parts)} ORDER BY {order}) TO '{quoted(path)}' ({FORM})")

    def _weighed(self, cursor: duckdb.DuckDBPyConnection, move: Move, file: str, now: float, moved: int) -> Piece:
        """The catalogue's entry of a file just written, as it can be read back."""
        path = os.path.join(self._path, file) + UNFINISHED
        found = cursor.execute(
            f"SELECT min(time), max(time), count(*) FROM read_parquet('{quoted(path)}')"
        ).fetchone()
        oldest, newest, rows = found or (None, None, 0)
        if rows != moved + sum(old.rows for old in move.replaces):
            raise StoreError(f"{file} has {rows} rows, not as many as it was made of: nothing was moved")
        fields = ",".join(self._hot.columns()[move.source])
        size = os.path.getsize(path)
        return Piece(file, move.source, move.level, move.start, oldest, newest, rows, size, now, fields)

    def _drop(self, cursor: duckdb.DuckDBPyConnection, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            cursor.execute("DELETE FROM cold.file WHERE name = ?", [piece.name])

    def _show(self, cursor: duckdb.DuckDBPyConnection, table: str) -> None:
        """Give readers the view of a table and its files."""
        pieces = [piece for piece in _pieces(cursor) if piece.source == table]
        cursor.execute(f"CREATE OR REPLACE VIEW whole.{table} AS {self._view(table, pieces)}")

    def _view(self, table: str, pieces: Iterable[Piece]) -> str:
        """A table and files of its rows."""
        # With the database's name too: beside a view for one query `main` alone would be that query's own.
        own = f"SELECT {_listed(self._hot.columns()[table])} FROM {NAME.removesuffix('.duckdb')}.main.{table}"
        return " UNION ALL ".join([own, *self._files(table, pieces)])

    def _files(self, table: str, pieces: Iterable[Piece]) -> Iterator[str]:
        """Rows of files, those with the same columns in one go. What a file is too old to have is missing."""
        alike: dict[str, list[str]] = {}
        for piece in pieces:
            alike.setdefault(piece.fields, []).append(f"'{quoted(os.path.join(self._path, piece.name))}'")
        for fields, paths in alike.items():
            has = set(fields.split(","))
            names = [f'"{name}"' if name in has else f'NULL AS "{name}"' for name in self._hot.columns()[table]]
            yield f"SELECT {', '.join(names)} FROM read_parquet([{', '.join(paths)}])"

    def _order(self, table: str) -> list[str]:
        """By job, then by place, then by what else says which thing a row is about; each thing over time."""
        record = self._hot.record(table)
        labels = [field.name for field in fields_of(record) if field.kind == "label"] if record else ["collector"]
        job = [name for name in JOB if name in labels]
        rest = [name for name in labels if name not in job]
        return [*job, "cluster", "node", "boot", *rest, "time"]

    def _free(self, move: Move) -> str:
        """A name that no file has: one that is going may still be read."""
        number = 1
        while os.path.exists(os.path.join(self._path, name(move, number))):
            number += 1
        return name(move, number)

    def _paths(self, pieces: Iterable[Piece]) -> list[str]:
        return [os.path.join(self._path, piece.name) for piece in pieces]


def check(path: str) -> None:
    """Refuse files without the catalogue that names them, before an empty one is made: they would be taken for
    leftovers.
    """
    below = os.path.join(path, "cold")
    if not os.path.exists(os.path.join(path, NAME)) and any(file.endswith(SUFFIX) for file in _present(below)):
        raise StoreError(
            f"{below} holds rows, but {NAME} is gone that goes with them: put it back, or move both away"
        )


def _present(path: str) -> Iterator[str]:
    """Every file below a folder, catalogued or not."""
    for folder, _, files in os.walk(path):
        for file in files:
            if file.removesuffix(UNFINISHED).endswith(SUFFIX):
                yield os.path.relpath(os.path.join(folder, file), path)


def settle(unfinished: str, path: str) -> None:
    """Sync a file and give it its name, so that it survives a power cut."""
    _sync(unfinished)
    os.rename(unfinished, path)
    _sync(os.path.dirname(path))


def _make_folder(path: str, above: str) -> None:
    """A folder below `above`, whose names on the way survive a power cut."""
    os.makedirs(path, mode=0o750, exist_ok=True)
    while len(path) >= len(above):
        path = os.path.dirname(path)
        _sync(path)


def _sync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _pieces(cursor: duckdb.DuckDBPyConnection) -> list[Piece]:
    rows: list[tuple[Any, ...]] = cursor.execute("SELECT * FROM cold.file ORDER BY source, start, made").fetchall()
    return [Piece(*row) for row in rows]


def _meets(piece: Piece, between: tuple[float, float]) -> bool:
    return piece.oldest <= between[1] and piece.newest >= between[0]


def _span(move: Move) -> str:
    return f"time >= {move.start!r} AND time < {move.stop!r}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
