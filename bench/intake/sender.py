"""Sends messages over connections that are kept, one message a request, and waits for each to be acknowledged."""

import multiprocessing
import selectors
import socket
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import NamedTuple

from bench.intake.traffic import EVERY, Traffic

HEAD = (
    b"POST /ingest HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\n"
    b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
)


# A prime, so that every node has its turn.
SCATTER = 7919


class Line:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._link = socket.create_connection(("127.0.0.1", port), 60)
        self._link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._held = b""

    def fileno(self) -> int:
        return self._link.fileno()

    def send(self, body: bytes) -> None:
        self._link.sendall(HEAD % len(body) + body)

    def status(self) -> int:
        """Of the next answer."""
        while (end := self._held.find(b"\r\n\r\n")) < 0:
            self._more()
        head = self._held[:end].lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
        while len(self._held) < end + 4 + length:
            self._more()
        self._held = self._held[end + 4 + length :]
        return int(head.split()[1])

    def close(self) -> None:
        self._link.close()

    def _more(self) -> None:
        if not (piece := self._link.recv(65536)):
            raise ConnectionError("the server hung up")
        self._held += piece


def send(lines: Sequence[Line], bodies: Sequence[bytes]) -> None:
    """All bodies, as many at a time as there are connections."""
    for start in range(0, len(bodies), len(lines)):
        group = bodies[start : start + len(lines)]
        for line, body in zip(lines, group, strict=False):
            line.send(body)
        for line, _ in zip(lines, group, strict=False):
            if (status := line.status()) != 200:
                raise SystemExit(f"the server answered {status}")


def deliver(port: int, nodes: int, samples: int, connections: int, tell: Connection) -> None:
    """Everything is made before, so that sending takes little beside the server. A word when it is ready; after the
    answer all of it, as fast as it is taken, a sample at a time; then how many seconds each took.
    """
    traffic = Traffic(nodes, samples, time.time() - samples * EVERY)
    bodies = [[traffic.body(node, sample) for node in range(nodes)] for sample in range(samples)]
    lines = [Line(port) for _ in range(min(connections, nodes))]
    for some in bodies:
        tell.send("ready")
        tell.recv()
        began = time.monotonic()
        send(lines, some)
        tell.send(time.monotonic() - began)


class Pace(NamedTuple):
    """How a second of steady sending went."""

    acknowledged: int
    refused: int
    worst: float
    """The longest that one message waited for its acknowledgement, in seconds."""
    behind: float
    """Seconds by which sending lags what was planned."""


def keep_pace(port: int, nodes: int, samples: int, connections: int, tell: Connection) -> None:
    """The nodes of a cluster, each at its own place in the interval; tells a `Pace` every second."""
    traffic = Traffic(nodes, samples, time.time())
    lines = [Line(port) for _ in range(connections)]
    idle, sent = list(lines), dict[Line, float]()
    ready = selectors.DefaultSelector()
    for line in lines:
        ready.register(line, selectors.EVENT_READ, line)
    tell.send("ready")
    began = time.monotonic()
    number, acknowledged, refused, worst, told = 0, 0, 0, 0.0, began
    while number < nodes * samples or sent:
        now = time.monotonic()
        while idle and number < nodes * samples and now - began >= number * EVERY / nodes:
            sample, place = divmod(number, nodes)
            line = idle.pop()
            # Neighbours do not send one after the other.
            line.send(traffic.body(place * SCATTER % nodes, sample, time.time()))
            sent[line] = now
            number += 1
        for key, _ in ready.select(0.002):
            line = key.data
            good = line.status() == 200
            acknowledged, refused = acknowledged + good, refused + (not good)
            worst = max(worst, time.monotonic() - sent.pop(line))
            idle.append(line)
        if now - told >= 1.0:
            tell.send(Pace(acknowledged, refused, worst, now - began - number * EVERY / nodes))
            acknowledged, refused, worst, told = 0, 0, 0.0, now
    tell.send(Pace(acknowledged, refused, worst, 0.0))
    tell.send(None)


def started(act: object, *given: object) -> "tuple[multiprocessing.process.BaseProcess, Connection]":
    """A process of its own for one of the above, and the line to it."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=act, args=(*given, there))  # type: ignore[arg-type]
    process.start()
    here.recv()
    return process, here
