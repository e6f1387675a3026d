"""The embedded store: log, hot tables, cold files and jobs in one directory, owned by one process.

A segment of the log is digested in two commits: first what it means for jobs (SQLite, with the rows derived from
it), then its rows (DuckDB). Either may be interrupted; the next start sees how far each got and goes on from there,
so every message counts once.
"""

import os
import sqlite3
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cached_property
from typing import Any
from uuid import UUID

import duckdb
import msgspec

from jobsight import files
from jobsight.ingest.accept import Accepted, Refused, recall
from jobsight.ingest.quarantine import Quarantine
from jobsight.store import cold, folder
from jobsight.store.amendment import Amendments
from jobsight.store.counter import Counter
from jobsight.store.findings import TABLES, StoredFindings
from jobsight.store.hot import REFUSALS, Hot
from jobsight.store.log import Log
from jobsight.store.plan import LEAST
from jobsight.store.protocol import LABEL, MOST_WAITING, Backlog, Change, InUseError, JobQuery, Node, StoreError
from jobsight.store.sight import Sight
from jobsight.store.small import Small
from jobsight.store.status import Status, export, status
from jobsight.store.tokens import File

# Trouble that passes: the disk's, a lock's, the engine's own.
WAITS = (OSError, sqlite3.OperationalError, duckdb.Error)
# What DuckDB makes of Ctrl-C, in a RuntimeError.
INTERRUPTED = "Query interrupted"


class Embedded:
    """See `store.protocol.Store`."""

    def __init__(self, path: str, counter: Counter, derived: dict[str, type[Any]], most: int = MOST_WAITING) -> None:
        """With `most` bytes waiting to be digested no more is taken."""
        self._path = path
        self._counter = counter
        self._digesting = threading.Lock()
        self._restored = False
        self._said = ""
        try:
            files.make_directory(path)
            self._lock = files.Lock(os.path.join(path, "lock"))
        except files.LockedError as error:
            raise InUseError(f"the store is in use: {error}") from None
        except OSError as error:
            raise StoreError(f"cannot use {path}: {error.strerror}") from None
        try:
            self._open(path, derived)
        except BaseException:
            self._lock.release()
            raise
        first = max(self.hot.loaded(), self.small.counted()[0]) + 1
        self._log = Log(os.path.join(path, "log"), first, most)

    def _open(self, path: str, derived: dict[str, type[Any]]) -> None:
        try:
            folder.check(path)
            self.hot = Hot(path, derived)
            try:
                self.cold = cold.Cold(path, self.hot)
                self.small = Small(path)
                self._amendments = Amendments(self.hot, self.cold, self.small)
            except BaseException:
                self.hot.close()
                raise
        except (duckdb.Error, sqlite3.Error, OSError) as error:
            raise StoreError(f"cannot open the store in {path}: {str(error).splitlines()[0]}") from None

    def append(self, lines: Sequence[bytes]) -> "Future[None]":
        return self._log.append(b"\n".join(lines))

    def backlog(self) -> Backlog:
        return self._log.backlog()

    @property
    def digests(self) -> bool:
        return True

    def digest(self) -> int:
        with self._digesting:
            total = 0
            for number in self._log.finished():
                try:
                    total += self._digest_segment(number)
                except Exception as error:
                    self._restored = False
                    if str(error) == INTERRUPTED:
                        raise KeyboardInterrupt from error
                    if isinstance(error, WAITS) and not isinstance(error, REFUSALS):
                        # A full disk, most likely. Nothing is lost: the segment waits.
                        self._say(f"segment {number}", "waits", error)
                        return total
                    # Nobody foresaw it. It must not stop what comes after, and is kept to be looked at.
                    self._say(f"segment {number}", "was set aside", error)
                    self._log.set_aside(number)
            return total

    def _say(self, what: str, fate: str, error: Exception) -> None:
        text = f"jobsight: {what} {fate}: {error}"
        if text != self._said:
            print(text, file=sys.stderr, flush=True)
        self._said = text

    def _digest_segment(self, number: int) -> int:
        counted, kept = self.small.counted()
        if number <= self.hot.loaded():
            self._log.remove(number)
            return 0
        lines = (line for payload in self._log.payloads(number) for line in payload.split(b"\n"))
        read = [recall(line, self._counter.wanted) for line in lines]
        fresh = self._fresh([found for found in read if isinstance(found, Accepted)])
        if number > counted:
            if not self._restored:
                self._counter.restore(self.small, self.hot)
                self._restored = True
            derived, jobs = self._counter.count(fresh)
            self.small.count(number, msgspec.msgpack.encode(derived), jobs)
        else:
            derived = msgspec.msgpack.decode(kept, type=dict[str, list[tuple[Any, ...]]])
        self._refuse([found for found in read if isinstance(found, Refused)])
        self.hot.load(number, fresh, derived, self._refuse_messages)
        self._log.remove(number)
        return len(fresh)

    def _refuse_messages(self, messages: Sequence[Accepted]) -> None:
        self._refuse([Refused(message.line, "$.rows", "the tables would not take it") for message in messages])

    def _refuse(self, bad: list[Refused]) -> None:
        if bad:
            Quarantine(os.path.join(self._path, "quarantine")).keep(bad)

    def _fresh(self, messages: Sequence[Accepted]) -> list[Accepted]:
        """Those not stored yet, each once."""
        if not messages:
            return []
        times = sorted({message.time for message in messages})
        seen = set(self.cold.query(SEEN, [times[0], times[-1], times], (times[0], times[-1])))
        found = []
        for message in messages:
            if message.identity not in seen:
                seen.add(message.identity)
                found.append(message)
        return found

    def nodes(self, now: float) -> list[Node]:
        return [Node(*row) for row in self.hot.query(NODES.replace("$now", repr(now)))]

    def jobs(self, query: JobQuery, now: float) -> list[dict[str, Any]]:
        return self.small.jobs(query, now)

    def job(self, key: str, sight: Sight | None = None) -> dict[str, Any] | None:
        return self.small.job(key, sight)

    def running(self, now: float, sight: Sight | None = None) -> list[str]:
        return self.small.running(now, sight)

    def accounts(self, sight: Sight | None = None) -> list[str]:
        return self.small.accounts(sight)

    def query(
        self, sql: str, values: Iterable[Any] = (), between: tuple[float, float] | None = None
    ) -> list[tuple[Any, ...]]:
        """With `between`, the caller promises that no row of another time matters."""
        return self.hot.query(sql, values) if between is None else self.cold.query(sql, values, between)

    @contextmanager
    def still(self) -> Iterator[bool]:
        """See `store.protocol.Amends`, also for the next ones."""
        with self._digesting:
            yield self.small.counted()[0] <= self.hot.loaded()

    def latest(self, cluster: str, scheduler: str, number: str, scope: str, until: float) -> dict[str, Any] | None:
        return self.small.latest(cluster, scheduler, number, scope, until)

    def named(self, cluster: str, scheduler: str, numbers: Sequence[str]) -> list[dict[str, Any]]:
        return self.small.named(cluster, scheduler, numbers)

    def horizon(self, table: str) -> float:
        return self.cold.horizon(table)

    def mark(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self._amendments.mark(table, rows)

    def unmark(self, table: str, places: Sequence[tuple[str, str, float, float]]) -> None:
        self._amendments.unmark(table, places)

    def change(self, changes: Sequence[Change]) -> None:
        self._restored = False
        self._amendments.change(changes)

    def refill(
        self,
        table: str,
        span: tuple[float, float],
        sql: str,
        label: Sequence[tuple[Any, ...]],
        names: Sequence[str] = LABEL,
        reads: tuple[float, float] | None = None,
    ) -> int:
        return self._amendments.refill(table, span, sql, label, names, reads)

    def namespace(self) -> UUID:
        return self.small.namespace()

    def compact(self, now: float, least: int = LEAST) -> int:
        """Move rows of hours and days that are over to files; how many went. What fails for now is tried again."""
        try:
            return self.cold.compact(now, least)
        except WAITS as error:
            self._say("compaction", "waits", error)
            return 0

    def forget(self, before: float, tables: Iterable[str] = ()) -> int:
        """Drop rows older than `before`, of all tables if none is named; how many. Jobs and their totals stay."""
        chosen = list(tables) or list(self.hot.columns())
        return sum(self.cold.forget(table, before) for table in chosen)

    def forget_jobs(self, before: float) -> int:
        """Drop jobs last seen before that; how many."""
        return self.small.forget(before)

    def status(self) -> Status:
        return status(self._path, self.hot, self.cold, self.small)

    def export(self, table: str, path: str, since: float, until: float) -> int:
        """One table's rows of a time into a Parquet file of their own; how many."""
        return export(self.hot, table, path, since, until)

    @cached_property
    def findings(self) -> StoredFindings:
        return StoredFindings(File(os.path.join(self._path, "findings.sqlite"), TABLES))

    def close(self) -> None:
        if "findings" in vars(self):
            self.findings.close()
        self._log.close()
        self.cold.close()
        with self._digesting:
            self.hot.close()
            self.small.close()
        self._lock.release()


SEEN = """
SELECT cluster, node, boot, collector, time FROM run WHERE time BETWEEN ? AND ? AND time IN (SELECT unnest(?))
"""
# A week is enough to call a node known; what has been silent longer is not on the start page.
NODES = """
WITH latest AS (
  SELECT cluster, node, max(time) AS seen, arg_max(every, time) AS every FROM run
  WHERE time BETWEEN $now - 7 * 86400 AND $now + 300 GROUP BY ALL),
memories AS (
  SELECT cluster, node, arg_max(total, time) AS total, arg_max(available, time) AS available FROM memory
  WHERE time BETWEEN $now - 7 * 86400 AND $now + 300 GROUP BY ALL),
loads AS (SELECT cluster, node, arg_max(load1, time) AS load1 FROM load
  WHERE time BETWEEN $now - 7 * 86400 AND $now + 300 GROUP BY ALL),
machines AS (
  SELECT cluster, node, arg_max(cpus, time) AS cpus, arg_max(model, time) AS model FROM hardware GROUP BY ALL),
troubles AS (
  SELECT cluster, node, count(*) AS number FROM (
    SELECT cluster, node, collector, arg_max(status, time) AS status FROM run
    WHERE time BETWEEN $now - 86400 AND $now + 300 GROUP BY ALL)
  WHERE status IN ('failed', 'late') GROUP BY ALL)
SELECT cluster, node, seen, coalesce(every, 30), cpus, total, available, load1, model, coalesce(number, 0)
FROM latest LEFT JOIN memories USING (cluster, node) LEFT JOIN loads USING (cluster, node)
LEFT JOIN machines USING (cluster, node) LEFT JOIN troubles USING (cluster, node)
ORDER BY cluster, node
"""
