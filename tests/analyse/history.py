"""A small cluster's history, made up: jobs on one node and on several, processes that come and go, reboots, gaps."""

import json
import random
from typing import Any, NamedTuple

from jobsight.schema.wire import instant

START = 1794700800.0
EVERY = 10.0


class Process(NamedTuple):
    """One process from its start to its end, in seconds since the history began."""

    node: int
    pid: int
    begins: float
    ends: float
    parent: int
    job: tuple[str, str]
    command: str
    pace: float


class History:
    """All messages of some nodes, in the order they were made."""

    def __init__(self, seed: int, *, nodes: int = 3, samples: int = 40, jobs: int = 6) -> None:
        self._chance = random.Random(seed)
        self._length = samples * EVERY
        self._pid = 100
        self._reboots = {node: self._chance.choice((None, self._length * 0.6)) for node in range(nodes)}
        self._processes = [process for number in range(jobs) for process in self._job(number, nodes)]
        self.lines = [line for node in range(nodes) for line in self._node(node, samples)]
        self.lines.sort(key=lambda line: json.loads(line)["time"])

    def _job(self, number: int, nodes: int) -> list[Process]:
        chance = self._chance
        scheduler = chance.choice(("slurm", "slurm", "session"))
        where = range(nodes) if scheduler == "slurm" and chance.random() < 0.5 else [chance.randrange(nodes)]
        begins = chance.uniform(-50, self._length * 0.8)
        ends = begins + chance.choice((15.0, 60.0, 200.0, 1000.0)) * chance.uniform(0.7, 1.3)
        found = []
        for node in where:
            self._pid += 1
            leader = self._pid
            name = (scheduler, str(number + 1) if scheduler == "slurm" else str(leader))
            found.append(Process(node, leader, begins + 0.1 * node, ends, 1, name, "bash", 0.05))
            for _ in range(chance.randint(0, 4)):
                self._pid += 1
                start = chance.uniform(begins + 0.5, max(begins + 1, ends - 1))
                end = min(ends, start + chance.uniform(3, 150))
                command = chance.choice(("vasp", "gmx", "python3"))
                found.append(Process(node, self._pid, start, end, leader, name, command, chance.uniform(0, 4)))
        return found

    def _node(self, node: int, samples: int) -> list[bytes]:
        found = []
        lag = self._chance.uniform(0, 3)
        gap = self._chance.choice((None, samples // 3))
        for number in range(samples):
            at = number * EVERY + lag
            if gap is not None and gap <= number < gap + 6:
                continue
            if number % 15 == 0:
                rows: dict[str, list[Any]] = {
                    "cpus": [8 + number // 30],
                    "memory": [2**34],
                    "model": ["fast"],
                    "system": ["x"],
                    "kernel": ["6"],
                }
                found.append(self._line(node, "hardware", at + 0.02, rows))
            here = [one for one in self._processes if one.node == node and one.begins < at < one.ends]
            found.append(self._line(node, "process", at, self._rows(here, node, at)))
            found.append(self._line(node, "cgroup", at - 0.01, self._groups(here, node, at)))
            if number % 3 == 0:
                found.append(self._line(node, "allocation", at + 0.03, self._told(here)))
        return found

    def _told(self, here: list[Process]) -> dict[str, list[Any]]:
        jobs = sorted({job for scheduler, job in (one.job for one in here) if scheduler == "slurm"})
        if not jobs:
            return {}
        every = len(jobs)
        told: dict[str, list[Any]] = {"scheduler": ["slurm"] * every, "job": jobs, "source": ["prolog"] * every}
        return told | {"account": [f"a{job}" for job in jobs], "owner": ["alice"] * every}

    def _rows(self, here: list[Process], node: int, at: float) -> dict[str, list[Any]]:
        booted = self._booted(node, at)
        rows = []
        for one in here:
            if one.begins < booted:
                continue
            used = round(one.pace * (at - one.begins), 2)
            dead = [kid for kid in self._processes if kid.parent == one.pid and kid.ends <= at]
            rows.append({
                "pid": one.pid, "started": round(one.begins - booted, 2), "parent": one.parent, "session": one.pid,
                "process_group": one.pid, "scheduler": one.job[0], "job": one.job[1], "owner": "alice",
                "command": one.command, "state": "R", "threads": 2, "cpu_user": used, "cpu_system": 0.25,
                "cpu_children": round(sum(0.25 + kid.pace * (kid.ends - kid.begins) for kid in dead), 2),
                "memory_virtual": 10, "memory_anon": 4096 * int(at * one.pace + 50),
                "read": int(at - one.begins) * 512, "written": int(used),
            })  # fmt: skip
        return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}

    def _groups(self, here: list[Process], node: int, at: float) -> dict[str, list[Any]]:
        booted = self._booted(node, at)
        jobs = sorted({one.job for one in here if one.job[0] == "slurm" and one.begins >= booted})
        if not jobs:
            return {}
        mine = {job: [one for one in self._processes if one.node == node and one.job == job] for job in jobs}
        used = [
            round(sum(one.pace * (min(at, one.ends) - one.begins) for one in mine[job] if one.begins < at), 3)
            for job in jobs
        ]
        return {
            "scheduler": [s for s, _ in jobs], "job": [j for _, j in jobs], "path": [f"job_{j}" for _, j in jobs],
            "cpu_time": used, "memory_anon": [int(x * 100) for x in used], "memory_peak": [10**6] * len(jobs),
        }  # fmt: skip

    def _booted(self, node: int, at: float) -> float:
        reboot = self._reboots[node]
        return reboot if reboot is not None and at > reboot else -1000.0

    def _line(self, node: int, collector: str, at: float, rows: dict[str, list[Any]]) -> bytes:
        booted = self._booted(node, at)
        message = {
            "schema": 1, "cluster": "fox", "node": f"n{node}", "boot": f"b{int(booted)}", "collector": collector,
            "time": instant(START + at), "uptime": round(at - booted, 6), "every": EVERY, "status": "ok",
            "seconds": 0.01, "rows": rows,
        }  # fmt: skip
        return json.dumps(message).encode()
