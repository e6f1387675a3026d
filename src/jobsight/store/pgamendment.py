"""Putting right what was counted, in PostgreSQL. See `store.protocol.Amends`: all of a change is one transaction."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jobsight.store import document
from jobsight.store.dialect import translated
from jobsight.store.partition import Cut
from jobsight.store.pgtable import Table
from jobsight.store.pool import Connection
from jobsight.store.protocol import LABEL, Change

Row = tuple[Any, ...]
HORIZON = "CREATE TABLE IF NOT EXISTS horizon (source text PRIMARY KEY, time double precision NOT NULL)"
FORGOTTEN = """INSERT INTO horizon AS known VALUES (%s, %s) ON CONFLICT (source)
DO UPDATE SET time = greatest(known.time, excluded.time)"""
# A job's rows on a node, of a time.
USED = """DELETE FROM {0} WHERE time BETWEEN %s AND %s AND series IN
  (SELECT series FROM {1} WHERE cluster = %s AND node = %s AND job_key = ANY(%s))"""
MARKED = """DELETE FROM {0} WHERE series IN (SELECT series FROM {1} WHERE cluster = %s AND node = %s)
AND time BETWEEN %s AND %s"""


class PgAmendments:
    """Changes to one store's derived rows, on the connection that may make them."""

    def __init__(self, cut: Cut, tables: dict[str, Table], clock: Callable[[], float]) -> None:
        self._cut, self._tables, self._clock = cut, tables, clock

    def mark(self, connection: Connection, table: str, rows: Sequence[Row]) -> None:
        self._ready(connection, {table: rows})
        with connection.transaction():
            self._tables[table].copy(connection, rows)

    def unmark(self, connection: Connection, table: str, places: Sequence[tuple[str, str, float, float]]) -> None:
        own = self._tables[table]
        with connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(MARKED.format(own.rows, own.series), places)

    def change(self, connection: Connection, changes: Sequence[Change]) -> None:
        rows = {
            "usage": [row for item in changes for row in item.usage],
            "due": [row for item in changes for row in item.due],
        }
        usage = self._tables["usage"]
        self._ready(connection, rows)
        with connection.transaction():
            with connection.cursor() as cursor:
                cursor.executemany(
                    USED.format(usage.rows, usage.series),
                    [(item.since, item.until, item.cluster, item.node, item.keys) for item in changes],
                )
            for table, some in rows.items():
                self._tables[table].copy(connection, some)
            gone = [key for item in changes for key in item.gone]
            connection.execute("DELETE FROM job WHERE key = ANY(%s)", [gone])
            document.put(connection, [job for item in changes for job in item.jobs])
            self.unmark(connection, "late", [(item.cluster, item.node, *item.marks) for item in changes])

    def refill(
        self,
        connection: Connection,
        table: str,
        span: tuple[float, float],
        sql: str,
        label: Sequence[Row],
        names: Sequence[str] = LABEL,
    ) -> int:
        own = self._tables[table]
        with connection.transaction():
            connection.execute(
                f"CREATE TEMP TABLE label ({', '.join(f'{name} text' for name in names)}) ON COMMIT DROP"
            )
            with connection.cursor() as cursor, cursor.copy("COPY label FROM STDIN") as target:
                for row in label:
                    target.write_row(row)
            # Else the planner takes it for tiny, and joins it row by row.
            connection.execute("ANALYZE label")
            # Statements of hundreds of expressions take longer to compile than to run.
            connection.execute("SET LOCAL jit = off")
            rows = connection.execute(translated(sql), []).fetchall()
        self._ready(connection, {table: rows})
        with connection.transaction():
            connection.execute(f"DELETE FROM {own.rows} WHERE time >= %s AND time < %s", span)
            return own.copy(connection, rows)

    def _ready(self, connection: Connection, rows: Mapping[str, Sequence[Row]]) -> None:
        wanted = {(self._tables[table].rows, row[3]) for table, some in rows.items() for row in some}
        self._cut.ready(connection, wanted, self._clock())
