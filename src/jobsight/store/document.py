"""Jobs in PostgreSQL: the columns that are searched by, and the whole as a document. The same as SQLite's."""

import json
from collections.abc import Sequence
from typing import Any

from jobsight.store.counter import Entry
from jobsight.store.pool import Connection, Pool
from jobsight.store.protocol import JobQuery
from jobsight.store.sight import Sight, among, within
from jobsight.store.small import STATES, job_row

COLUMNS = {
    "key": "text PRIMARY KEY", "cluster": "text NOT NULL", "scheduler": "text NOT NULL", "id": "text NOT NULL",
    "scope": "text NOT NULL", "owner": "text NOT NULL", "command": "text NOT NULL", "nodes": "text NOT NULL",
    "started": "double precision NOT NULL", "seen": "double precision NOT NULL", "every": "double precision NOT NULL",
    "alive": "boolean NOT NULL", "document": "text NOT NULL", "number": "text NOT NULL DEFAULT ''",
    "words": "text NOT NULL DEFAULT ''", "account": "text NOT NULL DEFAULT ''",
    "waits": "boolean NOT NULL DEFAULT false",
}  # fmt: skip
TABLE = f"CREATE TABLE IF NOT EXISTS job ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})"
INDEXES = (
    "CREATE INDEX IF NOT EXISTS job_name ON job (cluster, scheduler, id, scope, seen)",
    "CREATE INDEX IF NOT EXISTS job_id ON job (id)",
    "CREATE INDEX IF NOT EXISTS job_number ON job (number, seen)",
    "CREATE INDEX IF NOT EXISTS job_seen ON job (seen)",
    "CREATE INDEX IF NOT EXISTS job_owner ON job (owner, seen)",
    "ALTER TABLE job ADD COLUMN IF NOT EXISTS account text NOT NULL DEFAULT ''",
    "UPDATE job SET account = document::jsonb->>'account' WHERE account = '' AND document::jsonb->>'account' <> ''",
    "CREATE INDEX IF NOT EXISTS job_account ON job (account, owner)",
    "ALTER TABLE job ADD COLUMN IF NOT EXISTS waits boolean NOT NULL DEFAULT false",
    "CREATE INDEX IF NOT EXISTS job_order ON job (alive DESC, seen DESC, started DESC)",
    "CREATE INDEX IF NOT EXISTS job_owned ON job (owner, alive DESC, seen DESC, started DESC)",
    "CREATE INDEX IF NOT EXISTS job_charged ON job (account, alive DESC, seen DESC, started DESC)",
    "CREATE INDEX IF NOT EXISTS job_waits ON job (seen) WHERE waits",
)
PUT = (
    f"INSERT INTO job ({', '.join(COLUMNS)}) VALUES ({', '.join(['%s'] * len(COLUMNS))}) ON CONFLICT (key) "
    f"DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in COLUMNS if name != 'key')}"
)


def put(connection: Connection, jobs: Sequence[Entry | dict[str, Any]]) -> None:
    """Jobs as they are now, in the transaction that is open."""
    if jobs:
        with connection.cursor() as cursor:
            cursor.executemany(PUT, [job_row(job) for job in jobs])


class Documents:
    """Reads jobs."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def latest(self, cluster: str, scheduler: str, number: str, scope: str, until: float) -> dict[str, Any] | None:
        found = self._found(
            "WHERE cluster = %s AND scheduler = %s AND id = %s AND scope = %s AND started <= %s "
            "ORDER BY seen DESC LIMIT 1",
            [cluster, scheduler, number, scope, until],
        )
        return found[0] if found else None

    def named(self, cluster: str, scheduler: str, numbers: Sequence[str]) -> list[dict[str, Any]]:
        return self._found(
            "WHERE cluster = %s AND scheduler = %s AND id = ANY(%s) AND scope = ''",
            [cluster, scheduler, list(numbers)],
        )

    def job(self, key: str, sight: Sight | None = None) -> dict[str, Any] | None:
        seen, names = within(sight, "%s")
        found = self._found(f"WHERE key = %s AND {seen}", [key, *map(_storable, names)])
        return found[0] if found else None

    def running(self, now: float, sight: Sight | None) -> list[str]:
        seen, names = within(sight, "%s")
        asked = f"SELECT key FROM job WHERE {STATES['running'].replace('?', '%s')} AND {seen}"
        return [row[0] for row in self._pool.query(asked, [now, *map(_storable, names)])]

    def accounts(self, sight: Sight | None) -> list[str]:
        seen, names = within(sight, "%s")
        asked = f"SELECT DISTINCT account FROM job WHERE account <> '' AND {seen}"
        return sorted(row[0] for row in self._pool.query(asked, [*map(_storable, names)]))

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
            ("started >= %s", query.begun),
        ]
        wanted = [(test, value) for test, value in tests if value is not None]
        clauses, values = [test for test, _ in wanted], [value for _, value in wanted]
        for names, columns in ((query.ids, ["id", "number"]), (query.accounts, ["account"])):
            if names:
                clauses.append(among(columns, len(names), "%s"))
                values += names * len(columns)
        seen, owners = within(query.sight, "%s")
        return self._found(
            f"WHERE {' AND '.join([*clauses, seen])} ORDER BY alive DESC, seen DESC, started DESC LIMIT %s",
            [*map(_storable, [*values, *owners]), query.limit],
        )

    def _found(self, rest: str, values: list[Any]) -> list[dict[str, Any]]:
        rows = self._pool.query(f"SELECT document FROM job {rest}", values)
        return [json.loads(row[0]) for row in rows]


def _storable(value: Any) -> Any:
    """What is asked for, as it would have been stored."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value
