"""How long lists of jobs take at half a million of them, and how quickly they come in; against a scan of the same.

    python bench/job_list.py [--jobs 500000] [--database URL]

Jobs are rows of `slurmjob` as an agent sends them, taken through the store's own door: accepted, logged, digested.
The rivals have the same jobs: a CSV file read from its beginning to its end, as one does with the output of `sacct`,
and a SQLite table without an index. Prints milliseconds of the best of several; each list is of at most 1000 jobs.
Ends with 1 if a list takes longer than 100 ms.
"""

import argparse
import csv
import json
import os
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from jobsight.analyse.keeper import open_database, open_store
from jobsight.ingest.accept import Accepted, accept
from jobsight.schema.wire import instant
from jobsight.store.protocol import JobQuery, Store

START = 1_794_700_800.0
A_MESSAGE = 5000
TARGET = 0.1
REPEATS = 5
STATES = ("COMPLETED",) * 16 + ("FAILED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY")


def rows(first: int, count: int, total: int, chance: random.Random) -> dict[str, list[Any]]:
    """Jobs of a month: the last thousands run or wait."""
    found: dict[str, list[Any]] = {}
    for number in range(first, first + count):
        submit = START + number * 30 * 86400.0 / total
        left = total - number
        state = "PENDING" if left < 2000 else "RUNNING" if left < 7000 else chance.choice(STATES)
        begun, over = state != "PENDING", state not in ("PENDING", "RUNNING")
        row = {
            "scheduler": "slurm", "job": str(1_000_000 + number), "step": None, "entry": number,
            "owner": f"u{chance.randrange(1000)}", "account": f"a{chance.randrange(100)}", "partition": "normal",
            "qos": "normal", "name": f"run{number % 977}", "work_dir": "/home/user/work", "state": state,
            "nodes": f"c{chance.randrange(2000):04d}" if begun else None, "submit": submit, "eligible": submit,
            "start": submit + 60 if begun else None, "ended": submit + 3660 if over else None,
            "elapsed": 3600.0 if over else None, "time_limit": 7200.0, "exit_code": 0 if over else None,
            "exit_signal": 0 if over else None, "requested_cpus": 8, "requested_memory": 2**34, "cpus": 8,
            "memory": 2**34, "node_count": 1, "requested": "cpu=8,mem=16G,node=1",
            "cpu_time": 3500.0 if over else None,
        }  # fmt: skip
        for name, value in row.items():
            found.setdefault(name, []).append(value)
    return found


def line(first: int, columns: dict[str, list[Any]], now: float) -> bytes:
    message = {
        "schema": 1, "cluster": "fox", "node": "ctl", "boot": "b1", "collector": "slurmjob",
        "time": instant(now + first / 1e6), "uptime": 1000.0 + first / 1e6, "every": 60.0, "status": "ok",
        "seconds": 1.0, "rows": columns,
    }  # fmt: skip
    return json.dumps(message).encode()


def best(ask: Callable[[], Any]) -> tuple[float, int]:
    times, found = [], 0
    for _ in range(REPEATS):
        begin = time.perf_counter()
        found = len(ask())
        times.append(time.perf_counter() - begin)
    return min(times), found


def questions(now: float, total: int) -> dict[str, tuple[JobQuery, Callable[[dict[str, str]], bool], str]]:
    """By name: the question, the same for a line of CSV, and in SQL."""
    day, number = now - 86400.0, str(1_000_000 + total // 2)
    return {
        "the last day": (JobQuery(since=day), lambda row: float(row["seen"]) >= day, f"seen >= {day}"),
        "all time": (JobQuery(), lambda _: True, "1"),
        "one user's": (JobQuery(owner="u7"), lambda row: row["owner"] == "u7", "owner = 'u7'"),
        "one account's": (JobQuery(accounts=("a7",)), lambda row: row["account"] == "a7", "account = 'a7'"),
        "those that wait": (JobQuery(state="pending"), lambda row: row["state"] == "PENDING", "state = 'PENDING'"),
        "those that run": (JobQuery(state="running"), lambda row: row["state"] == "RUNNING", "state = 'RUNNING'"),
        "one number": (JobQuery(id=number), lambda row: row["job"] == number, f"job = '{number}'"),
        "one node, last day": (
            JobQuery(node="c0007", since=day),
            lambda row: row["nodes"] == "c0007" and float(row["seen"]) >= day,
            f"nodes = 'c0007' AND seen >= {day}",
        ),
        "part of a name, last week": (
            JobQuery(text="run97", since=now - 7 * 86400),
            lambda row: "run97" in row["name"] and float(row["seen"]) >= now - 7 * 86400,
            f"instr(name, 'run97') AND seen >= {now - 7 * 86400}",
        ),
    }


def fetched(rival: sqlite3.Connection, sql: str) -> list[Any]:
    return rival.execute(sql).fetchall()


def scan(path: str, test: Callable[[dict[str, str]], bool]) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        found = [row for row in csv.DictReader(file) if test(row)]
    return sorted(found, key=lambda row: -float(row["seen"]))[:1000]


def fill(store: Store, folder: str, total: int, now: float) -> tuple[float, float]:
    """Into the store and the rivals; seconds to accept and to digest."""
    chance = random.Random(1)
    names = ("job", "owner", "account", "state", "nodes", "name", "seen")
    table = sqlite3.connect(os.path.join(folder, "rival.sqlite"))
    table.execute(f"CREATE TABLE job ({', '.join(names)})")
    accepting = digesting = 0.0
    with open(os.path.join(folder, "rival.csv"), "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for first in range(0, total, A_MESSAGE):
            columns = rows(first, min(A_MESSAGE, total - first), total, chance)
            seen = [now if end is None else end for end in columns["ended"]]
            lines = [*zip(*(columns[name] for name in names[:-1]), seen, strict=True)]
            writer.writerows(lines)
            table.executemany("INSERT INTO job VALUES (?, ?, ?, ?, ?, ?, ?)", lines)
            text = line(first, columns, now)
            begin = time.perf_counter()
            message = accept(text)
            assert isinstance(message, Accepted), message
            store.append([message.line]).result()
            accepting += time.perf_counter() - begin
            begin = time.perf_counter()
            store.digest()
            digesting += time.perf_counter() - begin
    table.commit()
    table.close()
    return accepting, digesting


def main() -> int:
    asked = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asked.add_argument("--jobs", type=int, default=500_000)
    asked.add_argument("--database", help="a PostgreSQL that is empty, in place of the embedded store")
    given = asked.parse_args()
    now = START + 30 * 86400.0
    with tempfile.TemporaryDirectory() as folder:
        store: Store = open_database(given.database) if given.database else open_store(os.path.join(folder, "store"))
        accepting, digesting = fill(store, folder, given.jobs, now)
        whole = accepting + digesting
        print(f"{given.jobs} jobs: accepted in {accepting:.1f} s, digested in {digesting:.1f} s")
        speeds = [f"{given.jobs / part:.0f}" for part in (accepting, digesting, whole)]
        print(f"{speeds[0]} and {speeds[1]} jobs/s, {speeds[2]} in all")
        rival = sqlite3.connect(os.path.join(folder, "rival.sqlite"))
        slow = 0
        print(f"{'list':<28}{'jobs':>6}{'ms':>9}{'CSV, ms':>10}{'ratio':>8}{'no index, ms':>14}{'ratio':>8}")
        for name, (query, test, sql) in questions(now, given.jobs).items():
            ours, found = best(partial(store.jobs, query, now))
            begin = time.perf_counter()
            theirs = len(scan(os.path.join(folder, "rival.csv"), test))
            scanned = time.perf_counter() - begin
            bare = f"SELECT * FROM job WHERE {sql} ORDER BY seen DESC LIMIT 1000"
            plain, _ = best(partial(fetched, rival, bare))
            wrong = "" if theirs == found else f"   WRONG: the file has {theirs}"
            slow += ours > TARGET or bool(wrong)
            print(
                f"{name:<28}{found:>6}{1000 * ours:>9.1f}{1000 * scanned:>10.0f}{scanned / ours:>8.0f}"
                f"{1000 * plain:>14.1f}{plain / ours:>8.1f}{'   TOO SLOW' if ours > TARGET else ''}{wrong}"
            )
        store.close()
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
