"""What a store holds, table by table, and one table as a file."""

import os
from typing import Any, NamedTuple

from jobsight.store.cold import Cold
from jobsight.store.folder import UNFINISHED, form, settle
from jobsight.store.hot import Hot, quoted
from jobsight.store.protocol import StoreError
from jobsight.store.small import Small


class TableStatus(NamedTuple):
    """One table: rows in DuckDB, rows in files, what the files take on disk, and the times of its rows."""

    table: str
    hot: int
    cold: int
    files: int
    size: int
    oldest: float | None
    newest: float | None


class Status(NamedTuple):
    """The whole store. Sizes are bytes on disk."""

    path: str
    tables: list[TableStatus]
    jobs: int
    jobs_oldest: float | None
    jobs_newest: float | None
    size_log: int
    size_hot: int
    size_cold: int
    size_small: int

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {**self._asdict(), "tables": [table._asdict() for table in self.tables]}


def status(path: str, hot: Hot, cold: Cold, small: Small) -> Status:
    pieces = cold.pieces()
    tables = []
    for name in sorted(hot.columns()):
        count, oldest, newest = hot.query(f"SELECT count(*), min(time), max(time) FROM main.{name}")[0]
        own = [piece for piece in pieces if piece.source == name]
        times = [oldest, newest, *(piece.oldest for piece in own), *(piece.newest for piece in own)]
        known = [time for time in times if time is not None]
        moved, size = sum(piece.rows for piece in own), sum(piece.size for piece in own)
        tables.append(
            TableStatus(name, count, moved, len(own), size, min(known, default=None), max(known, default=None))
        )
    return Status(
        path,
        tables,
        *small.count_jobs(),
        size_log=_size(os.path.join(path, "log")),
        size_hot=_size(hot.path) + _size(f"{hot.path}.wal"),
        size_cold=sum(piece.size for piece in pieces),
        size_small=sum(_size(os.path.join(path, f"small.sqlite{suffix}")) for suffix in ("", "-wal")),
    )


def export(hot: Hot, table: str, path: str, since: float, until: float) -> int:
    """Rows from `since` to before `until`, sorted by node and time; how many. A file in the way is replaced whole."""
    if table not in hot.columns():
        raise StoreError(f"no table {table!r}; there are {', '.join(sorted(hot.columns()))}")
    rows = f"SELECT * FROM {table} WHERE time >= {since!r} AND time < {until!r} ORDER BY cluster, node, boot, time"
    # Copied where it cannot be mistaken for a finished one.
    ((count,),) = hot.query(f"COPY ({rows}) TO '{quoted(path + UNFINISHED)}' ({form(table)})")
    settle(path + UNFINISHED, os.path.abspath(path))
    return int(count)


def _size(path: str) -> int:
    """Of a file, or of the files in a folder; nothing if there is none."""
    try:
        if os.path.isdir(path):
            return sum(entry.stat().st_size for entry in os.scandir(path) if entry.is_file())
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0
