"""Rows in files are the same rows: after every move, after every late message."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from jobsight.analyse.keeper import DERIVED, Keeper
from jobsight.store.embedded import Embedded
from jobsight.store.plan import DAY, HOUR
from jobsight.store.protocol import StoreError
from jobsight.store.retention import MARKS
from tests.store.contract import Open, StoreContract, load_line, process_line
from tests.store.files import MIDNIGHT, NEXT, NOON, in_catalogue, lines, on_disk, rows, stored
from tests.store.files import path as path  # noqa: PLC0414
from tests.store.files import store as store  # noqa: PLC0414


class Compacting(Embedded):
    """Moves everything to files as soon as it is loaded."""

    def digest(self) -> int:
        count = super().digest()
        for day in range(6):
            self.compact(MIDNIGHT + (2 + day) * DAY, least=1)
        return count


class TestCold(StoreContract):
    """The contract holds for rows in files."""

    @pytest.fixture
    def opened(self, tmp_path: Path) -> Iterator[Open]:
        stores: list[Embedded] = []

        def begin() -> Embedded:
            stores.append(Compacting(str(tmp_path / "store"), Keeper(), DERIVED))
            return stores[-1]

        yield begin
        for one in stores:
            one.close()

    def test_rows_really_are_in_files(self, opened: Open) -> None:
        store = opened()
        store.append([load_line(MIDNIGHT), process_line(MIDNIGHT)]).result(10)
        store.digest()
        assert isinstance(store, Embedded)
        assert [rows(store, table) for table in ("load", "process", "usage", "run")] == [(0, 1)] * 3 + [(0, 2)]


def test_what_is_stored_is_the_same_after_hours_and_after_the_day(store: Embedded, path: Path) -> None:
    before = stored(store)
    assert len(before["jobs"]) == 4
    assert before["jobs"][0]["series"]["cpu"]["value"]
    assert rows(store, "process") == (36, 0)

    moving = [table for table in store.hot.columns() if table not in MARKS]
    assert store.compact(NOON, least=1) == sum(len(before[table]) for table in moving)
    assert rows(store, "process") == (0, 36)
    assert {f"process/2026/11/15/{hour}.parquet" for hour in ("00", "01", "02")} <= on_disk(path)
    assert stored(store) == before

    store.compact(NEXT)
    assert in_catalogue(store) == on_disk(path)
    assert "process/2026/11/15.parquet" in on_disk(path)
    assert not [file for file in on_disk(path) if "/15/" in file], "hourly files are left"
    assert stored(store) == before
    assert store.compact(NEXT) == 0


def test_an_hour_that_is_not_over_stays_in_the_table(store: Embedded) -> None:
    store.compact(MIDNIGHT + 2 * HOUR + 900, least=1)
    assert rows(store, "process") == (12, 24)


def test_files_are_sorted_by_job_then_by_process_over_time(store: Embedded, path: Path) -> None:
    store.compact(NEXT)
    file = path / "cold" / "process/2026/11/15.parquet"
    found = duckdb.execute(f"SELECT job, node, pid, time FROM '{file}'").fetchall()
    assert found == sorted(found)
    assert len(found) == 36


def test_a_message_that_comes_again_after_its_rows_went_to_a_file_changes_nothing(store: Embedded) -> None:
    store.compact(NOON, least=1)
    before = stored(store)
    store.append(lines(MIDNIGHT)).result(10)
    assert store.digest() == 0
    assert stored(store) == before


def test_late_rows_wait_for_their_day_and_then_for_the_next(store: Embedded, path: Path) -> None:
    store.compact(NOON, least=1)
    store.append([load_line(MIDNIGHT + 5), load_line(MIDNIGHT)]).result(10)
    assert store.digest() == 1
    store.compact(NOON, least=1)
    assert rows(store, "load") == (1, 18)
    store.compact(NEXT)
    assert rows(store, "load") == (0, 19)

    store.append([load_line(MIDNIGHT + 6)]).result(10)
    store.digest()
    store.compact(NEXT + 60)
    assert rows(store, "load") == (1, 19)
    store.compact(NEXT + DAY)
    assert rows(store, "load") == (0, 20)
    assert {"load/2026/11/15.parquet", "load/2026/11/15-2.parquet"} <= on_disk(path)
    assert store.query("SELECT count(*), count(DISTINCT time) FROM load") == [(20, 20)]


def test_export_is_a_file_of_its_own_with_the_rows_of_that_time(store: Embedded, tmp_path: Path) -> None:
    store.compact(MIDNIGHT + 2 * HOUR + 900, least=1)
    file = tmp_path / "out.parquet"
    assert store.export("process", str(file), MIDNIGHT + HOUR, MIDNIGHT + 3 * HOUR) == 24
    found = duckdb.execute(f"SELECT * FROM '{file}' ORDER BY ALL").fetchall()
    assert found == store.query("SELECT * FROM process WHERE time >= ? ORDER BY ALL", [MIDNIGHT + HOUR])
    with pytest.raises(StoreError, match="no table 'weather'; there are agent"):
        store.export("weather", str(file), 0.0, NEXT)


def test_what_hot_knows_by_name_is_what_a_table_has(store: Embedded) -> None:
    for table, names in store.hot.columns().items():
        asked = "SELECT column_name FROM duckdb_columns() WHERE table_name = ? AND schema_name = 'main'"
        assert {row[0] for row in store.query(asked, [table])} == set(names)
