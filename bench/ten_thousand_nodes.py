"""Ten thousand nodes at one server: does it keep up, and what do those see who look at it meanwhile?

    python bench/ten_thousand_nodes.py [--nodes 10000] [--minutes 3] [--connections 200] [--unasked]

Each node sends a process message of about forty rows every 30 s, at its own place in the interval: 333 messages and
13 000 rows a second. One process sends them all, over kept-alive connections; another asks for the start page, the
job list and one job, over and over. Every ten seconds a line: messages acknowledged, the longest wait for an
acknowledgement, what of the log is not digested and how old it is, CPU and memory of the server, and how long
questions took. Ends with 1 if the server does not keep up: if something was refused, if sending fell behind, or if
more waits to be digested in the last third than in the middle one.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from bench.intake.sender import Pace
    from bench.intake.server import Server

EVERY = 30.0
SPAN = 10.0
# Seconds by which sending may be behind: the clock of one busy process.
LATE = 5.0
PAGES = ("/", "/jobs", "job")


class Span(NamedTuple):
    """Ten seconds."""

    acknowledged: float
    refused: int
    worst: float
    behind: float
    waiting: int
    age: float
    cpu: float
    resident: int
    asked: dict[str, list[float]]


def ask(port: int, tell: Connection) -> None:
    """Ask one thing after the other until told to stop, a second between rounds; tell how long each took."""
    from urllib.error import URLError
    from urllib.request import ProxyHandler, build_opener

    tell.send("ready")
    get = build_opener(ProxyHandler({})).open
    key = ""
    while not tell.poll(1.0):
        for page in PAGES:
            path = f"/job/{key}" if page == "job" else page
            if page == "job" and not key:
                continue
            began = time.monotonic()
            try:
                with get(f"http://127.0.0.1:{port}{path}", timeout=120) as answer:
                    body = answer.read()
            except (URLError, OSError) as error:
                raise SystemExit(f"{path}: {error}") from None
            tell.send((page, time.monotonic() - began))
            if page == "/jobs" and b'href="/job/' in body:
                key = body.partition(b'href="/job/')[2].partition(b'"')[0].decode()


def rest(_: int, tell: Connection) -> None:
    """Ask nothing."""
    tell.send("ready")
    tell.recv()


def watch(server: "Server", paces: Connection, answers: Connection) -> "list[Span]":
    """Until the sender has sent everything."""
    spans: list[Span] = []
    over = False
    while not over:
        began, spent = time.monotonic(), sum(server.cpu())
        heard: list[Pace] = []
        while time.monotonic() - began < SPAN and not over:
            if paces.poll(0.2):
                pace = paces.recv()
                over = pace is None
                heard += [] if over else [pace]
        took = time.monotonic() - began
        asked: dict[str, list[float]] = {page: [] for page in PAGES}
        while answers.poll():
            page, seconds = answers.recv()
            asked[page].append(seconds)
        if took < SPAN / 2:
            break
        waiting, age = server.waiting()
        span = Span(
            sum(pace.acknowledged for pace in heard) / took,
            sum(pace.refused for pace in heard),
            max((pace.worst for pace in heard), default=0.0),
            heard[-1].behind if heard else took,
            waiting,
            age,
            (sum(server.cpu()) - spent) / took,
            server.resident(),
            asked,
        )
        spans.append(span)
        print(line(len(spans) * SPAN, span), flush=True)
    return spans


HEAD = (
    "    s   acked/s  worst s   waiting MiB   age s    CPU cores   resident MiB   "
    "start page, jobs, one job: median / worst s"
)


def line(at: float, span: Span) -> str:
    asked = ", ".join(
        f"{statistics.median(took):.2f} / {max(took):.2f}" if took else "–" for took in span.asked.values()
    )
    return (
        f"{at:5.0f} {span.acknowledged:9.0f} {span.worst:8.2f} {span.waiting / 2**20:13.1f} {span.age:7.1f} "
        f"{span.cpu:12.2f} {span.resident / 2**20:14.0f}   {asked}"
    )


def verdict(spans: list[Span], nodes: int) -> list[str]:
    """Why it does not keep up; nothing if it does."""
    third = max(1, len(spans) // 3)
    before, last = spans[-2 * third : -third] or spans[:1], spans[-third:]
    planned = nodes / EVERY
    reasons = []
    if refused := sum(span.refused for span in spans):
        reasons.append(f"{refused} messages were refused")
    if max(span.behind for span in last) > LATE:
        reasons.append(f"sending fell {max(span.behind for span in last):.0f} s behind")
    if (pace := statistics.mean(span.acknowledged for span in last)) < 0.97 * planned:
        reasons.append(f"{pace:.0f} messages/s were acknowledged of {planned:.0f}")
    grown = statistics.mean(span.waiting for span in last) - statistics.mean(span.waiting for span in before)
    # A second's worth, or a good deal more for a machine with other work, comes and goes.
    if grown > 5 * planned * 6000:
        reasons.append(f"what waits to be digested grew by {grown / 2**20:.0f} MiB")
    return reasons


def main() -> int:
    from bench.intake.sender import keep_pace, started
    from bench.intake.server import Server

    accept = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    accept.add_argument("--nodes", type=int, default=10_000)
    accept.add_argument("--minutes", type=float, default=3.0)
    accept.add_argument("--connections", type=int, default=200)
    accept.add_argument("--unasked", action="store_true", help="nobody looks at it meanwhile")
    given = accept.parse_args()
    samples = max(1, round(given.minutes * 60 / EVERY))
    print(
        f"{given.nodes} nodes, {samples} samples each, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before"
    )
    with tempfile.TemporaryDirectory() as home, Server(home) as server:
        reader, answers = started(rest if given.unasked else ask, server.port)
        sender, paces = started(keep_pace, server.port, given.nodes, samples, given.connections)
        print(HEAD)
        spans = watch(server, paces, answers)
        answers.send("stop")
        for process in (sender, reader):
            process.join(150)
        began = time.monotonic()
        while server.waiting()[0] and time.monotonic() - began < 120:
            time.sleep(0.1)
        print(f"all was digested {time.monotonic() - began:.1f} s after the last message")
        tables = {table["table"]: table for table in server.told("/api/v1/store")["tables"]}
        stored = tables["run"]["hot"] + tables["run"]["cold"]
    reasons = verdict(spans, given.nodes)
    if stored != given.nodes * samples:
        reasons.append(f"{stored} messages are stored of {given.nodes * samples}")
    print(f"keeps up: {'no: ' + '; '.join(reasons) if reasons else 'yes'}")
    return 1 if reasons else 0


if __name__ == "__main__":
    # Its parts are found from the root of the repository, wherever it is started.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.exit(main())
