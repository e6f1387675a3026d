"""Identical processes in one row: nothing lost, nothing mixed."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobsight.collect.process import Process
from jobsight.rollup import SUMMED, rolled_up


def process(pid: int, parent: int = 1, **given: Any) -> Process:
    values: dict[str, Any] = {
        "pid": pid, "started": float(pid), "parent": parent, "session": 5, "process_group": 5, "scheduler": "slurm",
        "job": "8", "owner": "alice", "command": "worker", "state": "S", "threads": 1, "cpu_user": 1.0,
        "cpu_system": 0.5, "cpu_children": 0.0, "memory_anon": 4096, "memory_shared": 0, "memory_data": 0,
        "memory_virtual": 8192, "read": 1, "written": 2,
    }  # fmt: skip
    return Process(**(values | given))


def test_identical_leaves_of_one_parent_become_one_row() -> None:
    rows = [process(10, command="mpirun"), *(process(pid, parent=10) for pid in (11, 12, 13))]
    first, workers = rolled_up(rows)
    assert (first.command, first.merged) == ("mpirun", None)
    assert (workers.pid, workers.started, workers.merged) == (11, 11.0, 2)
    assert (workers.cpu_user, workers.threads, workers.memory_anon, workers.read) == (3.0, 3, 3 * 4096, 3)


def test_what_differs_stays_apart() -> None:
    rows = [
        process(10),
        process(11, parent=10),
        process(12, parent=10, command="other"),
        process(13, parent=10, owner="bob"),
        process(14, parent=10, job="9"),
        process(15, parent=11),
        process(16, parent=10, scheduler="session"),
        process(17, parent=10, scheduler="session"),
    ]
    assert [row.pid for row in rolled_up(rows)] == [row.pid for row in rows]
    assert not any(row.merged for row in rolled_up(rows))


def test_sum_lacks_what_one_of_them_lacks() -> None:
    (row,) = rolled_up([process(11), process(12, read=None)])
    assert (row.read, row.written) == (None, 4)


members = st.builds(
    process,
    pid=st.integers(10, 60),
    parent=st.sampled_from([1, 10, 11]),
    command=st.sampled_from(["a", "b"]),
    owner=st.sampled_from(["alice", "bob"]),
    scheduler=st.sampled_from(["slurm", "session"]),
    threads=st.integers(1, 9),
    memory_anon=st.integers(0, 2**40),
)


@given(st.lists(members, unique_by=lambda row: row.pid))
def test_parts_add_up_to_the_whole(rows: list[Process]) -> None:
    found = list(rolled_up(rows))
    assert sum(1 + (row.merged or 0) for row in found) == len(rows)
    for name in SUMMED:
        assert sum(getattr(row, name) for row in found) == sum(getattr(row, name) for row in rows)
    assert {row.pid for row in found} <= {row.pid for row in rows}
