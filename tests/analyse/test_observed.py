"""How much of a job's time counts as observed. Nodes booted at second 0, so uptime is time."""

from typing import Any

import msgspec
import pytest

from jobsight.analyse.job import Job
from jobsight.analyse.ledger import Ledger
from jobsight.analyse.summary import Summary, summary
from jobsight.ingest.accept import Accepted

Cluster = Any


def counted(cluster: Cluster, *messages: Accepted) -> dict[str, Summary]:
    """Summaries by id after some messages."""
    ledger = Ledger(cluster.nothing())
    jobs: dict[str, Job] = {}
    for message in messages:
        ledger.take(message)
        jobs |= {job.key: job for job in ledger.emptied()[1]}
    return {job.id: summary(msgspec.to_builtins(job), messages[-1].time) for job in jobs.values()}


@pytest.mark.parametrize(("before", "after"), [(60.0, 10.0), (10.0, 60.0)])
def test_another_sampling_interval_is_no_gap(cluster: Cluster, before: float, after: float) -> None:
    """The agent is told to sample more or less often; no sample is late."""
    times = [(60.0, before), (60.0 + before, before), (120.0 + before, after), (120.0 + before + after, after)]
    job = counted(
        cluster,
        *(
            cluster.processes(time, {"pid": 100, "started": 55.0, "cpu_user": time - 55}, every=every)
            for time, every in times
        ),
    )["100"]
    assert job.coverage == 1.0


def test_a_gap_before_a_shorter_interval_is_still_one(cluster: Cluster) -> None:
    job = counted(
        cluster,
        *(
            cluster.processes(time, {"pid": 100, "started": 0.0, "cpu_user": time}, every=every)
            for time, every in [(60.0, 60.0), (360.0, 10.0)]
        ),
    )["100"]
    assert job.coverage == pytest.approx(70 / 360)


def test_a_group_met_late_is_covered_from_the_start_its_processes_tell(cluster: Cluster) -> None:
    """Its processes began two hours before anybody looked; its control group counts the totals."""
    messages = []
    for time in range(7210, 7820, 10):
        row = {"scheduler": "slurm", "job": "7"}
        messages += [
            cluster.processes(time, {**row, "pid": 100, "started": 10.0, "cpu_user": 1.0}),
            cluster.groups(time, {**row, "cpu_time": 2.0}),
        ]
    job = counted(cluster, *messages)["7"]
    assert job.source == "cgroup"
    assert job.coverage == pytest.approx(600 / 7800)
