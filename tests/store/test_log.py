"""The append log: what is acknowledged is there, what is torn is not."""

import os
from concurrent.futures import wait
from pathlib import Path

import pytest

from jobsight.store.log import Log


def everything(log: Log) -> list[bytes]:
    return [payload for number in log.finished() for payload in log.payloads(number)]


def test_what_was_appended_comes_back_in_order(tmp_path: Path) -> None:
    log = Log(str(tmp_path), 1)
    wait([log.append(b"%d" % i) for i in range(100)])
    assert everything(log) == [b"%d" % i for i in range(100)]
    log.append(b"next").result(5)
    assert everything(log)[-1] == b"next"
    log.close()


def test_an_acknowledged_payload_is_there_after_a_crash(tmp_path: Path) -> None:
    log = Log(str(tmp_path), 1)
    log.append(b"kept").result(5)
    # No close: the process was killed here.
    assert everything(Log(str(tmp_path), 1)) == [b"kept"]


def test_a_torn_last_frame_is_passed_over(tmp_path: Path) -> None:
    log = Log(str(tmp_path), 1)
    log.append(b"first").result(5)
    log.append(b"second").result(5)
    (number,) = log.finished()
    path = tmp_path / f"{number:08d}.log"
    os.truncate(path, path.stat().st_size - 3)
    assert log.payloads(number) == [b"first"]


def test_numbers_are_never_used_twice(tmp_path: Path) -> None:
    log = Log(str(tmp_path), 7)
    log.append(b"x").result(5)
    assert log.finished() == [7]
    log.remove(7)
    log.append(b"y").result(5)
    assert log.finished() == [8]


def test_a_disk_that_is_full_is_told_and_leaves_no_half_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(str(tmp_path), 1)
    log.append(b"before").result(5)
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:3]) if len(data) > 3 else _full())
    with pytest.raises(OSError, match="No space left"):
        log.append(b"lost").result(5)
    monkeypatch.undo()
    log.append(b"after").result(5)
    assert everything(log) == [b"before", b"after"]


def _full() -> int:
    raise OSError(28, "No space left on device")
