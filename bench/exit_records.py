"""What it costs to count every process that ends: the `exited` collector against the kernel's process connector.

Both listen to the same processes in the same storms, held to one core, while the storm has the others. The listener
of the connector only counts exits: it learns nothing of CPU time, memory or jobs. Needs CAP_NET_ADMIN. README.md
beside this file tells how to read the table.
"""

import argparse
import json
import os
import socket
import statistics
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

NAME = "brief"
CONTENDERS = ("exited", "connector")
# Longer than a listener lets records gather.
SETTLE = 0.6


def exited() -> Callable[[], dict[str, int]]:
    """The collector, as the agent runs it."""
    from jobsight import catalogue
    from jobsight.agent.service import settle
    from jobsight.collect.exited import Watch
    from jobsight.host import Host

    host, collector = Host(), catalogue.collector("exited")
    collector.rows(host)
    if host.missed()["processes"] != "absent":
        raise SystemExit("exit records need CAP_NET_ADMIN")
    settle()

    def count() -> dict[str, int]:
        rows = collector.rows(host)
        listener = host.keep(Watch).listener
        assert listener
        return {"exits": sum(row.processes for row in rows if row.command == NAME), "lost": listener.dropped}

    return count


def connector() -> Callable[[], dict[str, int]]:
    """The rival: events of all processes, of which it counts the exits of those that are no threads."""
    from jobsight.drivers.taskstats import GATHER, RCVBUFFORCE, ROOM

    seen = {"exits": 0, "lost": 0}
    door = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 11)
    door.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, ROOM // 2)
    door.bind((0, 1))
    request = struct.pack("=IIIIHHI", 1, 1, 0, 0, 4, 0, 1)
    door.send(struct.pack("=IHHII", 16 + len(request), 3, 0, 0, 0) + request)
    event, ended = struct.Struct("=I12xII"), 0x80000000

    def listen() -> None:
        while True:
            door.setblocking(True)
            messages = [door.recv(4096)]
            time.sleep(GATHER)
            door.setblocking(False)
            try:
                while True:
                    messages.append(door.recv(4096))
            except BlockingIOError:
                pass
            except OSError:
                seen["lost"] += 1
            for message in messages:
                kind, pid, group = event.unpack_from(message, 36)
                seen["exits"] += kind == ended and pid == group

    threading.Thread(target=listen, daemon=True).start()
    return lambda: seen


def contend(name: str) -> None:
    """One contender: answers each line with the CPU time since the last, all threads, and what it counted so far."""
    count = {"exited": exited, "connector": connector}[name]()
    spent = time.process_time()
    print("ready", flush=True)
    for _ in sys.stdin:
        time.sleep(SETTLE)
        counted = count()
        before, spent = spent, time.process_time()
        print(json.dumps({"cpu": spent - before, **counted}), flush=True)


def storm(count: int) -> None:
    """For each line, so many processes that end at once; answers with the CPU time and the time they took."""
    with open("/proc/self/comm", "w") as file:
        file.write(NAME)
    print("ready", flush=True)
    for _ in sys.stdin:
        began, used = time.monotonic(), sum(os.times()[:4])
        for _ in range(count):
            pid = os.fork()
            if not pid:
                os._exit(0)
            os.waitpid(pid, 0)
        print(json.dumps({"cpu": sum(os.times()[:4]) - used, "wall": time.monotonic() - began}), flush=True)


def measure(processes: int, rounds: int) -> dict[str, Any]:
    from contextlib import ExitStack

    from bench.cost.program import Program

    own = (sys.executable, os.path.abspath(__file__))
    with ExitStack() as stack:
        listeners = {name: stack.enter_context(Program(*own, "--as", name)) for name in CONTENDERS}
        weather = stack.enter_context(Program(*own, "--as", "storm", "--processes", str(processes)))
        for program in (*listeners.values(), weather):
            program.answer()
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in (*CONTENDERS, "storm")}
        for _ in range(rounds + 1):
            found["storm"].append(json.loads(weather.ask()))
            for name, program in listeners.items():
                found[name].append(json.loads(program.ask()))
    exits = {name: found[name][-1]["exits"] - found[name][0]["exits"] for name in CONTENDERS}
    # The first round is not counted: programs meet what they will know.
    costs = {name: [answer["cpu"] / processes * 1e6 for answer in found[name][1:]] for name in found}
    return {
        "processes": processes * rounds,
        "rate": processes / statistics.median(answer["wall"] for answer in found["storm"][1:]),
        "microseconds": {
            name: {"median": statistics.median(each), "least": min(each)} for name, each in costs.items()
        },
        "exits": exits,
        "lost": {name: found[name][-1]["lost"] for name in CONTENDERS},
    }


def table(result: dict[str, Any]) -> str:
    """For people."""
    cost = result["microseconds"]
    heads = f"{'listener':<20}{'µs/exit':>10}{'of connector':>14}{'least':>8}"
    heads += f"{'of the process':>16}{'exits':>9}{'lost':>6}"
    lines = [f"{result['processes']} processes, {result['rate']:.0f} a second", "", heads]
    for name in CONTENDERS:
        mine, rival = cost[name], cost["connector"]
        ratios = f"{mine['median'] / rival['median']:>14.2f}{mine['least'] / rival['least']:>8.2f}"
        share = f"{mine['median'] / cost['storm']['median']:>16.4f}"
        counted = f"{result['exits'][name]:>9}{result['lost'][name]:>6}"
        lines.append(f"{name:<20}{mine['median']:>10.1f}{ratios}{share}{counted}")
    return "\n".join(lines)


def main() -> int:
    accept = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    accept.add_argument("--processes", type=int, default=3000, help="in each round")
    accept.add_argument("--rounds", type=int, default=5)
    accept.add_argument("--json", action="store_true", help="print JSON")
    accept.add_argument("--as", dest="part", choices=(*CONTENDERS, "storm"), help=argparse.SUPPRESS)
    given = accept.parse_args()
    if given.part:
        cpus = os.sched_getaffinity(0)
        core = {max(cpus)}
        os.sched_setaffinity(0, core if given.part != "storm" else cpus - core or cpus)
        storm(given.processes) if given.part == "storm" else contend(given.part)
        return 0
    result = measure(given.processes, given.rounds)
    print(json.dumps(result, indent=1) if given.json else table(result))
    # Every exit must have been counted, or said to be lost.
    return 0 if result["exits"]["exited"] + result["lost"]["exited"] >= result["processes"] else 1


if __name__ == "__main__":
    # The parts of this bench are found from the root of the repository, wherever it is started.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.exit(main())
