"""Nobody who reads or loads notices that rows are moved."""

import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

from jobsight.store.embedded import Embedded
from jobsight.store.plan import DAY, HOUR
from tests.store.contract import process_line
from tests.store.files import MIDNIGHT, NEXT, NOON, in_catalogue, lines, on_disk
from tests.store.files import path as path  # noqa: PLC0414
from tests.store.files import store as store  # noqa: PLC0414


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
