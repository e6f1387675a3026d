"""Jobs in PostgreSQL: the columns that are searched by, and the whole as a document. The same as SQLite's."""

import json
from collections.abc import Sequence
from typing import Any

from jobsight.store.pool import Connection, Pool
from jobsight.store.protocol import JobQuery
from jobsight.store.small import STATES, _row

COLUMNS = {
    "key": "text PRIMARY KEY", "cluster": "text NOT NULL", "scheduler": "text NOT NULL", "id": "text NOT NULL",
    "scope": "text NOT NULL", "owner": "text NOT NULL", "command": "text NOT NULL", "nodes": "text NOT NULL",
    "started": "double precision NOT NULL", "seen": "double precision NOT NULL", "every": "double precision NOT NULL",
    "alive": "boolean NOT NULL", "document": "text NOT NULL", "number": "text NOT NULL DEFAULT ''",
    "words": "text NOT NULL DEFAULT ''",
}  # fmt: skip
TABLE = f"CREATE TABLE IF NOT EXISTS job ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})"
INDEXES = (
    "CREATE INDEX IF NOT EXISTS job_name ON job (cluster, scheduler, id, scope, seen)",
    "CREATE INDEX IF NOT EXISTS job_number ON job (number, seen)",
    "CREATE INDEX IF NOT EXISTS job_seen ON job (seen)",
    "CREATE INDEX IF NOT EXISTS job_owner ON job (owner, seen)",
)
PUT = (
    f"INSERT INTO job ({', '.join(COLUMNS)}) VALUES ({', '.join(['%s'] * len(COLUMNS))}) ON CONFLICT (key) "
    f"DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in COLUMNS if name != 'key')}"
)


def put(connection: Connection, jobs: Sequence[dict[str, Any]]) -> None:
    """Jobs as they are now, in the transaction that is open."""
    if jobs:
        with connection.cursor() as cursor:
            cursor.executemany(PUT, [_row(job) for job in jobs])


class Documents:
    """Reads jobs."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def latest(self, cluster: str, scheduler: str, number: str, scope: str) -> dict[str, Any] | None:
        found = self._found(
            "WHERE cluster = %s AND scheduler = %s AND id = %s AND scope = %s ORDER BY seen DESC LIMIT 1",
            [cluster, scheduler, number, scope],
        )
        return found[0] if found else None

    def job(self, key: str) -> dict[str, Any] | None:
        found = self._found("WHERE key = %s", [key])
        return found[0] if found else None

    def jobs(self, query: JobQuery, now: float) -> list[dict[str, Any]]:
        """Newest first; running jobs before ended ones."""
        node = None if query.node is None else f" {query.node} "
        searched = "lower(id || ' ' || owner || ' ' || command || nodes || words)"
        tests: list[tuple[str, Any]] = [
            ("seen >= %s", query.since),
            ("started <= %s", query.until),
            ("owner = %s", query.owner),
            ("%s IN (id, number)", query.id),
            ("command = %s", query.command),
            ("scheduler = %s", query.scheduler),
            ("strpos(nodes, %s) > 0", node),
            (f"strpos({searched}, lower(%s)) > 0", query.text),
            (STATES.get(query.state or "", "").replace("?", "%s"), now if query.state in STATES else None),
        ]
        wanted = [(test, _storable(value)) for test, value in tests if value is not None]
        where = f"WHERE {' AND '.join(test for test, _ in wanted)}" if wanted else ""
        return self._found(
            f"{where} ORDER BY alive DESC, seen DESC, started DESC LIMIT %s",
            [*(value for _, value in wanted), query.limit],
        )

    def _found(self, rest: str, values: list[Any]) -> list[dict[str, Any]]:
        rows = self._pool.query(f"SELECT document FROM job {rest}", values)
        return [json.loads(row[0]) for row in rows]


def _storable(value: Any) -> Any:
    """What is asked for, as it would have been stored."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value
