"""A small site whose truth is known: nodes with a scheduler and without, jobs that wait and run, nodes that are
drained or gone.
"""

import json
import random
from typing import Any, NamedTuple

from jobsight.schema.wire import instant

HOUR = 3600.0
# A Sunday, some hours before clocks in Oslo go back.
START = 1792875600.0 - 6 * HOUR
EVERY = 600.0
CPUS = 8


class Work(NamedTuple):
    """One job: where, whose, from when to when, and CPUs that each command uses."""

    number: str
    scheduler: str
    node: str
    owner: str
    account: str
    partition: str
    begins: float
    ends: float
    cpus: int
    waited: float
    commands: dict[str, float]

    def used(self) -> dict[str, float]:
        """CPU time of each command, as far as it was sampled: the last sample is before the end."""
        last = (self.ends - 1 - START) // EVERY * EVERY + START
        return {name: pace * max(0.0, last - self.begins) for name, pace in self.commands.items()}


class Estate:
    """The messages of a site over some hours, and what is true of it."""

    def __init__(self, seed: int, hours: int = 34) -> None:
        self._chance = random.Random(seed)
        self.end = START + hours * HOUR
        self.nodes = ["n1", "n2", "n3", "laptop"]
        self.jobs = [self._job(number, hours) for number in range(24)]
        # Drained for some hours in the middle, where nothing runs; one is not heard of for some.
        self.drained = ("n4", START + 5 * HOUR, START + 9 * HOUR)
        self.lines = [*self._machines(hours), *self._samples(), *self._cards(), *self._states(), self._accounting()]
        self.lines.sort(key=lambda line: json.loads(line)["time"])

    def _job(self, number: int, hours: int) -> Work:
        chance = self._chance
        node = chance.choice(self.nodes)
        begins = START + chance.randrange(1, int((hours - 3) * 6)) * EVERY + chance.choice((1.0, 17.5, 300.0))
        ends = min(self.end - 1, begins + chance.choice((700.0, 4000.0, 20_000.0)) * chance.uniform(1, 2))
        names = chance.sample(["vasp_std", "python3", "bash", "own_code", "gmx_mpi"], chance.randint(1, 3))
        slurm = node != "laptop"
        return Work(
            str(500 + number), "slurm" if slurm else "session", node, chance.choice(("ada", "bob", "carol")),
            chance.choice(("physics", "biology")) if slurm else "", chance.choice(("short", "long")) if slurm else "",
            begins, ends, chance.choice((1, 2, 4)), chance.choice((0.0, 50.0, 9000.0)) if slurm else 0.0,
            {name: chance.uniform(0.01, 0.4) for name in names},
        )  # fmt: skip

    def _machines(self, hours: int) -> list[bytes]:
        rows: dict[str, list[Any]] = {
            "cpus": [CPUS],
            "memory": [2**34],
            "model": ["m"],
            "system": ["s"],
            "kernel": ["k"],
        }
        times = [START + hour * HOUR + 2 for hour in range(hours)]
        # The last node is asleep for three hours.
        return [
            self._line(node, "hardware", time, rows)
            for node in [*self.nodes, "n4"]
            for time in times
            if node != "n3" or not START + 20 * HOUR < time < START + 23 * HOUR
        ]

    def _samples(self) -> list[bytes]:
        found = []
        for node in self.nodes:
            time = START
            while time < self.end:
                rows = [row for job in self.jobs if job.node == node for row in self._rows(job, time)]
                columns = {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
                found.append(self._line(node, "process", time, columns))
                time += EVERY
        return found

    def _rows(self, job: Work, time: float) -> list[dict[str, Any]]:
        if not job.begins < time < job.ends:
            return []
        return [
            {"pid": 10 * int(job.number) + place, "started": round(job.begins - START + 1000.0, 2), "parent": 1,
             "session": int(job.number), "process_group": int(job.number), "scheduler": job.scheduler,
             "job": job.number, "owner": job.owner, "command": name, "state": "R", "threads": 1,
             "cpu_user": pace * (time - job.begins), "cpu_system": 0.0, "cpu_children": 0.0, "memory_virtual": 10,
             "memory_anon": 2**20 * int(job.number)}
            for place, (name, pace) in enumerate(job.commands.items())
        ]  # fmt: skip

    def _cards(self) -> list[bytes]:
        """Each node has a card, half busy, which is held by the first job there."""
        found = []
        for node in self.nodes:
            time = START
            while time < self.end:
                held = [job for job in self.jobs if job.node == node and job.begins < time < job.ends][:1]
                rows: dict[str, list[Any]] = {
                    "uuid": [f"GPU-{node}"], "vendor": ["nvidia"], "utilization": [0.5],
                    "scheduler": [job.scheduler for job in held] or [None],
                    "job": [job.number for job in held] or [None],
                }  # fmt: skip
                found.append(self._line(node, "gpu", time, rows))
                time += EVERY
        return found

    def _states(self) -> list[bytes]:
        found, time = [], START + 1
        name, since, until = self.drained
        while time < self.end:
            away = since <= time < until
            rows: dict[str, list[Any]] = {
                "nodes": ["n[1-3]", name], "state": ["MIXED", "IDLE"], "flags": [None, "DRAIN" if away else None],
                "node_count": [3, 1], "cpus": [CPUS, CPUS],
            }  # fmt: skip
            found.append(self._line("ctl", "slurmnode", time, rows))
            time += EVERY
        return found

    def _accounting(self) -> bytes:
        rows = [
            {"scheduler": "slurm", "job": job.number, "owner": job.owner, "account": job.account,
             "partition": job.partition, "state": "COMPLETED", "nodes": job.node, "submit": job.begins - job.waited,
             "eligible": job.begins - job.waited, "start": job.begins, "ended": job.ends,
             "elapsed": job.ends - job.begins, "cpus": job.cpus, "node_count": 1}
            for job in self.jobs if job.scheduler == "slurm"
        ]  # fmt: skip
        return self._line("ctl", "slurmjob", self.end, {name: [row[name] for row in rows] for name in rows[0]})

    def _line(self, node: str, collector: str, time: float, rows: dict[str, list[Any]]) -> bytes:
        message = {
            "schema": 1, "cluster": "fox", "node": node, "boot": "b1", "collector": collector, "time": instant(time),
            "uptime": time - START + 1000.0, "every": EVERY, "status": "ok", "seconds": 0.01, "rows": rows,
        }  # fmt: skip
        return json.dumps(message).encode()
