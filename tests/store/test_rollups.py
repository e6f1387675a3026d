"""Slices and shares are the same in both engines, and made again they stay the same."""

from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.keeper import open_database, open_store
from jobsight.analyse.slice import roll
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414
from tests.store.contract import BOOT, process_line
from tests.store.test_postgres import url as url  # noqa: PLC0414

HOUR = 3600.0


def lines() -> list[bytes]:
    """Three jobs on two nodes over some hours, with a gap."""
    found = []
    for step in range(40):
        at = BOOT + 100 + 290 * step + (5000 if step > 20 else 0)
        for node, job in (("n1", "1"), ("n1", "2"), ("n2", "3")):
            used = {
                "cpu_user": step * 7.3,
                "memory_anon": 1000 * step + int(job),
                "threads": step % 5 + 1,
                "read": 13 * step,
            }
            found.append(process_line(at + int(job) / 10, node, job=job, pid=int(job), owner=f"u{job}", **used))
    return found


def rows(store: Any, table: str, order: str) -> list[tuple[Any, ...]]:
    names = "cluster, node, boot, time, seconds, covered, cpu_time, memory, memory_peak, read, written"
    found: list[tuple[Any, ...]] = store.query(f"SELECT {names}, {order} FROM {table} ORDER BY node, time, {order}")
    return found


def test_both_engines_roll_up_to_the_same(url: str, tmp_path: Path) -> None:
    here, there = open_store(str(tmp_path / "store")), open_database(url)
    made: list[Any] = []
    for store in (here, there):
        store.append(lines()).result(10)
        store.digest()
        now = BOOT + 12 * HOUR
        assert roll(store, now) > 3
        first = (rows(store, "slice", "job_key"), rows(store, "share", "owner, command"))
        # Nothing is due any more; marked again, the same is made again.
        assert roll(store, now) == 0
        store.mark("due", [("fox", "", "", BOOT // HOUR * HOUR + hour * HOUR, "recount") for hour in range(6)])
        assert roll(store, now) == 6
        assert (rows(store, "slice", "job_key"), rows(store, "share", "owner, command")) == first
        made.append(first)
        ((used,),) = store.query("SELECT sum(cpu_time) FROM usage")
        for table in ("slice", "share"):
            assert store.query(f"SELECT sum(cpu_time) FROM {table}") == [(pytest.approx(used, rel=1e-9),)]
        store.close()
    for mine, theirs in zip(*made, strict=True):
        assert len(mine) > 10
        assert len(mine) == len(theirs)
        for one, other in zip(mine, theirs, strict=True):
            assert one == tuple(pytest.approx(value) if isinstance(value, float) else value for value in other)
