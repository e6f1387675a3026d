"""Agents of several nodes in one process: the real sinks and spools, and messages whose truth is known.

`python -m tests.integration.sender CONFIG`: sends until SIGTERM, then until the spools are empty. It may be killed at
any time. A journal says what was about to be sent and what the sink has taken: after kill -9 nobody knows of the one
in between, and of no other.
"""

import hashlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from jobsight import catalogue
from jobsight.clock import SystemClock
from jobsight.collect.agent import Tally
from jobsight.schema.message import Message, Origin, Status
from jobsight.schema.units import Bytes, Seconds
from jobsight.settings import Destination, Spool
from jobsight.settings import parse as settings_of
from jobsight.ship import courier
from jobsight.ship.sink import Place, Sink

CLUSTER, BOOT_ID = "chaos", "b1"
BOOT = 1794700000.0
# Every so many steps a message is so large that a broker takes it in parts only.
LARGE_EVERY, LARGE = 50, 150_000


class Config(NamedTuple):
    """What a sender is told: its sink as it stands in settings, where it may write, whose messages it sends."""

    sink: dict[str, Any]
    folder: str
    nodes: list[str]
    pause: float = 0.05


def at(step: int) -> float:
    return BOOT + 100.0 + step


def used(step: int) -> dict[str, float]:
    """CPU seconds of each job up to a step: what the store must say."""
    return {"1": 0.5 * (step + 50), "2": 2 * 0.25 * (step + 40)}


def noise(step: int) -> str | None:
    """Text that does not shrink when it is packed, the same for the same step."""
    if step % LARGE_EVERY != LARGE_EVERY // 2:
        return None
    blocks = (hashlib.sha256(b"%d %d" % (step, number)).hexdigest() for number in range(LARGE // 64))
    return "".join(blocks)


def process_rows(step: int) -> dict[str, Any]:
    own = used(step)
    cpu = (own["1"], own["2"] / 2, own["2"] / 2)
    fixed = {"parent": 1, "scheduler": "session", "owner": "alice", "command": "work", "state": "R", "threads": 2,
             "cpu_system": 0.0, "cpu_children": 0.0, "memory_virtual": 10, "memory_anon": 1000 + step}  # fmt: skip
    return {name: (value,) * 3 for name, value in fixed.items()} | {
        "pid": (100, 200, 201), "started": (50.0, 60.0, 60.0), "session": (100, 200, 200),
        "process_group": (100, 200, 200), "job": ("1", "2", "2"), "cpu_user": cpu,
    }  # fmt: skip


def messages(node: str, step: int) -> Iterator[Message]:
    origin, time_ = Origin(CLUSTER, node, BOOT_ID), at(step)
    load = {"load1": (0.5,), "load5": (0.5,), "load15": (0.5,), "runnable": (1,), "existing": (step,)}
    for collector, rows in (("process", process_rows(step)), ("load", load)):
        error = noise(step) if collector == "load" else None
        yield Message(origin, collector, time_, time_ - BOOT, 1.0, Status.OK, 0.01, error, {}, rows)


class Journal:
    """What was sent: `i NODE STEP` before, `d NODE STEP` after the sink has it."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, word: str, node: str, step: int) -> None:
        os.write(self._fd, f"{word} {node} {step}\n".encode())


class Steps(NamedTuple):
    """A node's steps: those that were surely taken, and those that nobody knows of."""

    done: set[int]
    unsure: set[int]


def read(path: Path) -> dict[str, Steps]:
    found: dict[str, Steps] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        word, node, step = line.split()
        steps = found.setdefault(node, Steps(set(), set()))
        if word == "i":
            steps.unsure.add(int(step))
        else:
            steps.unsure.discard(int(step))
            steps.done.add(int(step))
    return found


class Agent(threading.Thread):
    """One node."""

    def __init__(self, node: str, config: Config, journal: Journal, first: int) -> None:
        super().__init__()
        self._node, self._pause, self._journal, self._step = node, config.pause, journal, first
        self.tally = Tally()
        spool = Spool(os.path.join(config.folder, "spool", node), Bytes(10**9), Seconds(86400))
        self.sink = opened(config.sink, Place(node, spool, SystemClock(), self.tally))
        self.stopping = False

    def run(self) -> None:
        while not self.stopping:
            self._journal.write("i", self._node, self._step)
            for message in messages(self._node, self._step):
                self.sink.send(message)
            self._journal.write("d", self._node, self._step)
            self._step += 1
            time.sleep(self._pause)


def opened(sink: dict[str, Any], place: Place) -> Sink:
    """A sink as an agent opens it."""
    found: Destination = settings_of(json.dumps({"sinks": [sink]}), "sender").sinks[0]
    return catalogue.sink(found.name).open_sink(found.options, place)  # type: ignore[no-any-return]


def main(path: str) -> int:
    config = Config(**json.loads(Path(path).read_text()))
    # Whoever was refused comes back soon: a test has no minute.
    for name in ("LONGEST_PAUSE", "LONGEST_AFTER"):
        setattr(courier, name, 1.0)
    known = read(Path(config.folder) / "journal")
    journal = Journal(Path(config.folder) / "journal")
    firsts = {node: max(steps.done | steps.unsure) + 1 for node, steps in known.items()}
    agents = [Agent(node, config, journal, firsts.get(node, 0)) for node in config.nodes]
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    for agent in agents:
        agent.start()
    (Path(config.folder) / "ready").write_text(str(os.getpid()))
    stop.wait()
    for agent in agents:
        agent.stopping = True
    for agent in agents:
        agent.join()
    while any(agent.tally.waiting for agent in agents):
        time.sleep(0.1)
    for agent in agents:
        agent.sink.close()
    print(json.dumps({"sent": sum(a.tally.sent for a in agents), "dropped": sum(a.tally.dropped for a in agents)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
