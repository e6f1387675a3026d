"""How long questions take on a full store, and how that grows with its age; against SQLite with the same rows.

    python bench/query_speed.py [--rows 2000000] [--days 1] [--rival 500000]
    python bench/query_speed.py --rows 200000 --days 1,10,100

`--rows` process rows a day, about 10 000 jobs in all, usage and rollups made by the store's own code, all in files.
Prints milliseconds: of the first time, of the best of several, and the CPU time of that one, all cores together, for
machines that others use too. The rival has at most `--rival` of the same rows, with an index by job; where a question
looks at all rows its time is scaled to as many. Ends with 1 if a target is missed; targets are for 20 million rows on
two cores.
"""

import argparse
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from jobsight.analyse.job import Job, Part
from jobsight.analyse.keeper import entry, open_store
from jobsight.analyse.late import due
from jobsight.analyse.profile import profile
from jobsight.analyse.slice import roll
from jobsight.store.embedded import Embedded
from jobsight.store.protocol import JobQuery

START = 1_794_700_800.0  # a midnight, UTC
DAY = 86400.0
EVERY = 30.0
SAMPLES = 2880
PROCESSES, SLOTS, JOBS = 8, 5, 10_000
REPEATS = 5

RAW = """SELECT job, sum(cpu), max(memory), sum(samples) FROM (
  SELECT job, node, pid, max(cpu_user + cpu_system) AS cpu, max(memory_anon) AS memory, count(*) AS samples
  FROM process GROUP BY job, node, pid) AS one GROUP BY job"""
SUMMARIES = "SELECT job_key, sum(cpu_time), max(memory_peak), sum(covered) FROM slice GROUP BY job_key"
HOSTS = "SELECT node, time, sum(cpu_time) / 3600 FROM share GROUP BY node, time"
RIVAL_PROFILE = """SELECT node, pid, max(command), max(cpu_user), max(memory_anon), max(threads), max(read),
  max(written) FROM process WHERE job = ? GROUP BY node, pid"""
RIVAL_SERIES = (
    "SELECT node, time, sum(cpu_user + cpu_system), sum(memory_anon) FROM process WHERE job = ? GROUP BY 1, 2"
)
RIVAL_JOB = (RIVAL_PROFILE, RIVAL_SERIES)
RIVAL_HOSTS = "SELECT node, floor(time / 3600), max(cpu_user) FROM process GROUP BY 1, 2"
COLUMNS = "node, time, pid, job, owner, command, threads, cpu_user, cpu_system, memory_anon, read, written"


class Load(NamedTuple):
    """What a day holds."""

    nodes: int
    length: int
    """Samples of one job."""

    @property
    def rows(self) -> int:
        return self.nodes * SLOTS * PROCESSES * SAMPLES

    @property
    def jobs(self) -> int:
        return self.nodes * SLOTS * -(-SAMPLES // self.length)


def load(rows: int, days: int) -> Load:
    nodes = max(1, round(rows / (SLOTS * PROCESSES * SAMPLES)))
    return Load(nodes, max(4, round(nodes * SLOTS * SAMPLES * days / JOBS)))


def fill(store: Embedded, day: int, size: Load) -> None:
    """One day of rows, written into the tables by the engine itself and moved to files by the store."""
    begin = START + day * DAY
    per_slot = -(-SAMPLES // size.length)
    place = f"slot // {SLOTS} AS number, slot * {per_slot} + k // {size.length} + {day * size.jobs} AS job, k, slot"
    stamp = f"'fox', 'c' || number, 'b1', {begin} + k * {EVERY} + number * 0.013"
    noise = "(hash(i) % 1000) / 1000.0"
    with store.hot.transaction() as cursor:
        cursor.execute(
            f"""INSERT INTO main.process (cluster, node, boot, time, pid, started, parent, session, process_group,
  scheduler, job, owner, command, state, threads, cpu_user, cpu_system, cpu_children, memory_anon, memory_shared,
  memory_virtual, read, written)
SELECT {stamp}, job % 30000 * 8 + p, round(k // {size.length} * {size.length * EVERY} + {day * DAY}, 2), 1, 1, 1,
  'slurm', CAST(job AS VARCHAR), 'user' || job % 60, 'program' || job % 23, 'R', 1 + p % 4,
  round((k % {size.length}) * 28.5 + {noise}, 2), round((k % {size.length}) * 0.2 + {noise}, 2), 0,
  CAST((100 + p * 50 + hash(i) % 50) * 4096 * (1 + job % 100) AS BIGINT), 4096 * 500, 10000000000,
  CAST((k % {size.length}) * 4096 * (job % 50) AS BIGINT), CAST((k % {size.length}) * 4096 * (p % 3) AS BIGINT)
FROM (SELECT i, i % {PROCESSES} AS p, {place} FROM (SELECT i, i // {PROCESSES} % {SAMPLES} AS k,
  i // {PROCESSES * SAMPLES} AS slot FROM range({size.rows}) AS all_rows (i)) AS cut) AS one"""
        )
        cursor.execute(
            f"""INSERT INTO main.usage (cluster, node, boot, time, job_key, source, seconds, covered, cpu_time, cpus,
  memory, memory_limit, threads, processes, read, written)
SELECT {stamp}, 'fox.slurm.' || job, 'process', {EVERY}, {EVERY}, 200 + 30 * {noise}, 8,
  CAST((100 + hash(i) % 50) * 4096 * 8 * (1 + job % 100) AS BIGINT), 256000000000, 20, 8, 4096 * 300, 4096 * 100
FROM (SELECT i, {place} FROM (SELECT i, i % {SAMPLES} AS k, i // {SAMPLES} AS slot
  FROM range({size.nodes * SLOTS * SAMPLES}) AS all_rows (i)) AS cut) AS one"""
        )
        cursor.execute(
            f"""INSERT INTO main.run
  (cluster, node, boot, collector, time, uptime, every, status, seconds, missing, count)
SELECT 'fox', 'c' || number, 'b1', 'process', {begin} + k * {EVERY} + number * 0.013,
  {day * DAY} + k * {EVERY} + number * 0.013, {EVERY}, 'ok', 0.01, '{{}}', 40
FROM (SELECT i // {SAMPLES} AS number, i % {SAMPLES} AS k
  FROM range({size.nodes * SAMPLES}) AS all_rows (i)) AS one"""
        )
    store.mark("due", due(("fox", begin + hour * 3600 + 1800, 30.0) for hour in range(24)))
    store.small.put([entry(job) for job in jobs(day, size)], [])
    roll(store, begin + 2 * DAY)
    store.compact(begin + DAY + 3 * 3600, least=1)


def jobs(day: int, size: Load) -> list[Job]:
    per_slot = -(-SAMPLES // size.length)
    found = []
    for slot in range(size.nodes * SLOTS):
        for turn in range(per_slot):
            number = slot * per_slot + turn + day * size.jobs
            last = min(SAMPLES, (turn + 1) * size.length) - 1
            node, begin = slot // SLOTS, START + day * DAY
            began, seen = (begin + k * EVERY + node * 0.013 for k in (turn * size.length, last))
            seconds = seen - began + EVERY
            part = Part(
                f"c{node}", "process", seen, False, seconds, seconds, 7.2 * seconds, 8, began=began, every=EVERY
            )
            part.commands = {f"program{number % 23}": 7.2 * seconds}
            job = Job(
                f"fox.slurm.{number}", "fox", "slurm", str(number), "", f"user{number % 60}", began, seen, EVERY,
                parts=[part],
            )  # fmt: skip
            job.settle()
            found.append(job)
    return found


def timed(act: Callable[[], Any]) -> tuple[float, float, float]:
    """Milliseconds of the first time and of the best, and the least CPU time."""
    taken, spent = [], []
    for _ in range(REPEATS):
        began, worked = time.perf_counter(), time.process_time()
        act()
        taken.append(1000 * (time.perf_counter() - began))
        spent.append(1000 * (time.process_time() - worked))
    return taken[0], min(taken), min(spent)


def rival(store: Embedded, path: str, limit: int) -> tuple[sqlite3.Connection, int]:
    """The same rows in SQLite, as many as that; the newest."""
    found = sqlite3.connect(os.path.join(path, "rival.sqlite"))
    found.execute(f"CREATE TABLE process ({COLUMNS})")
    rows = store.query(f"SELECT {COLUMNS} FROM process ORDER BY time DESC LIMIT {limit}")
    found.executemany(f"INSERT INTO process VALUES ({', '.join('?' * (COLUMNS.count(',') + 1))})", rows)
    found.execute("CREATE INDEX process_job ON process (job, time)")
    found.commit()
    return found, len(rows)


def measure(store: Embedded, path: str, days: int, limit: int) -> tuple[dict[str, float], dict[str, float]]:
    """Print each question's times; the best of each, and the least CPU time."""
    now = START + days * DAY
    ((total,),) = store.query("SELECT count(*) FROM process")
    one = store.jobs(JobQuery(since=now - 600, until=now - 600, limit=1), now)[0]
    questions: dict[str, Callable[[], Any]] = {
        "one job's profile": lambda: profile(store, one, now),
        "all jobs, from rows": lambda: store.query(RAW),
        "all jobs, from slices": lambda: store.query(SUMMARIES),
        "hosts by hour, from shares": lambda: store.query(HOSTS),
    }
    other, number = rival(store, path, limit)
    theirs: dict[str, Callable[[], Any]] = {
        "one job's profile": lambda: [
            other.execute(sql, [one["id"]]).fetchall() for sql in (RIVAL_PROFILE, RIVAL_SERIES)
        ],
        "all jobs, from rows": lambda: other.execute(RAW).fetchall(),
        "hosts by hour, from shares": lambda: other.execute(RIVAL_HOSTS).fetchall(),
    }
    best, least = {}, {}
    for name, act in questions.items():
        first, best[name], cpu = timed(act)
        least[name] = cpu
        line = f"  {name:<28} first {first:7.1f}  best {best[name]:7.1f}  CPU {cpu:7.1f}"
        if name in theirs:
            scale = 1.0 if "one job" in name else total / number
            slow = timed(theirs[name])[2] * scale
            line += f"   SQLite's CPU {slow:9.1f}{'' if scale == 1 else f' (from {number} rows)'}: {slow / cpu:.1f} x"
        print(line, flush=True)
    other.close()
    return best, least


TARGETS = {
    "one job's profile": 50.0,
    "all jobs, from rows": 1500.0,
    "all jobs, from slices": 100.0,
    "hosts by hour, from shares": 50.0,
}


def main() -> int:
    accept = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    accept.add_argument("--rows", type=int, default=2_000_000, help="process rows a day")
    accept.add_argument("--days", default="1", help="how many days: one number or several, such as 1,10,100")
    accept.add_argument("--rival", type=int, default=500_000, help="rows the rival gets at the most")
    given = accept.parse_args()
    ages = sorted(int(days) for days in given.days.split(","))
    size = load(given.rows, ages[-1])
    missed = False
    profiles = []
    with tempfile.TemporaryDirectory() as path:
        store = open_store(os.path.join(path, "store"))
        day = 0
        for days in ages:
            began = time.perf_counter()
            while day < days:
                fill(store, day, size)
                day += 1
            took = time.perf_counter() - began
            print(
                f"{days} days, {size.rows * days} rows of {size.nodes} nodes, {size.jobs * days} jobs ({took:.0f} s)"
            )
            best, least = measure(store, path, days, given.rival)
            os.unlink(os.path.join(path, "rival.sqlite"))
            profiles.append(least["one job's profile"])
            missed |= any(best[name] > target for name, target in TARGETS.items())
        store.close()
    if len(profiles) > 1:
        grown = profiles[-1] / profiles[0]
        print(f"CPU time of one job's profile after {ages[-1]} days against {ages[0]}: {grown:.2f} x")
    print(f"targets (at 20 000 000 rows): {'MISSED' if missed else 'held'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
