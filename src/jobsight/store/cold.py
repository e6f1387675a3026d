"""Rows that are over: Parquet files, sorted so that one job's rows lie together.

A file is written beside its name, synced and renamed; then one DuckDB transaction takes its rows out of the table,
enters it in the catalogue and puts it into the view that readers have. Before that commit the file does not count,
after it the rows in the table do not: nothing is there twice or missing at any moment, and a crash leaves at most a
file that no catalogue names. The catalogue is in the database of the tables, not beside it, for that one commit.
"""

import os
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import duckdb

from jobsight.schema.record import fields_of
from jobsight.store import folder
from jobsight.store.amend import Amend
from jobsight.store.clause import within
from jobsight.store.folder import UNFINISHED, settle
from jobsight.store.hot import NAME, Hot, quoted
from jobsight.store.plan import DAY, HOUR, LEAST, Move, Piece, meets, moves, name
from jobsight.store.protocol import StoreError
from jobsight.store.retention import MARKS, STAYS

CATALOGUE = """CREATE TABLE IF NOT EXISTS cold.file (
  name VARCHAR NOT NULL, source VARCHAR NOT NULL, level VARCHAR NOT NULL, start DOUBLE NOT NULL,
  oldest DOUBLE NOT NULL, newest DOUBLE NOT NULL, rows BIGINT NOT NULL, size BIGINT NOT NULL, made DOUBLE NOT NULL,
  fields VARCHAR NOT NULL)"""
HORIZON = "CREATE TABLE IF NOT EXISTS cold.horizon (source VARCHAR PRIMARY KEY, time DOUBLE NOT NULL)"
FORGOT = "INSERT OR REPLACE INTO cold.horizon VALUES (?, ?)"
# What names a job, most telling first: a table that has one of these is sorted by it before anything else.
JOB = ("job_key", "scheduler", "job")
# In SQL, for there may be thousands of files.
MEETS = "WHERE oldest <= ? AND newest >= ? AND source IN "


class Cold:
    """The files of one store and their catalogue."""

    def __init__(self, path: str, hot: Hot) -> None:
        self._path = os.path.join(path, "cold")
        self._hot = hot
        self._moving = threading.Lock()
        self._names: set[str] = set()
        present = set(folder.present(self._path))
        with hot.transaction() as cursor:
            cursor.execute("CREATE SCHEMA IF NOT EXISTS cold")
            cursor.execute(CATALOGUE)
            cursor.execute(HORIZON)
            # The names of files that may come back are not given to others.
            self._names |= folder.compare(cursor, present)
            for table in hot.columns():
                self._show(cursor, table)
            known = {piece.name for piece in _pieces(cursor)}
            self._horizons: dict[str, float] = dict(cursor.execute("SELECT * FROM cold.horizon").fetchall())
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
            return cursor.execute(within(sql, self._between(cursor, sql, between)), list(values)).fetchall()

    def show_between(self, cursor: duckdb.DuckDBPyConnection, sql: str, between: tuple[float, float]) -> None:
        """Give a cursor views of the tables that SQL names, with the files that can have rows of a time."""
        for table, view in self._between(cursor, sql, between).items():
            cursor.execute(f"CREATE TEMP VIEW {table} AS {view}")

    def _between(self, cursor: duckdb.DuckDBPyConnection, sql: str, between: tuple[float, float]) -> dict[str, str]:
        # One too many, for a column of the same name, costs a little time; one too few there cannot be.
        tables = [table for table in self._hot.columns() if re.search(rf"\b{table}\b", sql)]
        chosen = f"{MEETS} ({', '.join('?' * len(tables))})"
        pieces = _pieces(cursor, chosen, [between[1], between[0], *tables]) if tables else []
        return {table: self._view(table, [piece for piece in pieces if piece.source == table]) for table in tables}

    def compact(self, now: float, least: int = LEAST) -> int:
        """Move what is due; how many rows went to files. Nobody waits for this: neither readers nor the loader."""
        with self._moving:
            moved = 0
            for table in [name for name in self._hot.columns() if name not in (*MARKS, *STAYS)]:
                for move in moves(table, self._hours(table), self._of(table), now, least):
                    moved += self._move(move, now)
            return moved

    def forget(self, table: str, before: float) -> int:
        """Drop files whose rows are all older than `before`, and such rows of the table; how many rows went."""
        with self._moving:
            old = [piece for piece in self._of(table) if piece.newest < before]
            with self._hot.transaction() as cursor:
                deleted = cursor.execute(f"DELETE FROM main.{table} WHERE time < ?", [before]).fetchone()
                cursor.execute(FORGOT, [table, max(before, self.horizon(table))])
                if old:
                    self._drop(cursor, old)
                    self._show(cursor, table)
            self._horizons[table] = max(before, self.horizon(table))
            self._hot.readers.unlink(self._paths(old))
            return sum(piece.rows for piece in old) + int(deleted[0] if deleted else 0)

    def forgot(self, table: str, before: float) -> None:
        """Rows of a table are complete from that time on at the earliest: they come from where that was so."""
        with self._moving:
            if before > self.horizon(table):
                with self._hot.transaction() as cursor:
                    cursor.execute(FORGOT, [table, before])
                self._horizons[table] = before

    def horizon(self, table: str) -> float:
        """Rows of a table are complete from this time on."""
        return self._horizons.get(table, 0.0)

    @contextmanager
    def amending(self, table: str, span: tuple[float, float]) -> Iterator[Amend]:
        """Change rows of a time wherever they are, in one commit: files that lose some are written anew."""
        with self._moving:
            amend = None
            try:
                with self._hot.transaction() as cursor:
                    pieces = [piece for piece in _pieces(cursor) if piece.source == table and meets(piece, span)]
                    amend = Amend(self, cursor, table, pieces)
                    yield amend
                    self._show(cursor, table)
            except BaseException:
                for file in amend.made if amend else ():
                    self._clear(file)
                raise
            self._hot.readers.unlink(self._paths(amend.replaced))

    def rewrite(self, cursor: duckdb.DuckDBPyConnection, piece: Piece, without: str) -> str | None:
        """A file without the rows of a condition in place of one that has some; its name. None if all are such."""
        move = Move(piece.source, piece.level, piece.start, piece.start)
        file = self._free(move)
        path = os.path.join(self._path, file)
        (rows,) = self._files(piece.source, [piece])
        left = f"SELECT * FROM ({rows}) WHERE NOT ({without}) ORDER BY {_listed(self._order(piece.source))}"
        self._drop(cursor, [piece])
        found = cursor.execute(
            f"COPY ({left}) TO '{quoted(path + UNFINISHED)}' ({folder.form(piece.source)})"
        ).fetchone()
        if not found or not found[0]:
            os.unlink(path + UNFINISHED)
            return None
        made = self._weighed(cursor, move, file, piece.made, int(found[0]))
        settle(path + UNFINISHED, path)
        cursor.execute(f"INSERT INTO cold.file VALUES ({', '.join('?' * len(made))})", list(made))
        return file

    def matching(self, cursor: duckdb.DuckDBPyConnection, piece: Piece, condition: str) -> int:
        """How many rows of a file fulfil a condition."""
        (rows,) = self._files(piece.source, [piece])
        found = cursor.execute(f"SELECT count(*) FROM ({rows}) WHERE {condition}").fetchone()
        return int(found[0]) if found else 0

    def clear_day(self, table: str, day: float) -> None:
        """Drop the rows of one day, which begins at that time, be they in the table or in files."""
        with self._moving:
            old = [piece for piece in self._of(table) if day <= piece.start < day + DAY]
            with self._hot.transaction() as cursor:
                cursor.execute(f"DELETE FROM main.{table} WHERE time >= ? AND time < ?", [day, day + DAY])
                if old:
                    self._drop(cursor, old)
                    self._show(cursor, table)
            self._hot.readers.unlink(self._paths(old))

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
                folder.make(os.path.dirname(path), self._path)
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
        made = f"COPY ({' UNION ALL '.join(parts)} ORDER BY {order}) TO '{quoted(path)}'"
        cursor.execute(f"{made} ({folder.form(move.source)})")

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
        """A name that no file has or had: one that is going may still be read, and the engine remembers what it read
        under a name.
        """
        number = 1
        while os.path.exists(os.path.join(self._path, name(move, number))) or name(move, number) in self._names:
            number += 1
        self._names.add(name(move, number))
        return name(move, number)

    def _paths(self, pieces: Iterable[Piece]) -> list[str]:
        return [os.path.join(self._path, piece.name) for piece in pieces]


def _pieces(cursor: duckdb.DuckDBPyConnection, where: str = "", values: Iterable[Any] = ()) -> list[Piece]:
    found = cursor.execute(f"SELECT * FROM cold.file {where}", list(values)).fetchall()
    # Sorted here: the engine takes longer to plan that than we do for so few.
    return sorted((Piece(*row) for row in found), key=lambda piece: (piece.source, piece.start, piece.made))


def _span(move: Move) -> str:
    return f"time >= {move.start!r} AND time < {move.stop!r}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
