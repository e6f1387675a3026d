"""What is small and changes: jobs, and how far the log has been counted. SQLite."""

import json
import os
import sqlite3
import threading
from typing import Any

from jobsight.store.protocol import FRESH, SLACK, JobQuery, StoreError

SCHEMA = """
CREATE TABLE IF NOT EXISTS job (
  key TEXT PRIMARY KEY, cluster TEXT NOT NULL, scheduler TEXT NOT NULL, id TEXT NOT NULL, scope TEXT NOT NULL,
  owner TEXT NOT NULL, command TEXT NOT NULL, nodes TEXT NOT NULL, started REAL NOT NULL, seen REAL NOT NULL,
  every REAL NOT NULL, alive INTEGER NOT NULL, document TEXT NOT NULL, number TEXT NOT NULL DEFAULT '',
  words TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS job_name ON job (cluster, scheduler, id, scope, seen);
CREATE INDEX IF NOT EXISTS job_number ON job (number, seen);
CREATE INDEX IF NOT EXISTS job_seen ON job (seen);
CREATE INDEX IF NOT EXISTS job_owner ON job (owner, seen);
CREATE TABLE IF NOT EXISTS counted (segment INTEGER NOT NULL, derived BLOB NOT NULL);
"""
LAYOUT = 2
# From the layout of that number to the next. Columns are only ever added.
MIGRATIONS = {
    1: """ALTER TABLE job ADD COLUMN number TEXT NOT NULL DEFAULT '';
          ALTER TABLE job ADD COLUMN words TEXT NOT NULL DEFAULT '';"""
}
# The same as `fresh` says, in SQL. Every one takes the present time.
STATES = {
    "running": f"alive AND seen + {FRESH} * every + {SLACK} >= ?",
    "silent": f"alive AND seen + {FRESH} * every + {SLACK} < ?",
    "ended": "NOT alive AND ? IS NOT NULL",
}


class Small:
    """One SQLite file, one connection, a lock around it: every call is short."""

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(os.path.join(path, "small.sqlite"), check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        (number,) = self._connection.execute("PRAGMA user_version").fetchone()
        if number > LAYOUT:
            raise StoreError(f"{path} was written by a newer jobsight (layout {number}, this one knows {LAYOUT})")
        for layout in range(number, LAYOUT) if number else ():
            self._connection.executescript(MIGRATIONS[layout])
        self._connection.executescript(SCHEMA)
        self._connection.execute(f"PRAGMA user_version = {LAYOUT}")
        self._connection.commit()

    def counted(self) -> tuple[int, bytes]:
        """The last segment counted into jobs, and what was derived from it."""
        with self._lock:
            found = self._connection.execute("SELECT segment, derived FROM counted").fetchone()
        return (int(found[0]), bytes(found[1])) if found else (0, b"")

    def count(self, segment: int, derived: bytes, jobs: list[dict[str, Any]]) -> None:
        """Jobs as they are after a segment, and what its rows led to, in one transaction."""
        rows = [_row(job) for job in jobs]
        with self._lock, self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows
            )
            self._connection.execute("DELETE FROM counted")
            self._connection.execute("INSERT INTO counted VALUES (?, ?)", [segment, derived])

    def latest(self, cluster: str, scheduler: str, number: str, scope: str) -> dict[str, Any] | None:
        found = self._documents(
            "WHERE cluster = ? AND scheduler = ? AND id = ? AND scope = ? ORDER BY seen DESC LIMIT 1",
            [cluster, scheduler, number, scope],
        )
        return found[0] if found else None

    def job(self, key: str) -> dict[str, Any] | None:
        found = self._documents("WHERE key = ?", [key])
        return found[0] if found else None

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
            ("instr(lower(id || ' ' || owner || ' ' || command || nodes || words), lower(?))", query.text),
        ]
        wanted = [(test, value) for test, value in tests if value is not None]
        clauses = [test for test, _ in wanted]
        if query.state in STATES:
            clauses.append(STATES[query.state])
            wanted.append(("", now))
        where = ("WHERE " + " AND ".join(clauses)) if clauses else ""
        return self._documents(
            f"{where} ORDER BY alive DESC, seen DESC, started DESC LIMIT ?",
            [*(value for test, value in wanted for _ in range(test.count("?") or 1)), query.limit],
        )

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

    def _documents(self, rest: str, values: list[Any]) -> list[dict[str, Any]]:
        with self._lock:
            rows = self._connection.execute(f"SELECT document FROM job {rest}", values).fetchall()
        return [json.loads(row[0]) for row in rows]


def _row(job: dict[str, Any]) -> tuple[Any, ...]:
    """The columns that are searched by, and the whole as a document."""
    nodes = f" {' '.join(sorted({part['node'] for part in job['parts']}))} "
    commands: dict[str, float] = job["commands"]
    return (
        job["key"], job["cluster"], job["scheduler"], job["id"], job["scope"], job["owner"],
        max(commands, key=lambda name: commands[name], default=""), nodes, job["started"], job["seen"], job["every"],
        any(part["alive"] for part in job["parts"]), json.dumps(job), job["number"],
        f" {job['number']} {job['name']} {job['account']} ",
    )  # fmt: skip
