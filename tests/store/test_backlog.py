"""What waits to be digested is bounded: beyond that senders are told to come again, and nothing is lost."""

import os
from pathlib import Path

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.ingest.limit import BusyError
from jobsight.store import log as log_module
from jobsight.store.log import Log
from jobsight.store.protocol import Backlog
from tests.store.contract import BOOT, load_line


def test_a_log_that_is_full_takes_no_more_until_something_is_loaded(tmp_path: Path) -> None:
    log = Log(str(tmp_path), 1, most=100)
    log.append(b"a" * 90).result(5)
    log.append(b"b" * 90).result(5)
    with pytest.raises(BusyError, match=r"196 B wait to be digested"):
        log.append(b"c").result(5)
    (number,) = log.finished()
    assert log.payloads(number) == [b"a" * 90, b"b" * 90]
    log.remove(number)
    log.append(b"c").result(5)
    assert [payload for number in log.finished() for payload in log.payloads(number)] == [b"c"]
    log.close()


def test_what_waits_is_known_after_a_restart(tmp_path: Path) -> None:
    log = Log(str(tmp_path), 1, most=100)
    log.append(b"a" * 200).result(5)
    log.close()
    again = Log(str(tmp_path), 2, most=100)
    assert again.backlog().size == 208
    with pytest.raises(BusyError):
        again.append(b"c").result(5)
    again.close()


def test_the_oldest_that_waits_tells_how_long(tmp_path: Path) -> None:
    now = [1000.0]
    log = Log(str(tmp_path), 1, most=100, clock=lambda: now[0])
    assert log.backlog() == Backlog(0, 100, None)
    log.append(b"a").result(5)
    log.finished()
    now[0] = 1007.0
    log.append(b"b").result(5)
    assert log.backlog() == Backlog(18, 100, 7.0)
    log.remove(log.finished()[0])
    assert log.backlog() == Backlog(9, 100, 0.0)
    log.close()


def test_what_could_not_be_written_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(str(tmp_path), 1, most=100)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdatasync", full)
    with pytest.raises(OSError, match="No space left"):
        log.append(b"a" * 200).result(5)
    monkeypatch.undo()
    assert log.backlog().size == 0
    log.append(b"b").result(5)
    log.close()


def test_a_long_segment_is_closed_and_another_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "SEGMENT", 100)
    log = Log(str(tmp_path), 1)
    for letter in (b"a", b"b", b"c"):
        log.append(letter * 60).result(5)
    numbers = log.finished()
    assert [log.payloads(number) for number in numbers] == [[b"a" * 60, b"b" * 60], [b"c" * 60]]
    log.close()


def test_a_store_that_cannot_digest_says_so_and_goes_on_when_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(str(tmp_path / "store"), most=1000)
    monkeypatch.setattr(type(store), "_digest_segment", _full)
    count = 0
    while store.backlog().size < 1000:
        store.append([load_line(BOOT + count)]).result(10)
        store.digest()
        count += 1
    with pytest.raises(BusyError):
        store.append([load_line(BOOT + count)]).result(10)
    monkeypatch.undo()
    assert store.digest() == count
    assert store.backlog() == Backlog(0, 1000, None)
    store.append([load_line(BOOT + count)]).result(10)
    assert store.digest() == 1
    assert store.query("SELECT count(*) FROM load") == [(count + 1,)]
    store.close()


def _full(*_: object) -> int:
    raise OSError(28, "No space left on device")
