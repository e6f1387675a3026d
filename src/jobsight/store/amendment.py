"""Putting right what was counted, in the embedded store. See `store.protocol.Amends`.

Usage rows first, then jobs, then the marks that asked for it: broken off in between, the marks are still there, and
counting the same rows again gives the same.
"""

from collections.abc import Sequence
from typing import Any

import duckdb

from jobsight.store.cold import Cold
from jobsight.store.hot import Hot
from jobsight.store.protocol import LABEL, REACH, Change
from jobsight.store.small import Small

GONE = "CREATE TEMP TABLE gone (cluster VARCHAR, node VARCHAR, job_key VARCHAR)"


class Amendments:
    """Changes to one store's derived rows. The caller sees to it that nothing is digested meanwhile."""

    def __init__(self, hot: Hot, cold: Cold, small: Small) -> None:
        self._hot, self._cold, self._small = hot, cold, small

    def mark(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        with self._hot.transaction() as cursor:
            self._enter(cursor, table, rows)

    def unmark(self, table: str, places: Sequence[tuple[str, str, float, float]]) -> None:
        with self._hot.transaction() as cursor:
            for place in places:
                cursor.execute(f"DELETE FROM {table} WHERE cluster = ? AND node = ? AND time BETWEEN ? AND ?", place)

    def change(self, changes: Sequence[Change]) -> None:
        if not changes:
            return
        span = min(item.since for item in changes), max(item.until for item in changes)
        with self._cold.amending("usage", span) as amend:
            amend.cursor.execute(GONE)
            gone = [(item.cluster, item.node, key) for item in changes for key in item.keys]
            _fill(amend.cursor, "gone", gone)
            amend.without("row(cluster, node, job_key) IN (SELECT row(cluster, node, job_key) FROM temp.gone)")
            self._enter(amend.cursor, "usage", [row for item in changes for row in item.usage])
            self._enter(amend.cursor, "due", [row for item in changes for row in item.due])
        self._small.put(
            [job for item in changes for job in item.jobs], [key for item in changes for key in item.gone]
        )
        self.unmark("late", [(item.cluster, item.node, *item.marks) for item in changes])

    def refill(
        self,
        table: str,
        span: tuple[float, float],
        sql: str,
        label: Sequence[tuple[Any, ...]],
        names: Sequence[str] = LABEL,
        reads: tuple[float, float] | None = None,
    ) -> int:
        with self._cold.amending(table, span) as amend:
            cursor = amend.cursor
            cursor.execute(f"CREATE TEMP TABLE label ({', '.join(f'{name} VARCHAR' for name in names)})")
            _fill(cursor, "label", label)
            amend.without(f"time >= {span[0]!r} AND time < {span[1]!r}")
            self._cold.show_between(cursor, sql, reads or (span[0], span[1] + REACH))
            found = cursor.execute(f"INSERT INTO main.{table} {sql}").fetchone()
        return int(found[0]) if found else 0

    def _enter(self, cursor: duckdb.DuckDBPyConnection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            self._hot.insert(cursor, table, list(rows))


def _fill(cursor: duckdb.DuckDBPyConnection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Rows of texts, in one statement: one at a time they would take a millisecond each."""
    if rows:
        columns = [list(column) for column in zip(*rows, strict=True)]
        cursor.execute(f"INSERT INTO temp.{table} SELECT {', '.join('unnest(?)' for _ in columns)}", columns)
