"""Counting again leaves what schedulers said, and parts runs that were taken for one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.analyse.recount import recount
from jobsight.analyse.summary import Summary, summary
from jobsight.schema.wire import instant
from jobsight.store.embedded import Embedded
from jobsight.store.protocol import JobQuery
from tests.store.contract import BOOT, process_line

RUN = {"scheduler": "slurm", "job": "7", "state": "RUNNING", "cpus": 2, "owner": "alice", "nodes": "n1", "entry": 1}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Embedded]:
    opened = open_store(str(tmp_path / "store"))
    yield opened
    opened.close()


def sampled(store: Embedded, *times: float, began: float, pid: int) -> None:
    store.append([
        process_line(BOOT + time, scheduler="slurm", job="7", pid=pid, started=began, cpu_user=time - began)
        for time in times
    ]).result(10)  # fmt: skip
    store.digest()


def told(store: Embedded, time: float, *rows: dict[str, Any]) -> None:
    columns = {name: [row.get(name) for row in rows] for row in rows for name in row}
    message = {
        "schema": 1, "cluster": "fox", "node": "ctl", "boot": "b1", "collector": "slurmjob", "status": "ok",
        "time": instant(BOOT + time), "uptime": time, "every": 60, "seconds": 0.1, "rows": columns,
    }  # fmt: skip
    store.append([json.dumps(message).encode()]).result(10)
    assert store.digest() == 1


def shown(store: Embedded, now: float) -> list[Summary]:
    found = [summary(document, BOOT + now) for document in store.jobs(JobQuery(), BOOT + now)]
    return sorted(found, key=lambda job: job.started)


def test_a_job_counted_again_keeps_its_schedulers_word_and_its_key(store: Embedded) -> None:
    told(store, 95, {**RUN, "submit": BOOT + 40, "start": BOOT + 50})
    sampled(store, 100, 120, began=50, pid=10)
    (before,) = shown(store, 120)
    sampled(store, 110, began=50, pid=10)
    assert recount(store).jobs == 1
    (after,) = shown(store, 120)
    assert (after.key, after.batch) == (before.key, before.batch)
    assert (after.cpu_time, after.started, after.cpus) == (70, BOOT + 50, 2)


def test_a_job_nobody_sampled_is_not_lost_when_its_node_is_counted_again(store: Embedded) -> None:
    told(store, 95, {**RUN, "job": "8", "submit": BOOT + 40, "start": BOOT + 50})
    sampled(store, 100, 120, began=50, pid=10)
    sampled(store, 110, began=50, pid=10)
    assert recount(store).jobs == 1
    assert sorted(job.id for job in shown(store, 120)) == ["7", "8"]


@pytest.mark.parametrize("apart", [False, True])
def test_two_runs_that_were_taken_for_one_are_parted(store: Embedded, apart: bool) -> None:
    """`apart`: the later run is told of first."""
    sampled(store, 100, 110, began=60, pid=10)
    sampled(store, 140, 150, began=130, pid=20)
    (mixed,) = shown(store, 150)
    assert mixed.cpu_time == 70
    first = {
        **RUN,
        "state": "REQUEUED",
        "submit": BOOT + 40,
        "start": BOOT + 59,
        "ended": BOOT + 120,
        "elapsed": 61.0,
    }
    second = {**RUN, "entry": 2, "submit": BOOT + 120, "start": BOOT + 129}
    if apart:
        told(store, 155, second)
    told(store, 160, first, second)
    assert store.query("SELECT count(*) FROM late")[0][0]
    recount(store)
    one, two = shown(store, 160)
    assert (one.cpu_time, one.state, one.elapsed) == (50, "ended", 61)
    assert (two.cpu_time, two.state, two.started) == (20, "running", BOOT + 129)
    assert store.query("SELECT count(*) FROM late") == [(0,)]
    assert store.query("SELECT count(DISTINCT job_key) FROM usage") == [(2,)]
    # And what comes next goes on from there.
    sampled(store, 170, began=130, pid=20)
    assert [job.cpu_time for job in shown(store, 170)] == [50, 40]
    assert recount(store).jobs == 0
