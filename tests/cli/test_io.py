"""Lustre's tables on the terminal: what settings say of them holds for `load`, too."""

from pathlib import Path

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.cli.main import main
from tests.analyse.lustrehistory import EVERY, START, message, row


@pytest.mark.parametrize(("fate", "owners"), [("fold", ["(system)"]), ("keep", ["root"]), ("drop", [])])
def test_what_is_loaded_follows_the_settings(tmp_path: Path, fate: str, owners: list[str]) -> None:
    settings, lines, place = tmp_path / "settings.yaml", tmp_path / "lines.jsonl", tmp_path / "store"
    settings.write_text(f"store: {{path: {place}}}\nserve: {{lustre: {{system: {fate}}}}}\n")
    told = [row("T-OST0000", "7:0:n1", read=2, absent_at=START)]
    lines.write_bytes(message("lustreost", START + EVERY, told) + b"\n")
    assert main(["load", "--settings", str(settings), str(lines)]) == 0
    store = open_store(str(place))
    assert [owner for (owner,) in store.query("SELECT owner FROM lustreslice")] == owners
    store.close()


def test_fewer_than_one_row_is_no_number_of_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["io", "--store", str(tmp_path), "--target", "T-OST0000", "--limit", "-5"]) == 2
    assert "--limit: at least one" in capsys.readouterr().err
