"""Rows in files are the same rows: after every move, every crash, every late message."""

import errno
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from jobsight.analyse.keeper import DERIVED, Keeper, open_store
from jobsight.show import views
from jobsight.store import cold
from jobsight.store.embedded import Embedded
from jobsight.store.plan import DAY, HOUR, Move
from jobsight.store.protocol import JobQuery, StoreError
from tests.store.contract import Open, StoreContract, load_line, process_line

MIDNIGHT = 1794700800.0
# When hours are over and the day is not, and when it is.
NOON = MIDNIGHT + 12 * HOUR
NEXT = MIDNIGHT + DAY + 7200


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
        for store in stores:
            store.close()

    def test_rows_really_are_in_files(self, opened: Open) -> None:
        store = opened()
        store.append([load_line(MIDNIGHT), process_line(MIDNIGHT)]).result(10)
        store.digest()
        assert isinstance(store, Embedded)
        assert [rows(store, table) for table in ("load", "process", "usage", "run")] == [(0, 1)] * 3 + [(0, 2)]


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
    found["jobs"] = [views.job(store, job["key"], NOON) for job in jobs]
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


def test_what_is_stored_is_the_same_after_hours_and_after_the_day(store: Embedded, path: Path) -> None:
    before = stored(store)
    assert len(before["jobs"]) == 4
    assert before["jobs"][0]["series"]["cpu"]["value"]
    assert rows(store, "process") == (36, 0)

    assert store.compact(NOON, least=1) == sum(len(before[table]) for table in store.hot.columns())
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


# Where the process ends, and what it does before it ends there.
CUTS = {
    "before a file is written": "cold.Cold._write = end",
    "half of it is written": "real = cold.Cold._write\ndef half(self, cursor, move, path):\n"
    "    real(self, cursor, move, path)\n    os.truncate(path, 100)\n    end()\ncold.Cold._write = half",
    "before it has its name": "cold.settle = end",
    "when it has its name": "real = cold.settle\ncold.settle = lambda *names: (real(*names), end())",
    "before the commit": "real = cold.Cold._drop\ncold.Cold._drop = lambda *given: (real(*given), end())",
    "before old files are unlinked": "readers.Readers.unlink = end",
}
CHILD = """
import os, signal, sys
from jobsight.analyse.keeper import open_store
from jobsight.store import cold, readers
store = open_store(sys.argv[1])
def end(*_):
    os.kill(os.getpid(), signal.SIGKILL)
{cut}
store.compact(float(sys.argv[2]), least=1)
"""


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("now", [NOON, NEXT], ids=["an hour's file", "a day's file"])
def test_kill_9_loses_nothing_and_doubles_nothing(path: Path, cut: str, now: float) -> None:
    store = open_store(str(path))
    store.append(lines(MIDNIGHT)).result(10)
    store.digest()
    before = stored(store)
    if now == NEXT:
        store.compact(NOON, least=1)
        # One late row goes with the hours.
        store.append([load_line(MIDNIGHT + 5)]).result(10)
        store.digest()
        before = stored(store)
    store.close()
    child = [sys.executable, "-c", CHILD.format(cut=CUTS[cut]), str(path), str(now)]
    ended = subprocess.run(child, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr

    again = open_store(str(path))
    try:
        assert stored(again) == before
        assert in_catalogue(again) == on_disk(path)
        again.compact(now, least=1)
        assert stored(again) == before
        assert sum(table.hot for table in again.status().tables) == 0
        assert in_catalogue(again) == on_disk(path)
    finally:
        again.close()


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), duckdb.IOException("No space")])
def test_a_full_disk_leaves_everything_as_it_was(
    store: Embedded, path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], error: Exception
) -> None:
    before = stored(store)

    def full(*_: object) -> None:
        raise error

    monkeypatch.setattr(cold, "settle", full)
    assert store.compact(NEXT) == 0
    assert "compaction waits" in capfd.readouterr().err
    assert (stored(store), on_disk(path)) == (before, set())
    monkeypatch.undo()
    assert store.compact(NEXT) > 0
    assert stored(store) == before


def test_a_file_that_cannot_be_written_to_its_end_leaves_everything_as_it_was(store: Embedded, path: Path) -> None:
    store.append([load_line(MIDNIGHT + 1 + i * 0.37) for i in range(5000)]).result(10)
    store.digest()
    before = stored(store)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The kernel itself refuses to let any file grow beyond this, in the middle of a write.
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        store.compact(NEXT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "load/2026/11/15.parquet" not in on_disk(path)
    assert stored(store) == before
    store.compact(NEXT)
    assert "load/2026/11/15.parquet" in on_disk(path)
    assert stored(store) == before


def test_a_commit_that_fails_leaves_no_file(store: Embedded, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = stored(store)

    def fail(*_: object) -> None:
        raise duckdb.IOException("the log of the tables cannot be written")

    monkeypatch.setattr(cold.Cold, "_show", fail)
    assert store.compact(NEXT) == 0
    assert (stored(store), on_disk(path)) == (before, set())


def test_a_file_with_other_rows_than_it_was_made_of_is_not_taken(
    store: Embedded, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stored(store)

    def short(_: cold.Cold, cursor: duckdb.DuckDBPyConnection, move: Move, file: str) -> None:
        cursor.execute(f"COPY (SELECT * FROM main.{move.source} LIMIT 1) TO '{file}' (FORMAT parquet)")

    monkeypatch.setattr(cold.Cold, "_write", short)
    with pytest.raises(StoreError, match="has 1 rows, not as many as it was made of: nothing was moved"):
        store.compact(NEXT)
    assert (stored(store), on_disk(path)) == (before, set())


def test_readers_and_the_loader_go_on_while_rows_are_moved(store: Embedded) -> None:
    stop = threading.Event()
    seen: list[tuple[Any, ...]] = []

    def read() -> None:
        while not stop.is_set():
            seen.append(store.query("SELECT count(*), sum(cpu_user) FROM process WHERE node = 'n1'")[0])

    reader = threading.Thread(target=read)
    mover = threading.Thread(target=lambda: [store.compact(now, least=1) for now in (NOON, NEXT)])
    expected = store.query("SELECT count(*), sum(cpu_user) FROM process WHERE node = 'n1'")[0]
    reader.start()
    mover.start()
    loaded = 0
    while mover.is_alive() or loaded < 3:
        # Late rows of an hour that may be moving at this moment.
        store.append([process_line(MIDNIGHT + 1 + loaded, node="n3")]).result(10)
        loaded += store.digest()
    mover.join()
    stop.set()
    reader.join()
    assert set(seen) == {expected}
    assert store.query("SELECT count(*), count(DISTINCT time) FROM process WHERE node = 'n3'") == [(loaded, loaded)]


def test_a_file_goes_when_the_last_query_that_knows_it_has_ended(store: Embedded, path: Path) -> None:
    store.compact(NOON, least=1)
    hours = on_disk(path)
    with store.hot.readers.reading():
        store.compact(NEXT)
        assert hours < on_disk(path)
        with store.hot.readers.reading():
            pass
        assert hours < on_disk(path)
    assert not hours & on_disk(path)
    assert in_catalogue(store) == on_disk(path)


def test_files_of_another_time_are_not_opened_by_a_query_that_says_when(store: Embedded, path: Path) -> None:
    store.append(lines(MIDNIGHT + DAY) + lines(MIDNIGHT + 2 * DAY)).result(10)
    store.digest()
    store.compact(NEXT + DAY)  # the third day stays in tables
    asked = "SELECT count(*), sum(run.time) FROM process JOIN run USING (cluster, node, boot, time) WHERE time >= ?"
    spans = [(MIDNIGHT + DAY, NEXT + 2 * DAY), (MIDNIGHT + DAY + HOUR, MIDNIGHT + DAY + HOUR), (0.0, NEXT + 9 * DAY)]
    for since, until in spans:
        whole = store.query(f"{asked} AND time <= ?", [since, until])
        assert store.query(f"{asked} AND time <= ?", [since, until], (since, until)) == whole
        assert whole[0][0] > 0
    expected = store.query(asked, [MIDNIGHT + DAY])
    for table in ("process", "run"):
        (path / "cold" / table / "2026/11/15.parquet").unlink()
    with pytest.raises(duckdb.IOException):
        store.query("SELECT sum(time) FROM run")
    assert store.query(asked, [MIDNIGHT + DAY], (MIDNIGHT + DAY, NEXT + 2 * DAY)) == expected


def test_retention_drops_only_what_is_old(store: Embedded, path: Path) -> None:
    store.append(lines(MIDNIGHT + DAY) + lines(MIDNIGHT + 2 * DAY)).result(10)
    store.digest()
    store.compact(NEXT + DAY)  # the third day stays in tables
    assert rows(store, "process") == (36, 72)
    jobs = len(store.jobs(JobQuery(), NEXT))
    before = MIDNIGHT + DAY + HOUR  # in the middle of a file: it stays
    kept = store.query("SELECT * FROM process WHERE time >= ? ORDER BY ALL", [MIDNIGHT + DAY])
    assert store.forget(before) > 0
    assert store.query("SELECT * FROM process ORDER BY ALL") == kept
    assert not [file for file in on_disk(path) if "11/15" in file]
    assert in_catalogue(store) == on_disk(path)

    store.forget(MIDNIGHT + 2 * DAY + HOUR)
    assert store.query("SELECT min(time) FROM process") == [(MIDNIGHT + 2 * DAY + HOUR,)]
    assert on_disk(path) == set()
    assert len(store.jobs(JobQuery(), NEXT)) == jobs


def test_one_table_can_be_kept_shorter_than_the_others(store: Embedded, path: Path) -> None:
    store.compact(NEXT)
    assert store.forget(NEXT, ["process"]) == 36
    assert rows(store, "process") == (0, 0)
    assert rows(store, "usage")[1] > 0
    assert "usage/2026/11/15.parquet" in on_disk(path)


def test_jobs_go_only_when_they_are_asked_to(store: Embedded) -> None:
    assert store.forget_jobs(MIDNIGHT + 2 * HOUR) == 2
    assert sorted(job["id"] for job in store.jobs(JobQuery(), NOON)) == ["100", "9"]


def test_a_file_from_before_a_column_was_added_has_it_missing(store: Embedded, path: Path) -> None:
    store.compact(NEXT)
    before = store.query("SELECT * EXCLUDE (written) FROM process ORDER BY ALL")
    store.close()
    file, other = path / "cold" / "process/2026/11/15.parquet", path / "old.parquet"
    duckdb.execute(f"COPY (SELECT * EXCLUDE (written) FROM '{file}') TO '{other}'")
    other.rename(file)
    with duckdb.connect(str(path / "hot.duckdb")) as tables:
        tables.execute("UPDATE cold.file SET fields = replace(fields, ',written', '') WHERE source = 'process'")
    again = open_store(str(path))
    assert again.query("SELECT * EXCLUDE (written) FROM process ORDER BY ALL") == before
    assert again.query("SELECT count(*), count(written) FROM process") == [(36, 0)]
    again.append([process_line(MIDNIGHT + 7, written=5)]).result(10)
    again.digest()
    again.compact(NEXT + DAY)
    assert again.query("SELECT count(*), sum(written) FROM process") == [(37, 5)]
    again.close()


def test_a_store_can_be_put_elsewhere(store: Embedded, path: Path, tmp_path: Path) -> None:
    store.compact(NEXT)
    before = stored(store)
    store.close()
    path.rename(tmp_path / "o'brien")
    again = open_store(str(tmp_path / "o'brien"))
    assert stored(again) == before
    again.append([load_line(MIDNIGHT + DAY)]).result(10)
    again.digest()
    assert again.compact(NEXT + DAY) > 0
    again.close()
    (tmp_path / "o'brien").rename(path)


def test_a_file_that_is_gone_is_told_and_the_store_opens(
    store: Embedded, path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store.compact(NEXT)
    store.close()
    (path / "cold" / "load/2026/11/15.parquet").unlink()
    again = open_store(str(path))
    assert "load/2026/11/15.parquet is gone, and 18 rows with it" in capfd.readouterr().err
    assert again.query("SELECT count(*) FROM load") == [(0,)]
    assert again.query("SELECT count(*) FROM process") == [(36,)]
    again.close()


def test_files_are_not_removed_because_the_catalogue_is_lost(store: Embedded, path: Path) -> None:
    store.compact(NEXT)
    store.close()
    kept = on_disk(path)
    (path / "hot.duckdb").rename(path / "aside")
    for _ in range(2):  # a service is started again and again
        with pytest.raises(StoreError, match=r"holds rows, but hot\.duckdb is gone that goes with them"):
            open_store(str(path))
        assert on_disk(path) == kept
    (path / "aside").rename(path / "hot.duckdb")
    again = open_store(str(path))
    assert again.query("SELECT count(*) FROM process") == [(36,)]
    again.close()


def test_a_store_from_before_there_were_files_is_brought_up_to_date(store: Embedded, path: Path) -> None:
    before = stored(store)
    store.close()
    with duckdb.connect(str(path / "hot.duckdb")) as tables:
        tables.execute("DROP SCHEMA cold CASCADE; DROP SCHEMA whole CASCADE; UPDATE layout SET number = 1")
    again = open_store(str(path))
    assert stored(again) == before
    assert again.query("SELECT number FROM layout") == [(2,)]
    again.close()


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
