"""Whatever cuts a move off, rows are there once."""

import errno
import resource
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from jobsight.analyse.keeper import open_store
from jobsight.store import cold
from jobsight.store.embedded import Embedded
from jobsight.store.plan import Move
from jobsight.store.protocol import StoreError
from jobsight.store.retention import MARKS
from tests.store.contract import load_line
from tests.store.files import MIDNIGHT, NEXT, NOON, in_catalogue, lines, on_disk, stored
from tests.store.files import path as path  # noqa: PLC0414
from tests.store.files import store as store  # noqa: PLC0414

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
        assert sum(table.hot for table in again.status().tables if table.table not in MARKS) == 0
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
