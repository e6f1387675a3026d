"""Trees of messages: what is found in files, in what order, and where reading goes on."""

import gzip
import json
import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobsight.clock import SystemClock
from jobsight.collect.agent import Tally
from jobsight.compat.sonar import encode as sonar_line
from jobsight.ingest import directory
from jobsight.ingest.bookmark import Bookmarks
from jobsight.ingest.directory import Batch, Loader
from jobsight.ingest.tree import documents, find
from jobsight.schema.units import Bytes, Seconds
from jobsight.schema.wire import compress
from jobsight.settings import Spool
from jobsight.ship.directory import Directory
from jobsight.ship.sink import Place
from tests.compat.messages import MACHINES, recorded, translator
from tests.store.contract import BOOT, load_line, process_line

PRETTY = json.dumps({"data": {"type": "cluster", "attributes": {"nodes": [{"names": ["a"]}]}}}, indent=2).encode()
COMPACT = b'{"data":{"type":"job","attributes":{}}}'


class Told(list[str]):
    """The sentences that were said."""


def load(paths: Sequence[Path], bookmarks: Bookmarks, told: Told | None = None) -> list[Batch]:
    sources, failed = find(map(str, paths))
    assert not failed
    loader = Loader(sources, bookmarks, (Told() if told is None else told).append)
    batches = []
    for batch in loader.batches():
        bookmarks.save(batch.positions, batch.ended, batch.nodes)
        batches.append(batch)
    return batches


def lines(batches: list[Batch]) -> list[dict[str, Any]]:
    return [json.loads(line) for batch in batches for line in batch.lines]


def refusals(batches: list[Batch]) -> list[tuple[str, str]]:
    return [(refused.path, refused.reason) for batch in batches for refused in batch.refused]


@pytest.fixture
def bookmarks(tmp_path: Path) -> Bookmarks:
    folder = tmp_path / "store"
    folder.mkdir()
    return Bookmarks(str(folder))


# Documents in a file


@pytest.mark.parametrize(
    "body",
    [
        COMPACT + b"\n" + PRETTY + b"\n" + COMPACT + b"\n",
        PRETTY + PRETTY + b"\n" + COMPACT,
        COMPACT + COMPACT + b"\n\n\n" + PRETTY + b"\n",
        COMPACT + b"\r\n" + PRETTY.replace(b"\n", b"\r\n") + b"\r\n" + COMPACT,
    ],
)
def test_documents_are_found_however_they_are_written(body: bytes) -> None:
    found = [content for piece in documents(BytesIO(body), 0) for content in directory.contents(piece)]
    assert len(found) == 3
    assert all(isinstance(content, directory.Foreign) for content in found)


def test_reading_can_go_on_after_every_document() -> None:
    body = COMPACT + b"\n" + PRETTY + b"\n" + PRETTY + PRETTY + COMPACT + b"\n"
    whole = list(documents(BytesIO(body), 0))
    for number, piece in enumerate(whole):
        assert list(documents(BytesIO(body), piece.end)) == whole[number + 1 :]


def test_a_broken_document_costs_no_other(tmp_path: Path, bookmarks: Bookmarks) -> None:
    good = [load_line(BOOT + 10 * i) for i in range(3)]
    (tmp_path / "load-n1.jsonl").write_bytes(b"\n".join([good[0], good[1][:60], b"rubbish", good[1], good[2], b""]))
    found = load([tmp_path / "load-n1.jsonl"], bookmarks)
    assert len(lines(found)) == 3
    ((path, reason),) = refusals(found)
    assert path == "$"
    assert "load-n1.jsonl" in reason


def test_an_overlong_document_is_refused_and_its_neighbours_are_read(
    tmp_path: Path, bookmarks: Bookmarks, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("jobsight.ingest.tree", "jobsight.ingest.directory"):
        monkeypatch.setattr(f"{module}.LARGEST", 1000)
    body = [load_line(BOOT), b'{"schema":"' + b"x" * 5000 + b'"}', load_line(BOOT + 10), b""]
    (tmp_path / "load-n1.jsonl").write_bytes(b"\n".join(body))
    found = load([tmp_path / "load-n1.jsonl"], bookmarks)
    assert len(lines(found)) == 2
    assert [reason.partition(" (in ")[0] for _, reason in refusals(found)] == ["5014 bytes, more than 1000"]
    assert max(len(refused.line) for batch in found for refused in batch.refused) <= 1024


# The order


def test_a_nodes_messages_come_in_the_order_of_time_out_of_all_its_files(
    tmp_path: Path, bookmarks: Bookmarks
) -> None:
    for day in ("2026/11/16", "2026/11/15"):
        folder = tmp_path / "tree" / day
        folder.mkdir(parents=True)
        shift = 86400 if day.endswith("16") else 0
        for node in ("n1", "n2"):
            times = [BOOT + shift + 10 * i for i in range(20)]
            (folder / f"load-{node}.jsonl").write_bytes(b"\n".join(load_line(t + 1, node) for t in times) + b"\n")
            (folder / f"process-{node}.jsonl").write_bytes(b"\n".join(process_line(t, node) for t in times) + b"\n")
    found = lines(load([tmp_path / "tree"], bookmarks))
    assert len(found) == 160
    for node in ("n1", "n2"):
        times = [message["time"] for message in found if message["node"] == node]
        assert times == sorted(times)
        assert len(times) == 80


def test_files_without_a_dated_folder_are_read_in_the_order_of_their_first_dates(tmp_path: Path) -> None:
    (tmp_path / "a-n1.jsonl").write_bytes(load_line(BOOT + 90000))
    (tmp_path / "b-n1.jsonl.gz").write_bytes(compress(load_line(BOOT)))
    (tmp_path / "README").write_text("not a file of messages")
    (tmp_path / ".hidden.json").write_text("{}")
    assert [os.path.basename(source.path) for source in find([str(tmp_path)])[0]] == ["b-n1.jsonl.gz", "a-n1.jsonl"]


# Going on


def test_a_file_is_read_once_and_a_grown_one_from_where_it_ended(tmp_path: Path, bookmarks: Bookmarks) -> None:
    file = tmp_path / "load-n1.jsonl"
    file.write_bytes(load_line(BOOT) + b"\n")
    assert len(lines(load([file], bookmarks))) == 1
    assert load([file], bookmarks) == []
    with file.open("ab") as more:
        more.write(load_line(BOOT + 10) + b"\n" + load_line(BOOT + 20)[:50])
    told = Told()
    (message,) = lines(load([file], bookmarks, told))
    assert message["time"].endswith("46:50.000000+00:00")
    assert told == [f"{file} ends in the middle of a document, which is left for later"]
    with file.open("ab") as more:
        more.write(load_line(BOOT + 20)[50:])
    assert len(lines(load([file], bookmarks))) == 1


def test_a_whole_message_without_a_newline_is_refused_for_what_it_says(tmp_path: Path, bookmarks: Bookmarks) -> None:
    file = tmp_path / "load-n1.jsonl"
    file.write_bytes(load_line(BOOT).replace(b'"load"', b'"weather"'))
    told = Told()
    ((path, _),) = refusals(load([file], bookmarks, told))
    assert (path, told) == ("$.collector", [])


def test_another_file_of_the_same_name_is_read_from_its_beginning(tmp_path: Path, bookmarks: Bookmarks) -> None:
    file = tmp_path / "load-n1.jsonl"
    file.write_bytes(load_line(BOOT) + b"\n")
    load([file], bookmarks)
    file.write_bytes(b"\n".join(load_line(BOOT + 10 * i) for i in range(1, 4)))
    assert len(lines(load([file], bookmarks))) == 3


def test_packed_files_may_have_many_members_and_may_grow(tmp_path: Path, bookmarks: Bookmarks) -> None:
    file = tmp_path / "load-n1.jsonl.gz"
    file.write_bytes(b"".join(compress(load_line(BOOT + 10 * i) + b"\n") for i in range(3)))
    assert len(lines(load([file], bookmarks))) == 3
    with file.open("ab") as more:
        more.write(gzip.compress(load_line(BOOT + 30) + b"\n"))
    assert len(lines(load([file], bookmarks))) == 1


def test_a_file_that_cannot_be_read_to_its_end_is_told_and_the_others_go_on(
    tmp_path: Path, bookmarks: Bookmarks
) -> None:
    packed = b"".join(compress(load_line(BOOT + 10 * i) + b"\n") for i in range(3))
    (tmp_path / "a-n1.jsonl.gz").write_bytes(packed[:-20])
    (tmp_path / "b-n2.jsonl.gz").write_bytes(packed)
    told = Told()
    assert len(lines(load([tmp_path], bookmarks, told))) == 2 + 3
    (sentence,) = told
    assert sentence.startswith(f"{tmp_path}/a-n1.jsonl.gz: ")


def test_whatever_was_saved_when_it_stopped_reading_on_completes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped after each batch in turn, saved or not: together every message comes, in its order."""
    monkeypatch.setattr(directory, "MESSAGES", 3)
    tree = sonar_tree(tmp_path / "tree", 6)
    (tmp_path / "whole").mkdir()
    whole = lines(load([tree], Bookmarks(str(tmp_path / "whole"))))
    for stop in range(1, 6):
        store = tmp_path / f"store{stop}"
        store.mkdir()
        first = Bookmarks(str(store))
        sources, _ = find([str(tree)])
        got = []
        for number, batch in enumerate(Loader(sources, first, Told().append).batches(), 1):
            got.append(batch)
            if number == stop:
                break
            first.save(batch.positions, batch.ended, batch.nodes)
        first.close()
        got += load([tree], Bookmarks(str(store)))
        unique = {(m["collector"], m["time"]): m for m in lines(got)}
        assert list(unique.values()) == whole


def sonar_tree(path: Path, rounds: int) -> Path:
    made = translator()
    folder = path / "2026/11/15"
    folder.mkdir(parents=True)
    for number in range(rounds):
        for message in recorded(MACHINES[0], after=30.0 * number):
            for document in made.documents(message):
                with (folder / f"0+{document.kind}-n1.json").open("ab") as file:
                    file.write(sonar_line(document))
    return path


# Whatever it is


def _bodies() -> list[bytes]:
    made = translator()
    sent = recorded(MACHINES[0]) + recorded(MACHINES[0], after=30.0)
    foreign = b"".join(sonar_line(document) for message in sent for document in made.documents(message))
    return [b"\n".join(load_line(BOOT + 10 * i) for i in range(5)), foreign, PRETTY + b"\n" + PRETTY + COMPACT]


BODIES = _bodies()


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(BODIES), st.booleans(), st.data())
def test_a_mutated_file_is_read_or_refused_with_path_and_reason_and_nothing_else_happens(
    body: bytes, packed: bool, data: st.DataObject
) -> None:
    broken = bytearray(gzip.compress(body) if packed else body)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(broken) - 1))
        match data.draw(st.sampled_from(["delete", "insert", "replace", "cut"])):
            case "delete":
                del broken[place : place + data.draw(st.integers(1, 10))]
            case "insert":
                broken[place:place] = data.draw(st.binary(max_size=8))
            case "replace":
                broken[place : place + 1] = data.draw(st.sampled_from([b"{", b"}", b'"', b"\n", b"\xff", b"9"]))
            case "cut":
                del broken[place:]
        if not broken:
            return
    with TemporaryDirectory() as folder:
        file = Path(folder) / "0+sample-n1.json"
        file.write_bytes(broken)
        for path, reason in refusals(load([file], Bookmarks(None))):
            assert path.startswith("$")
            assert str(file) in reason


def test_the_directory_sinks_tree_is_read_as_it_was_sent(tmp_path: Path, bookmarks: Bookmarks) -> None:
    spool = Spool(str(tmp_path / "spool"), Bytes(10**6), Seconds(86400))
    sink = Directory(str(tmp_path / "tree"), Place("n1", spool, SystemClock(), Tally()))
    sent = [message for number in range(3) for message in recorded(MACHINES[0], after=30.0 * number)]
    for message in sent:
        sink.send(message)
    found = lines(load([tmp_path / "tree"], bookmarks))
    assert sorted((m["collector"], m["uptime"]) for m in found) == sorted(
        (m.collector, round(m.uptime, 3)) for m in sent
    )
