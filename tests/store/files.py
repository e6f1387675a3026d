"""A day of two nodes, and what can be seen of it wherever its rows are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.show.views import View
from jobsight.store.embedded import Embedded
from jobsight.store.plan import DAY, HOUR
from jobsight.store.protocol import JobQuery
from tests.store.contract import load_line, process_line

MIDNIGHT = 1794700800.0
# When hours are over and the day is not, and when it is.
NOON = MIDNIGHT + 12 * HOUR
NEXT = MIDNIGHT + DAY + 7200


def lines(start: float, hours: int = 3) -> list[bytes]:
    """Two nodes, a job that goes on, jobs of an hour each."""
    found = []
    for i in range(hours * 6):
        time = start + 600 * i
        found += [load_line(time), load_line(time, node="n2", status="failed")]
        found.append(process_line(time, memory_anon=1000 * i, written=5 * i))
        found.append(process_line(time, node="n2", pid=7 + i // 6, job=str(7 + i // 6), owner="bob", read=i))
    return found


def stored(store: Embedded) -> dict[str, Any]:
    """Everything a reader can see."""
    found: dict[str, Any] = {
        table: store.query(f"SELECT * FROM {table} ORDER BY ALL") for table in store.hot.columns()
    }
    found["sums"] = store.query("SELECT job, sum(cpu_user), count(*) FROM process GROUP BY job ORDER BY job")
    found["nodes"] = store.nodes(NOON)
    jobs = store.jobs(JobQuery(), NOON)
    found["jobs"] = [View(store).job(job["key"], NOON) for job in jobs]
    return found


def on_disk(path: Path) -> set[str]:
    return {str(file.relative_to(path / "cold")) for file in (path / "cold").rglob("*") if file.is_file()}


def in_catalogue(store: Embedded) -> set[str]:
    return {piece.name for piece in store.cold.pieces()}


def rows(store: Embedded, table: str) -> tuple[int, int]:
    """In the table and in files."""
    return next((found.hot, found.cold) for found in store.status().tables if found.table == table)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(path: Path) -> Iterator[Embedded]:
    """Three hours of a day, all in tables."""
    opened = open_store(str(path))
    opened.append(lines(MIDNIGHT)).result(10)
    opened.digest()
    yield opened
    opened.close()
