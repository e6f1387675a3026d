"""What is small and changes: jobs, and how far the log has been counted. SQLite."""

import json
import os
import sqlite3
import threading
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from jobsight.schema.series import new_namespace
from jobsight.store.counter import Entry
from jobsight.store.protocol import FRESH, SLACK, JobQuery, StoreError
from jobsight.store.sight import Sight, among, within

# What a part of a name is looked for in. An index has it, beside what lists are ordered by: documents are not read.
SEARCHED = "lower(id || ' ' || owner || ' ' || command || nodes || words)"
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS job (
  key TEXT PRIMARY KEY, cluster TEXT NOT NULL, scheduler TEXT NOT NULL, id TEXT NOT NULL, scope TEXT NOT NULL,
  owner TEXT NOT NULL, command TEXT NOT NULL, nodes TEXT NOT NULL, started REAL NOT NULL, seen REAL NOT NULL,
  every REAL NOT NULL, alive INTEGER NOT NULL, document TEXT NOT NULL, number TEXT NOT NULL DEFAULT '',
  words TEXT NOT NULL DEFAULT '', account TEXT NOT NULL DEFAULT '', waits INTEGER NOT NULL DEFAULT 0);
DROP INDEX IF EXISTS job_name;
DROP INDEX IF EXISTS job_number;
CREATE INDEX IF NOT EXISTS job_named ON job (cluster, scheduler, id, scope);
CREATE INDEX IF NOT EXISTS job_id ON job (id);
CREATE INDEX IF NOT EXISTS job_numbered ON job (number);
DROP INDEX IF EXISTS job_seen;
CREATE INDEX IF NOT EXISTS job_search ON job (seen, alive, started, nodes, {SEARCHED});
CREATE INDEX IF NOT EXISTS job_order ON job (alive DESC, seen DESC, started DESC);
CREATE INDEX IF NOT EXISTS job_owned ON job (owner, alive DESC, seen DESC, started DESC);
CREATE INDEX IF NOT EXISTS job_charged ON job (account, alive DESC, seen DESC, started DESC);
CREATE INDEX IF NOT EXISTS job_owner ON job (owner, seen);
CREATE INDEX IF NOT EXISTS job_account ON job (account, owner);
CREATE INDEX IF NOT EXISTS job_waits ON job (seen) WHERE waits;
CREATE TABLE IF NOT EXISTS counted (segment INTEGER NOT NULL, derived BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS site (namespace TEXT NOT NULL);
"""
# What never changes is not set again: an index that has none but such columns then stays as it is.
FIXED = ("key", "cluster", "scheduler", "id", "scope")
PUT = (
    f"INSERT INTO job ({', '.join(Entry._fields)}) VALUES ({', '.join('?' * len(Entry._fields))}) ON CONFLICT (key) "
    f"DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in Entry._fields if name not in FIXED)}"
)
# Running jobs are written at every sample, in any order: so much of the file is held (KiB), so much written to the
# journal before it is taken over (pages).
CACHE, JOURNAL = 32 * 1024, 4000
LAYOUT = 4
# From the layout of that number to the next. Columns are only ever added.
MIGRATIONS = {
    1: """ALTER TABLE job ADD COLUMN number TEXT NOT NULL DEFAULT '';
          ALTER TABLE job ADD COLUMN words TEXT NOT NULL DEFAULT '';""",
    2: """ALTER TABLE job ADD COLUMN account TEXT NOT NULL DEFAULT '';
          UPDATE job SET account = coalesce(json_extract(document, '$.account'), '');""",
    3: "ALTER TABLE job ADD COLUMN waits INTEGER NOT NULL DEFAULT 0;",
}
# The same as `fresh` says, in SQL. Every one takes the present time.
STATES = {
    "running": f"alive AND seen + {FRESH} * every + {SLACK} >= ?",
    "pending": f"waits AND seen + {FRESH} * every + {SLACK} >= ?",
    "silent": f"(alive OR waits) AND seen + {FRESH} * every + {SLACK} < ?",
    "ended": "NOT alive AND NOT waits AND ? IS NOT NULL",
}


class Small:
    """One SQLite file, a connection to write and one to read, a lock around each: every call is short."""

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(os.path.join(path, "small.sqlite"), check_same_thread=False)
        try:
            self._prepare(path)
        except BaseException:
            self._connection.close()
            raise
        # Those who read do not wait for those who write, nor they for them.
        self._reading = threading.Lock()
        self._reader = sqlite3.connect(os.path.join(path, "small.sqlite"), check_same_thread=False)
        self._reader.execute("PRAGMA query_only = on")

    def _prepare(self, path: str) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(f"PRAGMA cache_size = -{CACHE}")
        self._connection.execute(f"PRAGMA wal_autocheckpoint = {JOURNAL}")
        (number,) = self._connection.execute("PRAGMA user_version").fetchone()
        if number > LAYOUT:
            raise StoreError(f"{path} was written by a newer jobsight (layout {number}, this one knows {LAYOUT})")
        for layout in range(number, LAYOUT) if number else ():
            # With its number in one transaction: broken off, it is made from the beginning at the next start.
            self._connection.executescript(
                f"BEGIN IMMEDIATE; {MIGRATIONS[layout]} PRAGMA user_version = {layout + 1}; COMMIT;"
            )
        self._connection.executescript(SCHEMA)
        self._connection.execute(f"PRAGMA user_version = {LAYOUT}")
        self._connection.commit()

    def counted(self) -> tuple[int, bytes]:
        """The last segment counted into jobs, and what was derived from it."""
        with self._lock:
            found = self._connection.execute("SELECT segment, derived FROM counted").fetchone()
        return (int(found[0]), bytes(found[1])) if found else (0, b"")

    def count(self, segment: int, derived: bytes, jobs: Sequence[Entry | dict[str, Any]]) -> None:
        """Jobs as they are after a segment, and what its rows led to, in one transaction."""
        rows = [job_row(job) for job in jobs]
        with self._lock, self._connection:
            self._connection.executemany(PUT, rows)
            self._connection.execute("DELETE FROM counted")
            self._connection.execute("INSERT INTO counted VALUES (?, ?)", [segment, derived])

    def put(self, jobs: Sequence[Entry], gone: Sequence[str]) -> None:
        """Jobs as they are now, and without those of which nothing is left."""
        with self._lock, self._connection:
            self._connection.executemany("DELETE FROM job WHERE key = ?", [(key,) for key in gone])
            self._connection.executemany(PUT, jobs)

    def namespace(self) -> UUID:
        """What identifiers of series are made in: random, made once. See `schema.series`."""
        with self._lock, self._connection:
            self._connection.execute(
                "INSERT INTO site SELECT ? WHERE NOT EXISTS (SELECT * FROM site)", [str(new_namespace())]
            )
            return UUID(self._connection.execute("SELECT namespace FROM site").fetchone()[0])

    def latest(self, cluster: str, scheduler: str, number: str, scope: str, until: float) -> dict[str, Any] | None:
        found = self._documents(
            "WHERE cluster = ? AND scheduler = ? AND id = ? AND scope = ? AND started <= ? "
            "ORDER BY seen DESC LIMIT 1",
            [cluster, scheduler, number, scope, until],
        )
        return found[0] if found else None

    def named(self, cluster: str, scheduler: str, numbers: Sequence[str]) -> list[dict[str, Any]]:
        return self._documents(
            f"WHERE cluster = ? AND scheduler = ? AND {among(['id'], len(numbers), '?')} AND scope = ''",
            [cluster, scheduler, *numbers],
        )

    def job(self, key: str, sight: Sight | None = None) -> dict[str, Any] | None:
        seen, names = within(sight, "?")
        found = self._documents(f"WHERE key = ? AND {seen}", [key, *names])
        return found[0] if found else None

    def running(self, now: float, sight: Sight | None) -> list[str]:
        seen, names = within(sight, "?")
        asked = f"SELECT key FROM job WHERE {STATES['running']} AND {seen}"
        with self._reading:
            return [row[0] for row in self._reader.execute(asked, [now, *names])]

    def accounts(self, sight: Sight | None) -> list[str]:
        seen, names = within(sight, "?")
        asked = f"SELECT DISTINCT account FROM job WHERE account <> '' AND {seen} ORDER BY account"
        with self._lock:
            return [row[0] for row in self._connection.execute(asked, names)]

    def jobs(self, query: JobQuery, now: float) -> list[dict[str, Any]]:
        """Newest first; running jobs before ended ones."""
        tests: list[tuple[str, Any]] = [
            ("seen >= ?", query.since),
            ("started <= ?", query.until),
            ("owner = ?", query.owner),
            ("(id = ? OR number = ?)", query.id),
            ("command = ?", query.command),
            ("scheduler = ?", query.scheduler),
            ("instr(nodes, ?)", None if query.node is None else f" {query.node} "),
            (f"instr({SEARCHED}, lower(?))", query.text),
            ("started >= ?", query.begun),
        ]
        wanted = [(test, value) for test, value in tests if value is not None]
        clauses = [test for test, _ in wanted]
        if query.state in STATES:
            clauses.append(STATES[query.state])
            wanted.append(("", now))
        values = [value for test, value in wanted for _ in range(test.count("?") or 1)]
        for names, columns in ((query.ids, ["id", "number"]), (query.accounts, ["account"])):
            if names:
                clauses.append(among(columns, len(names), "?"))
                values += names * len(columns)
        seen, owners = within(query.sight, "?")
        order = first = "ORDER BY alive DESC, seen DESC, started DESC"
        if query.text is not None or query.node is not None:
            # Few are found among many: by the index that has all that is looked at, not in the order of the list.
            first = order.replace("alive", "+alive")
            clauses.append("seen >= 0")
        # Sorted are places, and not documents: a list is short, what it is taken from is not.
        # Those that wait are few among all there ever were; left to itself the engine looks at all for their order.
        table = "job INDEXED BY job_waits" if query.state == "pending" else "job"
        found = f"SELECT rowid FROM {table} WHERE {' AND '.join([*clauses, seen])} {first} LIMIT ?"
        # The sign keeps the index by that order out of it: that would be gone through from its beginning.
        again = "ORDER BY +alive DESC, +seen DESC, +started DESC"
        return self._documents(f"WHERE rowid IN ({found}) {again}", [*values, *owners, query.limit])

    def count_jobs(self) -> tuple[int, float | None, float | None]:
        """How many, when the first began and when the last was seen."""
        with self._lock:
            found = self._connection.execute("SELECT count(*), min(started), max(seen) FROM job").fetchone()
        return (int(found[0]), found[1], found[2])

    def forget(self, before: float) -> int:
        """Delete jobs last seen before that; how many."""
        with self._lock, self._connection:
            return self._connection.execute("DELETE FROM job WHERE seen < ?", [before]).rowcount

    def close(self) -> None:
        self._connection.close()
        self._reader.close()

    def _documents(self, rest: str, values: list[Any]) -> list[dict[str, Any]]:
        with self._reading:
            rows = self._reader.execute(f"SELECT document FROM job {rest}", values).fetchall()
        return [msgspec.json.decode(row[0]) for row in rows]


def job_row(job: Entry | dict[str, Any]) -> tuple[Any, ...]:
    """The columns that are searched by, and the whole as a document."""
    if isinstance(job, Entry):
        return job
    nodes = f" {' '.join(sorted({part['node'] for part in job['parts']}))} "
    commands: dict[str, float] = job["commands"]
    return (
        job["key"], job["cluster"], job["scheduler"], job["id"], job["scope"], job["owner"],
        max(commands, key=lambda name: commands[name], default=""), nodes, job["started"], job["seen"], job["every"],
        any(part["alive"] for part in job["parts"]), json.dumps(job), job["number"],
        f" {job['number']} {job['name']} {job['account']} ", job["account"], False,
    )  # fmt: skip
