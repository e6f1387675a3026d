"""How long reports of utilisation and programs take over a year of a million jobs; against a scan of the same jobs.

    python bench/usage_speed.py [--jobs 1000000] [--nodes 500] [--days 365]

The tables are those the server makes (`tally`, `capacity`, `stint`), filled with made-up figures through the store's
own door and kept as in real life; some thousands of jobs wait and run. The rival is what one does without
them: a CSV file of the jobs, as `sacct` prints it, read from its beginning to its end and added up by user. Prints
milliseconds of the first and of the best of several, and of processors' time, which tells more where others work on
the machine. Ends with 1 if the best of a report takes longer than a second.
"""

import argparse
import csv
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from jobsight.analyse.calendar import Calendar, zone
from jobsight.analyse.keeper import open_store
from jobsight.analyse.program import programs, unmapped
from jobsight.analyse.programmap import Maps
from jobsight.analyse.sites import Asked, Site
from jobsight.analyse.utilisation import DIMENSIONS, usage
from jobsight.ingest.accept import Accepted, accept
from jobsight.schema.wire import instant
from jobsight.store.embedded import Embedded
from jobsight.store.sight import Sight

HOUR, DAY = 3600.0, 86400.0
NOW = 1_794_700_800.0
TARGET = 1.0
REPEATS = 3
# Different owners, accounts and commands in one hour.
AN_HOUR = 200
COMMAND = """CASE {0} % 5 WHEN 0 THEN 'python3' WHEN 1 THEN 'vasp_std' WHEN 2 THEN 'gmx_mpi' WHEN 3 THEN 'pw.x'
ELSE 'own' || (({0} * 7 + {1} * 13) % 20000) END"""


def fill(store: Embedded, days: int, nodes: int, jobs: int) -> None:
    """A year, month by month: a commit holds what it makes in memory."""
    for first in range(0, days, 30):
        since, until = NOW - (days - first) * DAY, NOW - max(0, days - first - 30) * DAY
        hours = f"generate_series({int(since // HOUR)}, {int(until // HOUR) - 1}) AS hours (h)"
        store.refill("tally", (since, until), f"""SELECT 'fox', '', '', h * {HOUR!r}, 'u' || ((k * 7 + h) % 1000),
  'a' || (k % 100), 'p' || (k % 4), {COMMAND.format("k", "h")}, 3600.0 * (k % 40), 3600.0 * (k % 60), NULL, NULL
FROM {hours}, generate_series(0, {AN_HOUR - 1}) AS kinds (k)""", [])  # fmt: skip
        store.refill("capacity", (since, until), f"""SELECT 'fox', 'c' || k, '', h * {HOUR!r}, 64, 230400.0,
  100000.0 + h % 24, 150000.0, CASE WHEN k % 50 = 0 THEN 80400.0 ELSE 0 END,
  CASE WHEN k % 50 = 0 THEN 50000.0 ELSE 130400.0 END - h % 24, CASE WHEN k % 50 = 0 THEN 0 ELSE 80400.0 END
FROM {hours}, generate_series(1, {nodes}) AS kinds (k)""", [])  # fmt: skip
        many = int(jobs * (until - since) / (days * DAY))
        step = (until - since) / many
        store.refill("stint", (since, until), f"""SELECT 'fox', '', '', {since!r} + k * {step!r},
  'j' || k || '-{first}',
  'u' || (k % 1000), 'a' || (k % 100), 'p' || (k % 4), {COMMAND.format("k", "7")}, {since!r} + k * {step!r} - 3600.0,
  3600.0, 10.0 * (k % 1000), 1 + k % 200, 1, NULL, 3000.0, 1000000 * (k % 30000), NULL
FROM generate_series(0, {many - 1}) AS kinds (k)""", [])  # fmt: skip
        print(f"filled until day {min(days, first + 30)}", file=sys.stderr, flush=True)
    message = accept(alive(7000))
    assert isinstance(message, Accepted), message
    store.append([message.line]).result()
    store.digest()
    moved = store.compact(NOW + 3 * DAY)
    print(f"{moved} rows are in files", file=sys.stderr, flush=True)


def alive(count: int) -> bytes:
    """Jobs that wait, and as many that run."""
    rows = [
        {"scheduler": "slurm", "job": str(k), "owner": f"u{k % 1000}", "account": f"a{k % 100}", "partition": "p1",
         "state": "PENDING" if k % 2 else "RUNNING", "submit": NOW - 9000.0, "eligible": NOW - 9000.0,
         "start": None if k % 2 else NOW - 600.0, "requested_cpus": 8}
        for k in range(count)
    ]  # fmt: skip
    message = {
        "schema": 1, "cluster": "fox", "node": "ctl", "boot": "b1", "collector": "slurmjob", "time": instant(NOW),
        "uptime": 1000.0, "every": 60.0, "status": "ok", "seconds": 1.0,
        "rows": {name: [row[name] for row in rows] for name in rows[0]},
    }  # fmt: skip
    return json.dumps(message).encode()


def timed(ask: Callable[[], Any]) -> tuple[float, float, float]:
    """Seconds of the first, of the best, and of the processors for that."""
    times, work = [], []
    for _ in range(REPEATS):
        begin, began = time.perf_counter(), time.process_time()
        ask()
        times.append(time.perf_counter() - begin)
        work.append(time.process_time() - began)
    return times[0], min(times), min(work)


def questions(store: Embedded, days: int) -> dict[str, Callable[[], Any]]:
    site = Site(Calendar(zone("Europe/Oslo")), Maps())
    sight = Sight(("u7",))

    def page(by: str, sight: Sight | None = None) -> Any:
        asked = Asked(by=by, since=f"{days}d")
        return usage(store, site, asked, NOW, sight)

    found: dict[str, Callable[[], Any]] = {f"usage by {by}": lambda by=by: page(by) for by in DIMENSIONS}  # type: ignore[misc]
    asked = Asked(since=f"{days}d")
    return found | {
        "usage, one user's": lambda: page("account", sight),
        "programs": lambda: programs(store, site, asked, NOW),
        "programs by tag": lambda: programs(store, site, asked._replace(by="tag"), NOW),
        "programs, one user's": lambda: programs(store, site, asked, NOW, sight),
        "commands not in the map": lambda: unmapped(store, site, asked, NOW),
    }


def scan(folder: str, jobs: int) -> float:
    """Seconds of the rival."""
    path = os.path.join(folder, "jobs.csv")
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("owner", "account", "partition", "start", "end", "cpus", "cpu_time"))
        writer.writerows(
            (f"u{k % 1000}", f"a{k % 100}", f"p{k % 4}", NOW - k, NOW - k + 3600, 8, 3000.0) for k in range(jobs)
        )
    begin = time.perf_counter()
    sums: dict[str, float] = defaultdict(float)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            sums[row["owner"]] += float(row["cpus"]) * (float(row["end"]) - float(row["start"]))
    return time.perf_counter() - begin


def main() -> int:
    asked = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asked.add_argument("--jobs", type=int, default=1_000_000)
    asked.add_argument("--nodes", type=int, default=500)
    asked.add_argument("--days", type=int, default=365)
    given = asked.parse_args()
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(os.path.join(folder, "store"))
        fill(store, given.days, given.nodes, given.jobs)
        rival = scan(folder, given.jobs)
        print(f"{given.jobs} jobs of {given.days} days on {given.nodes} nodes; the scan takes {1000 * rival:.0f} ms")
        print(f"{'report':28} {'first':>8} {'best':>8} {'CPU':>8}  times quicker than the scan")
        for name, ask in questions(store, given.days).items():
            first, best, work = timed(ask)
            worst = max(worst, best)
            print(
                f"{name:28} {1000 * first:5.0f} ms {1000 * best:5.0f} ms {1000 * work:5.0f} ms  {rival / best:.1f}",
                flush=True,
            )
        store.close()
    print(f"the slowest takes {1000 * worst:.0f} ms, of {1000 * TARGET:.0f} ms allowed")
    return 0 if worst <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
