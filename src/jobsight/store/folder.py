"""The folder of the files: what is in it, and how a file gets a name there that survives a power cut."""

import os
import sys
from collections.abc import Callable, Collection, Iterator

import duckdb

from jobsight.store.hot import NAME
from jobsight.store.protocol import StoreError

SUFFIX = ".parquet"
UNFINISHED = ".new"
# Entries of the catalogue whose files are not there: a disk that was not mounted in time must cost nobody its rows.
MISSING = "CREATE TABLE IF NOT EXISTS cold.missing AS FROM cold.file LIMIT 0"
# Rows that are written and passed over together: twice the engine's own number, because to look at what is said of
# each such group costs more than to read one that is twice as large. Of messages there are fewer, and of those one
# job needs a handful.
GROUP = 245_760
GROUPS = {"run": 40_960}


def form(table: str) -> str:
    """How a table's rows are written, in SQL."""
    return f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {GROUPS.get(table, GROUP)}"


def check(path: str) -> None:
    """Refuse files without the catalogue that names them, before an empty one is made: they would be taken for
    leftovers.
    """
    below = os.path.join(path, "cold")
    if not os.path.exists(os.path.join(path, NAME)) and any(file.endswith(SUFFIX) for file in present(below)):
        raise StoreError(
            f"{below} holds rows, but {NAME} is gone that goes with them: put it back, or move both away"
        )


def present(path: str) -> Iterator[str]:
    """Every file below a folder, catalogued or not."""
    for folder, _, files in os.walk(path):
        for file in files:
            if file.removesuffix(UNFINISHED).endswith(SUFFIX):
                yield os.path.relpath(os.path.join(folder, file), path)


def compare(cursor: duckdb.DuckDBPyConnection, files: Collection[str]) -> set[str]:
    """Take files that are gone out of the catalogue, and those that are back into it again; the names of all that are
    gone.
    """
    cursor.execute(MISSING)
    gone = _exchanged(cursor, "cold.file", "cold.missing", lambda name: name not in files)
    if gone:
        rows = sum(count for _, count in gone)
        others = f" and {len(gone) - 1} other files are" if len(gone) > 1 else " is"
        print(
            f"jobsight: {gone[0][0]}{others} gone, and {rows} rows with them; they count again when they are back",
            file=sys.stderr,
        )
    back = _exchanged(cursor, "cold.missing", "cold.file", lambda name: name in files)
    if back:
        print(f"jobsight: {len(back)} files that were gone are back", file=sys.stderr)
    return {name for (name,) in cursor.execute("SELECT name FROM cold.missing").fetchall()}


def _exchanged(
    cursor: duckdb.DuckDBPyConnection, source: str, target: str, wanted: Callable[[str], bool]
) -> list[tuple[str, int]]:
    """Entries that went from one table to the other: name and rows."""
    entries = cursor.execute(f"SELECT name, rows FROM {source} ORDER BY source, start, made").fetchall()
    found = [(name, rows) for name, rows in entries if wanted(name)]
    if found:
        names = [[name for name, _ in found]]
        cursor.execute(f"INSERT INTO {target} FROM {source} WHERE list_contains(?, name)", names)
        cursor.execute(f"DELETE FROM {source} WHERE list_contains(?, name)", names)
    return found


def settle(unfinished: str, path: str) -> None:
    """Sync a file and give it its name, so that it survives a power cut."""
    sync(unfinished)
    os.rename(unfinished, path)
    sync(os.path.dirname(path))


def make(path: str, above: str) -> None:
    """A folder below `above`, whose names on the way survive a power cut."""
    os.makedirs(path, mode=0o750, exist_ok=True)
    while len(path) >= len(above):
        path = os.path.dirname(path)
        sync(path)


def sync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
