"""When a job last did something: by slices, in the time looked at and before it."""

from collections.abc import Sequence
from typing import Any

import duckdb
from msgspec import structs

from jobsight.analyse.scene import _course, last_busy
from jobsight.analyse.summary import Summary, summary
from tests.analyse.figures import document, part

DAY = 86400.0
STEP = 300.0


class Slices:
    """A store that has nothing but slices."""

    def __init__(self, rows: Sequence[tuple[str, str, float, float, int, float]]) -> None:
        self._base = duckdb.connect()
        self._base.execute(
            "CREATE TABLE slice (job_key VARCHAR, source VARCHAR, time DOUBLE, cpu_time DOUBLE, cpus INTEGER, "
            "covered DOUBLE)"
        )
        self._base.executemany("INSERT INTO slice VALUES (?, ?, ?, ?, ?, ?)", rows)

    def query(self, sql: str, values: Sequence[Any], _between: tuple[float, float]) -> list[tuple[Any, ...]]:
        return self._base.execute(sql, values).fetchall()


def job(started: float, seen: float, cpus: int) -> Summary:
    told = document(part(source="cgroup", cpus=cpus), key="k", started=started, seen=seen)
    return structs.replace(summary(told, seen), elapsed=seen - started, source="cgroup", scheduler="slurm")


def busy(rows: list[tuple[float, float]], one: Summary, cpus: int, since: float, until: float) -> float | None:
    """`rows` are times and CPU time in five minutes from then on."""
    store: Any = Slices([("k", "cgroup", time, cpu, cpus, STEP) for time, cpu in rows])
    return last_busy(one, _course(store, [one], since, until), since)[0]


def test_one_busy_core_of_many_is_not_nothing() -> None:
    """One of 256 is less than a hundredth."""
    rows = [(number * STEP, STEP) for number in range(24)]
    assert busy(rows, job(0.0, 7200.0, 256), 256, 0.0, 7200.0) == 7200.0
    assert busy([(time, 1.0) for time, _ in rows], job(0.0, 7200.0, 256), 256, 0.0, 7200.0) == 0.0


def test_one_that_did_nothing_in_all_the_time_looked_at_is_known_by_what_was_before() -> None:
    rows = [(DAY, 2000.0), (2 * DAY, 0.0), (19 * DAY, 0.0), (20 * DAY - STEP, 0.0)]
    one = job(DAY, 20 * DAY, 8)
    assert busy(rows, one, 8, 18 * DAY, 20 * DAY) == DAY + STEP
    assert busy(rows[1:], one, 8, 18 * DAY, 20 * DAY) == DAY, "it never did anything"
