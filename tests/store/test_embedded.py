"""The embedded store keeps the contract, and survives being cut off anywhere."""

import json
import os
import re
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from jobsight.analyse.job import LABELS
from jobsight.analyse.keeper import open_store
from jobsight.store.embedded import Embedded
from jobsight.store.hot import Hot
from jobsight.store.protocol import JobQuery, StoreError
from jobsight.store.small import Small
from tests.store.contract import BOOT, Open, StoreContract, load_line, process_line


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    stores: list[Embedded] = []

    def begin() -> Embedded:
        stores.append(open_store(str(tmp_path / "store")))
        return stores[-1]

    yield begin
    for store in stores:
        store.close()


class TestEmbedded(StoreContract):
    pass


class PowerCutError(BaseException):
    """The process ends here."""


@pytest.mark.parametrize(
    ("where", "what"), [(Small, "count"), (Hot, "load")], ids=["before jobs are counted", "before rows are loaded"]
)
def test_a_crash_between_the_two_commits_counts_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: type[Any], what: str
) -> None:
    path = str(tmp_path / "store")
    store = open_store(path)
    store.append([process_line(BOOT + 100)]).result(10)
    store.digest()
    store.append([process_line(BOOT + 110)]).result(10)

    def cut(*_: object) -> None:
        raise PowerCutError

    monkeypatch.setattr(where, what, cut)
    with pytest.raises(PowerCutError):
        store.digest()
    monkeypatch.undo()
    store.close()
    again = open_store(path)
    again.append([process_line(BOOT + 110), process_line(BOOT + 120)]).result(10)
    again.digest()
    (job,) = again.jobs(JobQuery(), BOOT + 120)
    assert job["parts"][0]["cpu_time"] == 70
    assert again.query("SELECT count(*), sum(cpu_time) FROM usage") == [(3, 70.0)]
    assert again.query("SELECT count(*) FROM process") == [(3,)]
    again.close()


def test_a_second_owner_is_refused_with_a_sentence(opened: Open, tmp_path: Path) -> None:
    opened()
    with pytest.raises(StoreError, match=f"the store is in use: .*lock is held by process {os.getpid()}"):
        open_store(str(tmp_path / "store"))


def test_a_store_of_a_newer_program_is_refused_with_a_sentence(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.hot.query("UPDATE layout SET number = 99")
    store.close()
    with pytest.raises(StoreError, match="written by a newer jobsight"):
        open_store(str(tmp_path))


def test_reads_go_on_while_rows_are_loaded(opened: Open) -> None:
    store = opened()
    stop = threading.Event()
    seen: list[int] = []

    def read() -> None:
        while not stop.is_set():
            seen.append(store.query("SELECT count(*) FROM load")[0][0])

    reader = threading.Thread(target=read)
    reader.start()
    for batch in range(10):
        store.append([load_line(BOOT + 1000 * batch + i) for i in range(100)]).result(10)
        assert store.digest() == 100
    stop.set()
    reader.join()
    assert seen == sorted(seen)
    assert all(count % 100 == 0 for count in seen), "a reader saw half a batch"
    assert store.query("SELECT count(*) FROM load") == [(1000,)]


def test_old_rows_go_and_jobs_stay(opened: Open) -> None:
    store = opened()
    store.append([process_line(BOOT + 100), process_line(BOOT + 5000)]).result(10)
    store.digest()
    assert isinstance(store, Embedded)
    store.forget(BOOT + 1000)
    assert store.query("SELECT count(*) FROM process") == [(1,)]
    (job,) = store.jobs(JobQuery(), BOOT + 5000)
    assert job["parts"][0]["cpu_time"] == 4950


def test_numbers_too_large_to_add_up_are_missing_and_cost_nobody_a_message(opened: Open) -> None:
    store = opened()
    # Two alike rows, each with the largest number that is accepted.
    huge = re.sub(rb'": \[([^]]+)\]', rb'": [\1, \1]', process_line(BOOT + 100, memory_anon=2**62))
    store.append([huge, load_line(BOOT + 100, node="good")]).result(10)
    assert store.digest() == 2
    assert store.query("SELECT node FROM load") == [("good",)]
    assert store.query("SELECT memory FROM usage") == [(None,)]


def test_a_message_the_tables_refuse_is_kept_apart_and_its_neighbours_load(
    opened: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = opened()
    real = Hot._load_messages

    def picky(self: Hot, cursor: Any, messages: Any) -> None:
        if any(message.node == "bad" for message in messages):
            raise duckdb.ConversionException("no such number")
        real(self, cursor, messages)

    monkeypatch.setattr(Hot, "_load_messages", picky)
    store.append([load_line(BOOT + 1), load_line(BOOT + 1, node="bad"), load_line(BOOT + 2)]).result(10)
    store.digest()
    assert store.query("SELECT node, time FROM load ORDER BY time") == [("n1", BOOT + 1), ("n1", BOOT + 2)]
    (kept,) = (tmp_path / "store" / "quarantine").iterdir()
    assert json.loads(json.loads(kept.read_text())["message"])["node"] == "bad"


def test_what_fails_for_want_of_room_waits_and_is_loaded_later(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened()
    store.append([process_line(BOOT + 100)]).result(10)

    def full(*_: object) -> None:
        raise duckdb.IOException("No space left on device")

    monkeypatch.setattr(Hot, "_load", full)
    assert store.digest() == 0
    monkeypatch.undo()
    store.append([process_line(BOOT + 110)]).result(10)
    assert store.digest() == 2
    (job,) = store.jobs(JobQuery(), BOOT + 110)
    assert job["parts"][0]["cpu_time"] == 60


def test_an_interrupt_while_rows_are_loaded_ends_the_program_and_loses_nothing(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        # What DuckDB makes of Ctrl-C.
        raise RuntimeError("Query interrupted")

    store = opened()
    store.append([process_line(BOOT + 100)]).result(10)
    with monkeypatch.context() as patch:
        patch.setattr(Hot, "load", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.digest()
    assert store.digest() == 1
    assert store.query("SELECT count(*) FROM process") == [(1,)]


def test_a_path_with_an_apostrophe_is_a_path(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "o'brien"))
    store.append([process_line(BOOT + 100)]).result(10)
    assert store.digest() == 1
    store.close()


def test_derived_rows_the_tables_refuse_do_not_hold_up_the_log(
    opened: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = opened()
    real = Hot._insert

    def refuse(*_: object) -> None:
        raise duckdb.ConversionException("no such number")

    monkeypatch.setattr(Hot, "_insert", refuse)
    store.append([process_line(BOOT + 100)]).result(10)
    store.digest()
    monkeypatch.setattr(Hot, "_insert", real)
    store.append([load_line(BOOT + 200)]).result(10)
    assert store.digest() == 1
    assert len(list((tmp_path / "store" / "log").glob("*.failed"))) == 1


def test_jobs_of_the_first_layout_are_kept_and_can_be_searched(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.append([process_line(BOOT + 100)]).result(10)
    store.digest()
    store.close()
    with sqlite3.connect(tmp_path / "small.sqlite") as old:
        # As layout 1 was: without what was added since.
        old.executescript(
            "DROP INDEX job_numbered; DROP INDEX job_search; DROP INDEX IF EXISTS job_waits; "
            "ALTER TABLE job DROP COLUMN number; ALTER TABLE job DROP COLUMN words; "
            "DROP INDEX job_account; DROP INDEX job_charged; "
            "ALTER TABLE job DROP COLUMN account; ALTER TABLE job DROP COLUMN waits"
        )
        (document,) = old.execute("SELECT document FROM job").fetchone()
        kept = {name: value for name, value in json.loads(document).items() if name not in LABELS}
        old.execute("UPDATE job SET document = ?", [json.dumps(kept)])
        old.execute("PRAGMA user_version = 1")
    old.close()
    again = open_store(str(tmp_path))
    assert [job["id"] for job in again.jobs(JobQuery(id="100"), BOOT + 100)] == ["100"]
    assert again.accounts() == []
    again.append([process_line(BOOT + 110)]).result(10)
    again.digest()
    (job,) = again.jobs(JobQuery(text="alice"), BOOT + 110)
    assert job["parts"][0]["cpu_time"] == 60
    again.close()
