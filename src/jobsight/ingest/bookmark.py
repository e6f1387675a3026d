"""Where reading stopped in each file, and what must be remembered of each node to go on: beside the store.

A second run skips what has not changed and goes on where a growing file ended. Losing this file loses nothing but
time, as long as everything is then read again from the beginning: messages that are known are not stored twice.
"""

import os
import sqlite3
import zlib
from collections.abc import Mapping

from jobsight.ingest.tree import Source

FILE = "load.sqlite"
TABLES = """
CREATE TABLE IF NOT EXISTS place (
  path TEXT PRIMARY KEY, size INTEGER NOT NULL, changed INTEGER NOT NULL, position INTEGER NOT NULL,
  head_size INTEGER NOT NULL, head INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS node (cluster TEXT, node TEXT, remembered TEXT NOT NULL, PRIMARY KEY (cluster, node));
"""
HEAD = 1024
UNFINISHED = -1


class Bookmarks:
    """The places in all files ever read into one store; without a path, of this run alone."""

    def __init__(self, store: str | None) -> None:
        self._connection = sqlite3.connect(os.path.join(store, FILE) if store else ":memory:")
        self._connection.executescript(TABLES)

    def finished(self, source: Source) -> bool:
        """Whether a file is as it was when it was read to its end."""
        asked = "SELECT 1 FROM place WHERE path = ? AND size = ? AND changed = ?"
        return bool(self._connection.execute(asked, [source.path, source.size, source.changed]).fetchone())

    def position(self, source: Source) -> int:
        """Where to go on: 0 for a file not met before, or that is another one now."""
        asked = "SELECT position, head_size, head FROM place WHERE path = ?"
        found = self._connection.execute(asked, [source.path]).fetchone()
        if not found:
            return 0
        position, head_size, head = found
        return int(position) if _head(source.path, head_size) == (head_size, head) else 0

    def recall(self, cluster: str, node: str) -> str | None:
        asked = "SELECT remembered FROM node WHERE cluster = ? AND node = ?"
        found = self._connection.execute(asked, [cluster, node]).fetchone()
        return str(found[0]) if found else None

    def save(self, positions: Mapping[Source, int], ended: set[Source], nodes: Mapping[tuple[str, str], str]) -> None:
        """All of it or nothing: what is remembered of a node belongs to a place in its files."""
        with self._connection:
            for source, position in positions.items():
                done = source in ended
                size, changed = (source.size, source.changed) if done else (UNFINISHED, 0)
                row = [source.path, size, changed, position, *_head(source.path, HEAD)]
                self._connection.execute("INSERT OR REPLACE INTO place VALUES (?, ?, ?, ?, ?, ?)", row)
            rows = [(*place, text) for place, text in nodes.items()]
            self._connection.executemany("INSERT OR REPLACE INTO node VALUES (?, ?, ?)", rows)

    def close(self) -> None:
        self._connection.close()


def _head(path: str, size: int) -> tuple[int, int]:
    """The length and checksum of a file's beginning: what tells a file that grew from another of its name."""
    try:
        with open(path, "rb") as file:
            head = file.read(size)
    except OSError:
        return 0, 0
    return len(head), zlib.crc32(head)
