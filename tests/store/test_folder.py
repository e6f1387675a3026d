"""The folder of a store: moved, from an older program, with files that are gone."""

import shutil
from pathlib import Path

import duckdb
import pytest

from jobsight.analyse.keeper import open_store
from jobsight.store.embedded import Embedded
from jobsight.store.plan import DAY
from jobsight.store.protocol import StoreError
from tests.store.contract import load_line, process_line
from tests.store.files import MIDNIGHT, NEXT, on_disk, stored
from tests.store.files import path as path  # noqa: PLC0414
from tests.store.files import store as store  # noqa: PLC0414


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
    assert "load/2026/11/15.parquet is gone, and 18 rows with them" in capfd.readouterr().err
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


def test_files_that_were_away_for_a_while_count_again_when_they_are_back(
    store: Embedded, path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store.compact(NEXT)
    store.close()
    kept = on_disk(path)
    # As where the disk that holds them was not mounted.
    (path / "cold").rename(path.parent / "unmounted")
    for _ in range(2):
        away = open_store(str(path))
        assert away.query("SELECT count(*) FROM process") == [(0,)]
        # What is written meanwhile must not take their names.
        away.append([load_line(MIDNIGHT + 5)]).result(10)
        away.digest()
        away.compact(NEXT + 2 * DAY)
        away.close()
    said = capfd.readouterr().err
    assert "count again when they are back" in said
    assert said.count("rows with them") == 1
    written = set(on_disk(path))
    assert written
    assert not written & set(kept)
    shutil.copytree(path / "cold", path.parent / "unmounted", dirs_exist_ok=True)
    shutil.rmtree(path / "cold")
    (path.parent / "unmounted").rename(path / "cold")
    for _ in range(2):
        again = open_store(str(path))
        assert set(on_disk(path)) == written | set(kept)
        assert again.query("SELECT count(*) FROM process") == [(36,)]
        assert again.query("SELECT count(*) FROM load") == [(19,)]
        again.close()
