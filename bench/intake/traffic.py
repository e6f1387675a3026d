"""What the nodes of a cluster send: process messages of about forty rows, for the benches of the server.

A few kinds of node are played through once and kept as encoded texts; a message of a node is its kind's text with the
node's own name, boot, time and job numbers in it. So sending costs next to nothing beside receiving, and what arrives
is still different for each node: two jobs of its own, and one it shares with its neighbours.

Of a node's processes a third compute, the others sleep and are the same in every sample, as on real nodes. One job
is a script whose commands come and go: its shell inherits what they used.
"""

import json
import random
import zlib
from typing import Any

from jobsight.schema.wire import compress, instant

EVERY = 30.0
KINDS = 24
# Nodes that share a job.
TOGETHER = 16
UPTIME = 1_000_000.0
COLUMNS = (
    "pid", "started", "parent", "session", "process_group", "scheduler", "job", "owner", "command", "state",
    "threads", "cpu_user", "cpu_system", "cpu_children", "memory_anon", "memory_shared", "memory_data",
    "memory_virtual", "read", "written",
)  # fmt: skip


class Member:
    """One process of a kind of node."""

    def __init__(self, chance: random.Random, pid: int, parent: int, job: str, command: str, busy: float) -> None:
        self.pid, self.parent, self.job, self.command, self.busy = pid, parent, job, command, busy
        # Jobs of a cluster that has been watched for long: nobody meets a hundred thousand hours all at once.
        self.started = round(UPTIME - chance.uniform(1, 60), 2)
        self.user = self.system = self.children = 0.0
        self.anon, self.shared = chance.randint(100, 400_000) * 4096, chance.randint(500, 9000) * 4096
        self.data, self.written = self.anon + (64 << 20), chance.randint(0, 9000) * 4096
        self.read = chance.randint(0, 100_000) * 4096

    def go_on(self, chance: random.Random) -> None:
        if self.busy:
            self.user = round(self.user + EVERY * self.busy * chance.uniform(0.96, 1.0), 2)
            self.system = round(self.system + chance.uniform(0.0, 0.3), 2)
            self.anon = max(4096, self.anon + chance.randint(-200, 220) * 4096)
            if chance.random() < 0.3:
                self.written += chance.randint(1, 10_000) * 4096

    def row(self) -> tuple[Any, ...]:
        scheduler = "session" if self.job == "login" else "slurm"
        return (
            self.pid, self.started, self.parent, self.parent, self.parent, scheduler, self.job, f"owner-{self.job}",
            self.command, "R" if self.busy else "S", 4 if self.busy else 1, self.user, self.system, self.children,
            self.anon, self.shared, self.data, self.data + (256 << 20), self.read, self.written,
        )  # fmt: skip


def played(kind: int, samples: int) -> list[bytes]:
    """The rows of one kind of node, sample by sample, as JSON with marks where a node's own words go."""
    chance = random.Random(kind)
    members: list[Member] = []
    for job, workers in (("shared", 10), ("first", chance.randint(4, 12)), ("script", chance.randint(1, 4))):
        root = 2000 + 1000 * len(members)
        members.append(Member(chance, root, 1, job, "slurmstepd", 0.0))
        members.append(Member(chance, root + 1, root, job, "bash", 0.0))
        members += [
            Member(chance, root + 2 + n, root + 1, job, "vasp_std", 1.0 if n < workers * 0.6 else 0.0)
            for n in range(workers)
        ]
    shell = members[-1]
    members += [Member(chance, 900 + n, 1, "login", "bash", 0.0) for n in range(12)]
    texts = []
    for sample in range(samples):
        for member in members:
            member.go_on(chance)
        visitor = Member(chance, 400_000 + sample, shell.pid, "script", "gzip", 0.5)
        visitor.started = round(UPTIME + sample * EVERY - 12.5, 2)
        visitor.user = 6.25
        shell.children = round(6.25 * sample, 2)
        rows = [member.row() for member in (*members, visitor)]
        columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
        texts.append(json.dumps(columns, separators=(",", ":")).encode())
    return texts


class Traffic:
    """Messages of `nodes` nodes over `samples` samples, the first at `start`."""

    def __init__(self, nodes: int, samples: int, start: float) -> None:
        self.nodes, self.samples, self.start = nodes, samples, start
        self._texts = [played(kind, samples) for kind in range(min(KINDS, nodes))]
        self.rows = [text[: text.index(b"]")].count(b",") + 1 for text in (texts[0] for texts in self._texts)]

    def line(self, node: int, sample: int, at: float | None = None) -> bytes:
        """One message. `at` is when it was sampled; at the node's place in the interval if not given."""
        moment = self.start + EVERY * (sample + node / self.nodes) if at is None else at
        head = (
            f'{{"schema":1,"cluster":"bench","node":"c{node:05d}","boot":"{zlib.crc32(b"%d" % node):08x}-0000-4000",'
            f'"collector":"process","time":"{instant(moment)}","uptime":{UPTIME + moment - self.start:.3f},'
            f'"every":{EVERY},"status":"ok","seconds":0.011,"error":null,"missing":{{}},"rows":'
        )
        text = self._texts[node % len(self._texts)][sample]
        for mark, name in (
            (b'"shared"', f'"{10_000 + node // TOGETHER}"'),
            (b'"first"', f'"{100_000 + node}"'),
            (b'"script"', f'"{200_000 + node}"'),
            (b'"login"', '"900"'),
            (b'"owner-', f'"u{node // TOGETHER % 97}-'),
        ):
            text = text.replace(mark, name.encode())
        return b"".join((head.encode(), text, b"}\n"))

    def body(self, node: int, sample: int, at: float | None = None) -> bytes:
        """One message as a sender sends it."""
        return compress(self.line(node, sample, at))

    def count(self, node: int) -> int:
        """Rows of a message of that node."""
        return self.rows[node % len(self._texts)]
