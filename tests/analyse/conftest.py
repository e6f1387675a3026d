"""Messages made by hand, so that the truth is known."""

from collections.abc import Sequence
from typing import Any

import pytest

from jobsight.analyse.job import Job
from jobsight.ingest.accept import Accepted
from jobsight.schema.message import Status

# When a node's second boot, `b2`, began.
BOOTED_AGAIN = 1500.0


class Nothing:
    """A store that knows no earlier job."""

    def __init__(self, *jobs: Job) -> None:
        self._jobs = jobs

    def latest_job(self, cluster: str, scheduler: str, job: str, scope: str, until: float) -> Job | None:
        found = [j for j in self._jobs if (j.cluster, j.scheduler, j.id, j.scope) == (cluster, scheduler, job, scope)]
        return next((j for j in reversed(found) if j.started <= until), None)

    def named_jobs(self, cluster: str, scheduler: str, numbers: Sequence[str]) -> list[Job]:
        return [
            j for j in self._jobs if (j.cluster, j.scheduler, j.scope) == (cluster, scheduler, "") and j.id in numbers
        ]


class Cluster:
    """Makes messages of nodes that booted at second 0."""

    def __init__(self) -> None:
        self.nothing = Nothing

    def processes(
        self, time: float, *rows: dict[str, Any], node: str = "n1", boot: str = "b1", every: float = 10
    ) -> Accepted:
        plain = {
            "parent": 1, "session": 100, "process_group": 100, "scheduler": "session", "job": "100", "owner": "alice",
            "command": "work", "state": "R", "threads": 1, "cpu_user": 0.0, "cpu_system": 0.0, "cpu_children": 0.0,
            "memory_anon": 1000, "memory_shared": 0, "memory_virtual": 0, "read": None, "written": None,
        }  # fmt: skip
        full = [{**plain, **row} for row in rows]
        columns = {name: [row[name] for row in full] for name in full[0]} if full else {}
        return self._message("process", time, columns, len(rows), node, boot, every)

    def groups(
        self, time: float, *rows: dict[str, Any], node: str = "n1", boot: str = "b1", every: float = 10
    ) -> Accepted:
        plain = {"scheduler": "slurm", "job": "7", "path": "slurm/uid_1/job_7"}
        full = [{**plain, **row} for row in rows]
        names = dict.fromkeys(name for row in full for name in row)
        columns = {name: [row.get(name) for row in full] for name in names}
        return self._message("cgroup", time, columns, len(rows), node, boot, every)

    def cards(self, time: float, *rows: dict[str, Any], node: str = "n1") -> Accepted:
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in names}
        return self._message("gpu", time, columns, len(rows), node, "b1", 10)

    def allocations(self, time: float, *rows: dict[str, Any], node: str = "n1") -> Accepted:
        plain = {"scheduler": "slurm", "job": "7", "source": "prolog"}
        full = [{**plain, **row} for row in rows]
        names = dict.fromkeys(name for row in full for name in row)
        columns = {name: [row.get(name) for row in full] for name in names}
        return self._message("allocation", time, columns, len(rows), node, "b1", 30)

    def machine(self, time: float, cpus: int, memory: int, node: str = "n1") -> Accepted:
        return self._message("hardware", time, {"cpus": [cpus], "memory": [memory]}, 1, node, "b1", 3600)

    def _message(
        self, collector: str, time: float, columns: dict[str, Any], count: int, node: str, boot: str, every: float
    ) -> Accepted:
        uptime = time if boot == "b1" else time - BOOTED_AGAIN
        return Accepted(
            b"", "fox", node, boot, collector, time, uptime, every, Status.OK, 0.0, None, {}, count, columns
        )


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()
