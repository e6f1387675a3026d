"""Files of earlier layouts: brought up to date, whole or not at all."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from jobsight.store import small
from jobsight.store.small import LAYOUT, MIGRATIONS, Small


def old(path: Path) -> None:
    """A file of layout 2."""
    Small(str(path)).close()
    with closing(sqlite3.connect(path / "small.sqlite")) as file:
        for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql <> ''").fetchall():
            file.execute(f"DROP INDEX {name}")
        for name in ("account", "waits"):
            file.execute(f"ALTER TABLE job DROP COLUMN {name}")
        file.execute("PRAGMA user_version = 2")


def columns(path: Path) -> tuple[int, set[str]]:
    with closing(sqlite3.connect(path / "small.sqlite")) as file:
        names = {row[1] for row in file.execute("PRAGMA table_info(job)")}
        return int(file.execute("PRAGMA user_version").fetchone()[0]), names


def test_an_update_that_is_broken_off_is_made_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old(tmp_path)
    before = columns(tmp_path)
    # The disk is full in the middle of it, or the power goes.
    monkeypatch.setattr(small, "MIGRATIONS", {**MIGRATIONS, 2: f"{MIGRATIONS[2]} SELECT * FROM nowhere;"})
    with pytest.raises(sqlite3.OperationalError):
        Small(str(tmp_path))
    assert columns(tmp_path) == before
    monkeypatch.setattr(small, "MIGRATIONS", MIGRATIONS)
    opened = Small(str(tmp_path))
    opened.close()
    number, names = columns(tmp_path)
    assert number == LAYOUT
    assert {"account", "waits"} <= names
