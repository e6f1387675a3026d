"""What it costs the server to take a message in: acknowledged when durable, rows in DuckDB, jobs counted.

    python bench/ingest_speed.py [--messages 6000] [--nodes 600] [--connections 64] [--postgres URL] [--json]

A real `jobsight serve`; a second process sends process messages of about forty rows, columns, gzip, one a request,
over kept-alive connections, in rounds of one sample of every node. Counted is the CPU time of the whole server
process from a round's first message until its last one is digested; the first round is not counted. The rivals store
the same rows, one message a commit, and do nothing else: no HTTP, no checks, no jobs. Ends with 1 if a core takes
fewer messages a second than promised, by the median of the rounds.
"""

import argparse
import gzip
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from bench.intake.server import Server

PROMISED = 1500.0


class Round(NamedTuple):
    """CPU seconds a message, and seconds until all were acknowledged."""

    http: float
    digest: float
    took: float

    @property
    def total(self) -> float:
        return self.http + self.digest


def served(nodes: int, rounds: int, connections: int) -> tuple[list[Round], int]:
    """What a real server needed, and the memory it had in the end."""
    from bench.intake.sender import deliver, started
    from bench.intake.server import Server

    found = []
    with tempfile.TemporaryDirectory() as home, Server(home) as server:
        sender, line = started(deliver, server.port, nodes, rounds + 1, connections)
        for number in range(rounds + 1):
            http, rest = server.cpu()
            line.send("go")
            took = line.recv()
            settle(server)
            after = server.cpu()
            if number:
                found.append(Round((after[0] - http) / nodes, (after[1] - rest) / nodes, took))
            if number < rounds:
                line.recv()
        sender.join()
        tables = {table["table"]: table for table in server.told("/api/v1/store")["tables"]}
        if (stored := tables["run"]["hot"]) != nodes * (rounds + 1):
            raise SystemExit(f"{stored} messages are stored, {nodes * (rounds + 1)} were sent")
        return found, server.resident()


def settle(server: "Server") -> None:
    """Until all is digested."""
    while server.waiting()[0]:
        time.sleep(0.02)


def rows(nodes: int) -> Iterator[list[tuple[Any, ...]]]:
    """One sample of every node as rows; unpacking and decoding is part of what is measured."""
    from bench.intake.traffic import COLUMNS, Traffic

    traffic = Traffic(nodes, 1, time.time())
    for body in [traffic.body(node, 0) for node in range(nodes)]:
        message = msgspec.json.decode(gzip.decompress(body))
        stamp = (message["cluster"], message["node"], message["boot"], message["time"])
        yield [(*stamp, *row) for row in zip(*(message["rows"][name] for name in COLUMNS), strict=True)]


def names() -> list[str]:
    from bench.intake.traffic import COLUMNS

    return ["cluster", "node", "boot", "time", *COLUMNS]


def sqlite(nodes: int) -> float:
    """CPU seconds a message: SQLite, WAL, synced at every commit, found by job and by time."""
    with tempfile.TemporaryDirectory() as folder:
        store = sqlite3.connect(os.path.join(folder, "rival.sqlite"))
        store.executescript(
            f"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE process ({', '.join(names())});"
            "CREATE INDEX by_job ON process (job, time); CREATE INDEX by_time ON process (time)"
        )
        spent = 0.0
        for some in _timed(rows(nodes)):
            began = time.process_time()
            with store:
                store.executemany(f"INSERT INTO process VALUES ({', '.join('?' * len(names()))})", some[0])
            spent += some[1] + time.process_time() - began
        store.close()
    return spent / nodes


def postgres(url: str, nodes: int) -> float:
    """CPU seconds a message, ours and the server process's: PostgreSQL, COPY, one commit a message."""
    import psycopg
    from bench.intake.server import cpu

    whole = {"pid", "parent", "session", "process_group", "threads", "read", "written"}
    kinds = {name: "bigint" if name in whole or name.startswith("memory") else "text" for name in names()}
    kinds |= {name: "double precision" for name in names() if name.startswith("cpu") or name == "started"}
    with psycopg.connect(url) as link:
        link.execute(f"CREATE TABLE rival ({', '.join(f'{name} {kind}' for name, kind in kinds.items())})")
        link.execute("CREATE INDEX ON rival (job, time)")
        link.execute("CREATE INDEX ON rival USING brin (time)")
        link.commit()
        stat = f"/proc/{link.info.backend_pid}/stat"
        spent, there = 0.0, cpu(stat)
        for some in _timed(rows(nodes)):
            began = time.process_time()
            with link.cursor() as cursor, cursor.copy("COPY rival FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(list(kinds.values()))
                for row in some[0]:
                    copy.write_row(row)
            link.commit()
            spent += some[1] + time.process_time() - began
        spent += cpu(stat) - there
        link.execute("DROP TABLE rival")
    return spent / nodes


def _timed(items: Iterator[Any]) -> Iterator[tuple[Any, float]]:
    """Each with the CPU seconds it took to make, but for the first: making the traffic is not part of it."""
    first = next(items)
    yield first, 0.0
    while True:
        began = time.process_time()
        try:
            item = next(items)
        except StopIteration:
            return
        yield item, time.process_time() - began


def main() -> int:
    from bench.intake.traffic import Traffic

    accept = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    accept.add_argument("--messages", type=int, default=6000)
    accept.add_argument("--nodes", type=int, default=600)
    accept.add_argument("--connections", type=int, default=64)
    accept.add_argument("--postgres", metavar="URL", help="an empty database on this machine, for a second rival")
    accept.add_argument("--json", action="store_true")
    given = accept.parse_args()
    rivals = {"SQLite, a commit each": sqlite(given.nodes)}
    if given.postgres:
        rivals["PostgreSQL COPY, a commit each"] = postgres(given.postgres, given.nodes)
    found, resident = served(given.nodes, max(1, round(given.messages / given.nodes)), given.connections)
    traffic = Traffic(given.nodes, 1, 0.0)
    height = sum(traffic.count(node) for node in range(given.nodes)) / given.nodes
    middle = Round(*(statistics.median(part) for part in zip(*found, strict=True)))
    total, least = statistics.median(one.total for one in found), min(one.total for one in found)
    held = 1 / total >= PROMISED
    if given.json:
        plain = {"rounds": [one._asdict() for one in found], "rows": height, "resident": resident, "rivals": rivals}
        print(json.dumps({**plain, "per_core": 1 / total, "promised": PROMISED, "held": held}))
        return 0 if held else 1
    print(f"{len(found)} rounds of {given.nodes} messages of {height:.1f} rows; µs of CPU a message, medians")
    print(f"  HTTP and checks      {1e6 * middle.http:7.0f}")
    print(f"  log, rows and jobs   {1e6 * middle.digest:7.0f}")
    print(f"  all                  {1e6 * total:7.0f}   least {1e6 * least:.0f}; {1e6 * total / height:.1f} a row")
    for name, spent in rivals.items():
        print(f"  {name:<32} {1e6 * spent:6.0f}: ours is {total / spent:.2f} of it")
    print(f"  acknowledged {given.nodes / middle.took:.0f} messages/s, resident {resident / 2**20:.0f} MiB")
    print(
        f"one core takes {1 / total:.0f} messages/s, {height / total:.0f} rows/s (at best {1 / least:.0f} messages/s)"
    )
    print(f"{PROMISED:.0f} messages/s are promised: {'held' if held else 'MISSED'}")
    return 0 if held else 1


if __name__ == "__main__":
    # Its parts are found from the root of the repository, wherever it is started.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.exit(main())
