"""Refused messages are kept, with path and reason, within bounds."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from jobsight.ingest.accept import Refused
from jobsight.ingest.quarantine import LONGEST, Quarantine, entries


def kept(path: Path) -> list[dict[str, Any]]:
    files = sorted(path.glob("*.jsonl"), key=lambda file: file.stat().st_mtime_ns)
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_what_was_refused_can_be_read_again_with_its_reason(tmp_path: Path) -> None:
    bad = [Refused(b'{"a": 1}', "$.node", "missing"), Refused(b"\xff", "$", "not UTF-8")]
    Quarantine(str(tmp_path)).keep(bad)
    first, second = kept(tmp_path)
    assert (first["path"], first["reason"], first["message"]) == ("$.node", "missing", '{"a": 1}')
    assert second["base64"] == "/w=="
    (file,) = tmp_path.iterdir()
    assert [entry.message for entry in entries(str(file))] == [item.line for item in bad]


def test_the_oldest_go_first_and_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "2020-01-01.jsonl").write_text("x\n" * 2500)
    quarantine = Quarantine(str(tmp_path), bound=10_000)
    for number in range(40):
        quarantine.keep([Refused(b"%d " % number + b"y" * 900, "$", "no")])
    assert sum(file.stat().st_size for file in tmp_path.glob("*.jsonl")) <= 10_000
    assert not (tmp_path / "2020-01-01.jsonl").exists()
    assert quarantine.count == 40
    numbers = [int(entry["message"].split()[0]) for entry in kept(tmp_path)]
    assert numbers == list(range(40 - len(numbers), 40))
    assert len(numbers) >= 7
    assert quarantine.discarded == 2500 + 40 - len(numbers)
    # Whoever comes next knows it too, and counts on.
    again = Quarantine(str(tmp_path), bound=10_000)
    assert again.thrown_away() == quarantine.discarded
    assert (quarantine.held(), again.held()) == (len(numbers), len(numbers))
    assert capsys.readouterr().err.count("the quarantine is full") == 1


def test_more_than_the_bound_at_once_keeps_the_last_of_it(tmp_path: Path) -> None:
    quarantine = Quarantine(str(tmp_path), bound=10_000)
    quarantine.keep([Refused(b"%d " % number + b"y" * 900, "$", "no") for number in range(100)])
    numbers = [int(entry["message"].split()[0]) for entry in kept(tmp_path)]
    assert numbers == list(range(100 - len(numbers), 100))
    assert numbers
    assert quarantine.discarded == 100 - len(numbers)
    quarantine.keep([Refused(b"y" * 20_000, "$", "larger than all")])
    assert quarantine.discarded == 101 - len(numbers)


def test_one_that_is_too_long_is_cut_and_says_so(tmp_path: Path) -> None:
    Quarantine(str(tmp_path)).keep([Refused(b"y" * (LONGEST + 1), "$", "no"), Refused(b"z", "$", "no")])
    first, _ = kept(tmp_path)
    assert (first["length"], len(first["message"])) == (LONGEST + 1, LONGEST)
    (file,) = tmp_path.iterdir()
    assert [entry.message for entry in entries(str(file))] == [None, b"z"]


def test_what_is_left_of_a_file_comes_back_beside_what_was_added_meanwhile(tmp_path: Path) -> None:
    quarantine = Quarantine(str(tmp_path))
    quarantine.keep([Refused(b"%d" % number, "$", "no") for number in range(3)])
    (taken,) = quarantine.take()
    quarantine.keep([Refused(b"3", "$", "no")])
    quarantine.give_back(taken, list(entries(taken))[1:])
    assert sorted(entry["message"] for entry in kept(tmp_path)) == ["1", "2", "3"]
    for taken in quarantine.take():
        quarantine.give_back(taken, [])
    assert list(tmp_path.iterdir()) == []


def test_many_writers_and_a_reviewer_lose_nothing(tmp_path: Path) -> None:
    def write(writer: int) -> None:
        own = Quarantine(str(tmp_path))
        for number in range(50):
            own.keep([Refused(b"%d-%d" % (writer, number), "$", "no")])

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    reviewer, taken_out = Quarantine(str(tmp_path)), []
    while any(writer.is_alive() for writer in writers):
        for taken in reviewer.take():
            found = list(entries(taken))
            taken_out += [entry.message for entry in found[::2]]
            reviewer.give_back(taken, found[1::2])
    for writer in writers:
        writer.join()
    left = [entry["message"].encode() for entry in kept(tmp_path)]
    assert sorted([*taken_out, *left], key=str) == sorted(
        (b"%d-%d" % (writer, number) for writer in range(4) for number in range(50)), key=str
    )


def test_a_full_disk_is_not_swallowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    quarantine = Quarantine(str(tmp_path))
    monkeypatch.setattr("jobsight.files.append", full)
    with pytest.raises(OSError, match="No space"):
        quarantine.keep([Refused(b"x", "$", "no")])
    assert (quarantine.count, quarantine.discarded) == (0, 0)
