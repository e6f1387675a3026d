"""Refused messages are kept, with path and reason, within bounds."""

import json
from pathlib import Path

from jobsight.ingest.accept import Refused
from jobsight.ingest.quarantine import Quarantine


def entries(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for file in sorted(path.iterdir()) for line in file.read_text().splitlines()]


def test_what_was_refused_can_be_read_again_with_its_reason(tmp_path: Path) -> None:
    Quarantine(str(tmp_path)).keep([Refused(b'{"a": 1}', "$.node", "missing"), Refused(b"\xff", "$", "not UTF-8")])
    first, second = entries(tmp_path)
    assert (first["path"], first["reason"], first["message"]) == ("$.node", "missing", '{"a": 1}')
    assert second["base64"] == "/w=="


def test_it_is_bounded_and_counts_what_it_could_not_keep(tmp_path: Path) -> None:
    (tmp_path / "2020-01-01.jsonl").write_text("x" * 5000)
    quarantine = Quarantine(str(tmp_path), bound=10_000)
    for _ in range(20):
        quarantine.keep([Refused(b"y" * 900, "$", "no")])
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 10_000
    assert not (tmp_path / "2020-01-01.jsonl").exists()
    assert quarantine.count == 20
    assert quarantine.count - quarantine.discarded == len(entries(tmp_path))
