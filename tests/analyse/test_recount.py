"""What came late is counted, once, whatever cuts it off; what cannot be counted again is left alone."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.analyse.place import mark
from jobsight.analyse.recount import recount
from jobsight.store.embedded import Embedded
from jobsight.store.plan import DAY
from jobsight.store.protocol import JobQuery
from tests.store.contract import BOOT, process_line


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(path: Path) -> Iterator[Embedded]:
    opened = open_store(str(path))
    yield opened
    opened.close()


def arrive(store: Embedded, *times: float, **changes: Any) -> None:
    store.append([process_line(BOOT + time, **changes) for time in times]).result(10)
    store.digest()


def usage(store: Embedded) -> list[tuple[Any, ...]]:
    return store.query(f"SELECT time - {BOOT}, node, seconds, cpu_time FROM usage ORDER BY ALL")


def test_a_late_message_is_marked_and_then_counted_between_its_neighbours(store: Embedded) -> None:
    arrive(store, 100, 120)
    arrive(store, 110)
    assert usage(store) == [(100, "n1", 50, 50), (120, "n1", 20, 20)]
    assert store.query("SELECT node, time, collector FROM late") == [("n1", BOOT + 110, "process")]
    assert recount(store).jobs == 1
    assert usage(store) == [(100, "n1", 50, 50), (110, "n1", 10, 10), (120, "n1", 10, 10)]
    assert store.query("SELECT count(*) FROM late") == [(0,)]
    (job,) = store.jobs(JobQuery(), BOOT + 120)
    assert (job["parts"][0]["cpu_time"], job["parts"][0]["covered"]) == (70, 30)
    # And what comes next goes on from there.
    arrive(store, 130)
    assert usage(store)[-1] == (130, "n1", 10, 10)


def test_a_message_of_a_boot_that_is_over_is_not_counted_as_if_it_were_the_first(store: Embedded) -> None:
    arrive(store, 100, 110)
    other = process_line(BOOT + 500, cpu_user=3.0, started=5.0).replace(b'"b1"', b'"b2"')
    store.append([other]).result(10)
    store.digest()
    arrive(store, 105)
    recount(store)
    assert [row[3] for row in usage(store)] == [50, 5, 5, 3]


def test_a_tree_loaded_after_newer_data_counts_as_if_it_had_come_before(store: Embedded, tmp_path: Path) -> None:
    arrive(store, *range(5000, 6000, 10), node="n1")
    arrive(store, *range(5000, 6000, 10), node="n2")
    for node in ("n1", "n2"):
        arrive(store, *range(100, 5000, 10), node=node)
    assert store.query("SELECT count(*) FROM late") == [(980,)]
    assert recount(store).nodes == 2
    other = open_store(str(tmp_path / "other"))
    for node in ("n1", "n2"):
        arrive(other, *range(100, 6000, 10), node=node)
    assert usage(store) == usage(other)
    assert store.jobs(JobQuery(), BOOT) == other.jobs(JobQuery(), BOOT)
    other.close()


def test_a_number_that_was_used_again_elsewhere_later_is_not_taken_for_the_same_job(store: Embedded) -> None:
    slurm = {"scheduler": "slurm", "job": "7", "cpu_user": 1.0}
    arrive(store, 50_000, 50_010, node="n1", started=49_990.0, **slurm)
    arrive(store, 100, 110, node="n2", started=90.0, **slurm)
    recount(store)
    found = store.jobs(JobQuery(id="7"), BOOT)
    assert [(job["started"] - BOOT, job["seen"] - BOOT) for job in found] == [(49_990, 50_010), (90, 110)]


def test_rows_in_files_are_replaced_there(store: Embedded) -> None:
    arrive(store, 100, 120)
    arrive(store, 100, 120, node="n2")
    store.compact(BOOT + 3 * DAY, least=1)
    arrive(store, 110)
    recount(store)
    assert [row[:2] for row in usage(store)] == [(100, "n1"), (100, "n2"), (110, "n1"), (120, "n1"), (120, "n2")]
    (status,) = [table for table in store.status().tables if table.table == "usage"]
    assert (status.hot, status.cold) == (3, 2)
    # Files and the catalogue still agree.
    store.compact(BOOT + 9 * DAY, least=1)
    assert len(usage(store)) == 5


# Where the process ends.
CUTS = {
    "before rows are replaced": "cold.Cold.amending = end",
    "when a file is written": "real = cold.Cold.rewrite\ncold.Cold.rewrite = lambda *given: (real(*given), end())",
    "before jobs are": "small.Small.put = end",
    "before the marks go": "amendment.Amendments.unmark = end",
}
CHILD = """
import os, signal, sys
from jobsight.analyse.keeper import open_store
from jobsight.analyse.recount import recount
from jobsight.store import amendment, cold, small
store = open_store(sys.argv[1])
def end(*_):
    os.kill(os.getpid(), signal.SIGKILL)
{cut}
recount(store)
"""


@pytest.mark.parametrize("cut", CUTS)
def test_kill_9_counts_nothing_twice_and_forgets_nothing(path: Path, tmp_path: Path, cut: str) -> None:
    expected = open_store(str(tmp_path / "expected"))
    arrive(expected, 100, 110, 120, 130)
    store = open_store(str(path))
    arrive(store, 100, 120)
    store.compact(BOOT + 3 * DAY, least=1)
    arrive(store, 110, 130)
    store.close()
    child = [sys.executable, "-c", CHILD.format(cut=CUTS[cut]), str(path)]
    ended = subprocess.run(child, capture_output=True, text=True, check=False, env={**os.environ})
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    again = open_store(str(path))
    recount(again)
    try:
        assert usage(again) == usage(expected)
        assert again.jobs(JobQuery(), BOOT) == expected.jobs(JobQuery(), BOOT)
        assert again.query("SELECT count(*) FROM late") == [(0,)]
    finally:
        again.close()
        expected.close()


def test_a_job_whose_first_rows_are_gone_is_left_alone_and_named(store: Embedded) -> None:
    arrive(store, 100, 120, 5000, 5010)
    arrive(store, 5000, 5020, job="200", pid=200, started=4990.0, node="n2")
    before = usage(store)
    (old,) = store.jobs(JobQuery(id="100"), BOOT)
    store.forget(BOOT + 1000, ["process", "cgroup", "run"])
    mark(store, 0.0, 3e9)
    done = recount(store)
    assert done.left == {old["key"]}
    assert usage(store) == before
    assert store.job(old["key"]) == old
    assert store.query("SELECT count(*) FROM late") == [(0,)]


def test_hardware_that_is_told_late_bounds_what_was_measured_before(store: Embedded) -> None:
    import json

    arrive(store, 100, 110)
    told = json.loads(process_line(BOOT + 100.01))
    told["collector"] = "hardware"
    told["rows"] = {"cpus": [64], "memory": [2**38], "model": ["x"], "system": ["y"], "kernel": ["z"]}
    store.append([json.dumps(told).encode()]).result(10)
    store.digest()
    assert store.query("SELECT DISTINCT cpus FROM usage") == [(None,)]
    recount(store)
    assert store.query("SELECT DISTINCT cpus, memory_limit FROM usage") == [(64, 2**38)]


def test_nothing_is_done_while_a_segment_is_half_digested(store: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    from jobsight.store.hot import Hot

    arrive(store, 100, 120)
    arrive(store, 110)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Hot, "_load", full)
    arrive(store, 130)
    assert recount(store).nodes == 0
    monkeypatch.undo()
    store.digest()
    recount(store)
    assert [row[0] for row in usage(store)] == [100, 110, 120, 130]
