"""How long the file system's page takes: 30 days of a site with 23 000 entries every two minutes.

    python bench/lustre_pages.py [--hours 1] [--entries 23000] [--scale 0.25]

Raw rows of some hours go the whole way (digest, slices, totals, hours, densities): that says what keeping up costs.
Tables of 30 days are then filled with SQL, as large as those hours make them; slices of two days only, which is all
that a page asks of them, at `--scale` of their number. The rival is what a site without such tables does: window
functions over raw rows. It is asked for the hours there are; for 30 days that is multiplied. Ends with 1 if the three
panels of 30 days take longer than a second.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import msgspec

from jobsight.analyse.increment import grown
from jobsight.analyse.keeper import open_store
from jobsight.analyse.lustre import COUNTERS, DERIVED, HOUR, STEP, counters
from jobsight.analyse.lustreload import Loads
from jobsight.analyse.lustreroll import roll
from jobsight.schema.message import Message, Origin, Status
from jobsight.schema.record import fields_of
from jobsight.schema.wire import envelope
from jobsight.store.embedded import Embedded

NOW = 1_794_700_800.0
DAYS = 30
EVERY = 120.0
TARGETS = [f"scratch-OST{n:04x}" for n in range(24)] + [f"scratch-MDT{n:04x}" for n in range(4)]
ENTRIES = 23_000
USERS = 300
# The page must not take longer (seconds).
MOST = 1.0


def main() -> int:
    accept = argparse.ArgumentParser(description=__doc__)
    accept.add_argument("--scale", type=float, default=0.25, help="of the slices of two days")
    accept.add_argument("--hours", type=float, default=1.0, help="of raw rows")
    accept.add_argument("--entries", type=int, default=ENTRIES, help="in a scan")
    given = accept.parse_args()
    with tempfile.TemporaryDirectory(prefix="jobsight-bench-") as folder:
        store = open_store(folder)
        try:
            return 1 if measure(store, given) > MOST else 0
        finally:
            store.close()


def measure(store: Embedded, given: argparse.Namespace) -> float:
    """Seconds that the three panels of 30 days take."""
    begin = NOW - given.hours * HOUR
    rows = load(store, begin, given.entries)
    first, span = TARGETS[1], (NOW - DAYS * 86400, NOW)
    rival = timed(lambda: naive(store, first, begin))
    for table in ("lustretotal", "lustreshare", "lustredensity"):
        backwards(store, table, given.hours, DAYS * 24)
    backwards(store, "lustreslice", given.hours, 48 * given.scale)
    store.compact(NOW + 86400)
    for table in DERIVED:
        ((count,),) = store.query(f"SELECT count(*) FROM {table}")
        print(f"{table}: {count} rows")
    loads = Loads(store)
    panels = timed(lambda: loads.panels(first, "write_bytes", *span))
    whole = timed(lambda: (loads.targets(*span), loads.top(first, "write_bytes", *span)))
    day = timed(lambda: loads.panels(first, "write_bytes", NOW - 86400, NOW))
    peak = timed(lambda: loads.top(first, "write_bytes", NOW - STEP, NOW, "job"))
    print(f"three panels of 30 days: {panels:.2f} s; targets and users beside them: {whole:.2f} s")
    print(f"three panels of a day: {day:.2f} s at {given.scale:g} of the slices; who made a peak: {peak:.2f} s")
    ratio = DAYS * 24 / given.hours
    print(
        f"the same from {rows} raw rows: {rival:.2f} s for {given.hours:g} h, so {rival * ratio:.0f} s for 30 days:"
    )
    print(f"{rival * ratio / panels:.0f} times as long")
    return panels


def load(store: Embedded, begin: float, entries: int) -> int:
    """Raw rows of some hours, as servers send them; what it takes to keep up."""
    chance = random.Random(1)
    series = [made(chance, number) for number in range(entries)]
    rows, digesting, rolling, steps = 0, 0.0, 0.0, 0
    for number in range(int((NOW - begin) / EVERY)):
        at = begin + number * EVERY
        lines = scan(chance, series, at, first=number == 0)
        rows += entries
        began = time.perf_counter()
        store.append(lines).result()
        store.digest()
        digesting += time.perf_counter() - began
        if number % 5 == 4:
            began = time.perf_counter()
            roll(store)
            rolling += time.perf_counter() - began
            steps += 1
    scans = (NOW - begin) / EVERY
    print(f"{rows} raw rows: digested in {digesting:.1f} s ({rows / digesting:.0f} a second)")
    print(f"made into tables in {rolling:.1f} s, {rolling / steps:.2f} s a time, {rolling / scans:.2f} s a scan")
    return rows


def made(chance: random.Random, number: int) -> dict[str, Any]:
    target = TARGETS[number % len(TARGETS)]
    uid = 10_000 + int(USERS * chance.random() ** 2)
    job, host = str(4_000_000 + number // 20), f"c{number % 1000}"
    kind = "mdt" if "MDT" in target else "ost"
    who = {"target": target, "entry": f"{job}:{uid}:{host}", "job": job, "uid": uid, "host": host,
           "format": "%j:%u:%H", "truncated": False}  # fmt: skip
    used = chance.sample(counters(kind), 6)
    return {"kind": kind, "who": who, "rate": 10 ** chance.uniform(0, 6), "values": dict.fromkeys(used, 0)}


def scan(chance: random.Random, series: list[dict[str, Any]], at: float, *, first: bool) -> list[bytes]:
    lines = []
    for kind in ("ost", "mdt"):
        rows = []
        for one in series:
            if one["kind"] == kind:
                for name in one["values"]:
                    one["values"][name] += int(one["rate"] * chance.random())
                rows.append({**one["who"], **one["values"], "absent_at": None if first else at - EVERY})
        names = list(dict.fromkeys(name for row in rows for name in row))
        lines.append(line(f"lustre{kind}", at, {name: [row.get(name) for row in rows] for name in names}))
    count = len(TARGETS)
    scans = {
        "target": TARGETS, "kind": ["mdt" if "MDT" in name else "ost" for name in TARGETS], "ok": [True] * count,
        "source": ["files"] * count, "scanned_at": [at] * count,
    }  # fmt: skip
    return [*lines, line("lustrescan", at, scans)]


def line(collector: str, at: float, rows: dict[str, Any]) -> bytes:
    origin = Origin("fox", "server", "boot")
    message = Message(origin=origin, collector=collector, time=at, uptime=at % 1e6, every=EVERY, status=Status.OK,
                      seconds=0.1, error=None, missing={}, rows=rows)  # fmt: skip
    return msgspec.json.encode(envelope(message))


def backwards(store: Embedded, table: str, hours: float, wanted: float) -> None:
    """Copies of the hours there are, each so much earlier, until there are enough."""
    names = ["cluster", "node", "boot", "time", *(field.name for field in fields_of(DERIVED[table]))]
    listed = ", ".join(f"time - shift * {hours * HOUR!r}" if name == "time" else name for name in names)
    with store.hot.transaction() as cursor:
        cursor.execute(
            f"INSERT INTO main.{table} SELECT {listed} FROM main.{table}, "
            f"range(1, {int(wanted / hours)}) AS earlier (shift)"
        )


def naive(store: Embedded, target: str, begin: float) -> None:
    """The three panels from raw rows."""
    rows = f"({grown('lustreost', counters('ost'), list(COUNTERS), (begin, NOW), begin)})"
    values = [target]
    by = "sum(write_bytes / (time - begin_time))"
    store.query(f"SELECT time, {by} FROM {rows} AS i WHERE target = ? GROUP BY time", values)
    store.query(f"SELECT time, uid, {by} FROM {rows} AS i WHERE target = ? GROUP BY time, uid", values)
    store.query(
        f"SELECT time, floor(log10(rate)), count(*) FROM (SELECT time, uid, {by} AS rate FROM {rows} AS i "
        "WHERE target = ? GROUP BY time, uid) AS rates WHERE rate > 0 GROUP BY ALL", values)  # fmt: skip


def timed(act: Callable[[], object]) -> float:
    """The median of three."""
    found = []
    for _ in range(3):
        began = time.perf_counter()
        act()
        found.append(time.perf_counter() - began)
    return sorted(found)[1]


if __name__ == "__main__":
    sys.exit(main())
