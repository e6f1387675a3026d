"""What was refused or set aside is looked at again, and taken in if it can be."""

import os
from pathlib import Path

import pytest

from jobsight import frame
from jobsight.analyse.keeper import open_store
from jobsight.ingest.accept import Refused
from jobsight.ingest.assembly import kept
from jobsight.ingest.quarantine import Quarantine
from jobsight.ingest.review import Found, review
from jobsight.schema.wire import compress
from jobsight.ship.part import cut
from tests.store.contract import BOOT, load_line, process_line


class Taker:
    """Takes what is handed in."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.full = False

    def __call__(self, lines: list[bytes]) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        self.lines += lines


@pytest.fixture
def taker() -> Taker:
    return Taker()


def refused(path: Path, *lines: bytes) -> None:
    Quarantine(str(path / "quarantine")).keep([Refused(line, "$", "an older version") for line in lines])


def test_what_is_acceptable_goes_and_the_rest_stays(tmp_path: Path, taker: Taker) -> None:
    refused(tmp_path, b"no message", load_line(BOOT + 1), b"\xff\xfe", load_line(BOOT + 2))
    assert review(str(tmp_path), taker) == Found(2, 2)
    assert [b"%d" % at in line for at, line in zip((1, 2), taker.lines, strict=True)] == [True, True]
    assert review(str(tmp_path), taker) == Found(0, 2)
    assert len(taker.lines) == 2


def test_nothing_moves_while_the_store_takes_nothing(tmp_path: Path, taker: Taker) -> None:
    refused(tmp_path, load_line(BOOT + 1), b"no message")
    taker.full = True
    for _ in range(2):
        with pytest.raises(OSError, match="No space"):
            review(str(tmp_path), taker)
    assert Quarantine(str(tmp_path / "quarantine")).held() == 2
    taker.full = False
    assert review(str(tmp_path), taker) == Found(1, 1)


def test_a_review_that_was_killed_is_gone_on_with(tmp_path: Path, taker: Taker) -> None:
    refused(tmp_path, load_line(BOOT + 1), b"no message")
    Quarantine(str(tmp_path / "quarantine")).take()
    refused(tmp_path, load_line(BOOT + 2))
    assert review(str(tmp_path), taker) == Found(2, 1)


def test_parts_that_came_too_late_for_each_other_are_joined(tmp_path: Path, taker: Taker) -> None:
    line = process_line(BOOT + 1)
    parts = list(cut(compress(line), 100))
    assert len(parts) > 2
    refused(tmp_path, *(kept(part) for part in parts[:-1]))
    assert review(str(tmp_path), taker) == Found(0, len(parts) - 1)
    refused(tmp_path, kept(parts[-1]))
    assert review(str(tmp_path), taker) == Found(1, 0)
    assert len(taker.lines) == 1


def test_segments_and_files_that_were_set_aside_are_taken_in_and_go(tmp_path: Path, taker: Taker) -> None:
    (tmp_path / "log").mkdir()
    payload = b"\n".join([load_line(BOOT + 1), load_line(BOOT + 2)])
    failed = tmp_path / "log" / "00000004.log.failed"
    failed.write_bytes(frame.pack(payload) + frame.pack(b"no message"))
    torn = tmp_path / "log" / "00000005.log.failed"
    torn.write_bytes(frame.pack(load_line(BOOT + 3)) + b"torn")
    (tmp_path / "refused.jsonl").write_bytes(load_line(BOOT + 4) + b"\n")
    assert review(str(tmp_path), taker) == Found(4, 1)
    assert len(taker.lines) == 4
    # What cannot be read is nobody's to throw away.
    assert os.listdir(tmp_path / "log") == [torn.name]
    assert not (tmp_path / "refused.jsonl").exists()


def test_a_store_that_has_it_already_counts_it_once(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.append([process_line(BOOT + 100)]).result(10)
    store.digest()
    refused(tmp_path, process_line(BOOT + 100), process_line(BOOT + 110))
    assert review(str(tmp_path), lambda lines: store.append(lines).result(10)) == Found(2, 0)
    assert store.digest() == 1
    assert store.query("SELECT time FROM process ORDER BY time") == [(BOOT + 100,), (BOOT + 110,)]
    assert store.query("SELECT sum(cpu_time) FROM usage") == [(60.0,)]
    store.close()
