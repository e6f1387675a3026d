"""Bytes a stored process row takes once it is in a file, against the messages it came in.

    python bench/store_size.py [--nodes 20] [--hours 3]

Nodes with about 40 processes each send every 30 s: jobs that come and go, counters that move slowly, processes that
sleep, times with the jitter a scheduler has. The messages go through the store itself: accepted, logged, digested,
compacted by the hour and then by the day. Prints, for each stage, bytes per row and the ratio to the JSON; ends with
1 if a row takes more than the target.
"""

import argparse
import gzip
import json
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from jobsight.analyse.keeper import open_store
from jobsight.schema.wire import instant

TARGET = 15.0
START = 1_794_700_800.0  # a midnight, UTC
EVERY = 30.0
PROCESSES = 40
COMMANDS = ("vasp_std", "gmx_mpi", "python3", "lmp", "cp2k.psmp", "julia", "orca", "bash", "slurmstepd", "sleep")
FIELDS = (
    "pid", "started", "parent", "session", "process_group", "scheduler", "job", "owner", "command", "state",
    "threads", "cpu_user", "cpu_system", "cpu_children", "memory_anon", "memory_shared", "memory_data",
    "memory_virtual", "read", "written",
)  # fmt: skip


class Process:
    """One that computes, waits or sleeps, in the manner of real ones."""

    def __init__(self, chance: random.Random, uptime: float, job: int, owner: str, pid: int) -> None:
        self.chance, self.pid, self.job, self.owner = chance, pid, job, owner
        self.started = math.floor(uptime * 100) / 100
        self.parent = pid - chance.randint(1, 40)
        self.command = chance.choice(COMMANDS)
        # Some sleep, the others compute on one core or several.
        self.busy = 0.0 if chance.random() < 0.25 else chance.choice((1.0, 1.0, 1.0, 0.6, 7.7))
        self.threads = max(1, round(self.busy)) + chance.choice((0, 0, 3))
        self.user = self.system = 0.0
        self.anon, self.read, self.written = chance.randint(1, 500_000) * 4096, chance.randint(0, 10_000) * 4096, 0
        self.shared, self.data = chance.randint(500, 20_000) * 4096, self.anon + (64 << 20)
        self.virtual = self.data + (256 << 20)

    def row(self) -> tuple[Any, ...]:
        if self.busy:
            self.user += round(EVERY * self.busy * self.chance.uniform(0.97, 1.0), 2)
            self.system += round(self.chance.uniform(0.0, 0.3), 2)
            if self.chance.random() < 0.5:
                self.anon += self.chance.randint(-2000, 2200) * 4096
            if self.chance.random() < 0.1:
                self.written += self.chance.randint(1, 100_000) * 4096
                self.read += self.chance.randint(0, 100_000) * 4096
        state = "R" if self.busy and self.chance.random() < 0.9 else "S"
        return (
            self.pid, self.started, self.parent, self.parent, self.parent, "slurm", str(self.job), self.owner,
            self.command, state, self.threads, round(self.user, 2), round(self.system, 2), 0.0, max(self.anon, 4096),
            self.shared, self.data, self.virtual, self.read, self.written,
        )  # fmt: skip


def node_messages(name: str, number: int, samples: int, chance: random.Random) -> Iterator[bytes]:
    """What one node sends: jobs of some processes each, of some minutes to some hours."""
    boot = f"{chance.getrandbits(128):032x}"
    jobs: list[tuple[float, list[Process]]] = []
    pid, job = 2000, 100_000 + 1000 * number
    for sample in range(samples):
        at = START + sample * EVERY + chance.uniform(0.0002, 0.02)
        uptime = 1_000_000.0 + at - START
        jobs = [item for item in jobs if item[0] > at]
        while sum(len(members) for _, members in jobs) < PROCESSES:
            owner, job = f"user{chance.randint(1, 60)}", job + 1
            members = []
            for _ in range(chance.randint(2, 16)):
                pid += chance.randint(1, 30)
                members.append(Process(chance, uptime - chance.uniform(0, EVERY), job, owner, pid))
            jobs.append((at + chance.expovariate(1 / 5400), members))
        rows = [process.row() for _, members in jobs for process in members]
        columns = dict(zip(FIELDS, map(list, zip(*rows, strict=True)), strict=True))
        message = {
            "schema": 1, "cluster": "fox", "node": name, "boot": boot, "collector": "process", "time": instant(at),
            "uptime": round(uptime, 2), "every": EVERY, "status": "ok", "seconds": 0.011, "rows": columns,
        }  # fmt: skip
        yield json.dumps(message, separators=(",", ":")).encode()


def main() -> int:
    accept = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    accept.add_argument("--nodes", type=int, default=20)
    accept.add_argument("--hours", type=int, default=3)
    given = accept.parse_args()
    samples = int(given.hours * 3600 / EVERY)
    streams = [node_messages(f"c{n}", n, samples, random.Random(n)) for n in range(given.nodes)]
    raw = packed = 0
    with tempfile.TemporaryDirectory() as path:
        store = open_store(path)
        spent = 0.0
        for lines in zip(*streams, strict=True):
            raw += sum(map(len, lines))
            packed += sum(len(gzip.compress(line, 1)) for line in lines)
            stored = store.append(lines)
        stored.result(60)  # what was appended before it is on disk too
        began = time.process_time()
        store.digest()
        loaded = time.process_time() - began
        ((rows, check),) = store.query("SELECT count(*), sum(cpu_user) FROM process")
        sizes = {"JSON, columns": raw, "the same, gzip -1": packed}
        # Until then the newest rows are in the engine's own log.
        store.query("CHECKPOINT")
        sizes["DuckDB, all tables"] = os.path.getsize(os.path.join(path, "hot.duckdb"))
        for name, now in (
            ("Parquet, hours", START + given.hours * 3600 + 900),
            ("Parquet, day", START + 86400 + 7200),
        ):
            began = time.process_time()
            store.compact(now, least=1)
            spent = spent or time.process_time() - began
            assert store.query("SELECT count(*), round(sum(cpu_user), 2) FROM process") == [(rows, round(check, 2))]
            sizes[name] = next(table.size for table in store.status().tables if table.table == "process")
        store.close()
    print(f"{rows} rows of {given.nodes} nodes over {given.hours} h")
    for name, size in sizes.items():
        print(f"  {name:<20} {size / rows:8.2f} bytes a row   {size / raw:6.3f} of the JSON")
    print(f"  digesting {1e6 * loaded / rows:.2f} µs of CPU a row, compacting {1e6 * spent / rows:.2f} (all tables)")
    worst = max(sizes["Parquet, hours"], sizes["Parquet, day"]) / rows
    print(f"{worst:.2f} bytes a row; the target is at most {TARGET:.0f}: {'held' if worst <= TARGET else 'MISSED'}")
    return 0 if worst <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
