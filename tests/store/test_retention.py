"""Rows and jobs go when they are old, and only then."""

from pathlib import Path

import pytest

from jobsight.analyse.slice import roll
from jobsight.analyse.tending import retain
from jobsight.settings import SettingsError, parse
from jobsight.store.embedded import Embedded
from jobsight.store.plan import DAY, HOUR
from jobsight.store.protocol import JobQuery
from jobsight.store.retention import Retention, retention
from tests.store.files import MIDNIGHT, NEXT, NOON, in_catalogue, lines, on_disk, rows
from tests.store.files import path as path  # noqa: PLC0414
from tests.store.files import store as store  # noqa: PLC0414


def test_retention_drops_only_what_is_old(store: Embedded, path: Path) -> None:
    store.append(lines(MIDNIGHT + DAY) + lines(MIDNIGHT + 2 * DAY)).result(10)
    store.digest()
    store.compact(NEXT + DAY)  # the third day stays in tables
    assert rows(store, "process") == (36, 72)
    jobs = len(store.jobs(JobQuery(), NEXT))
    before = MIDNIGHT + DAY + HOUR  # in the middle of a file: it stays
    kept = store.query("SELECT * FROM process WHERE time >= ? ORDER BY ALL", [MIDNIGHT + DAY])
    assert store.forget(before) > 0
    assert store.query("SELECT * FROM process ORDER BY ALL") == kept
    assert not [file for file in on_disk(path) if "11/15" in file]
    assert in_catalogue(store) == on_disk(path)

    store.forget(MIDNIGHT + 2 * DAY + HOUR)
    assert store.query("SELECT min(time) FROM process") == [(MIDNIGHT + 2 * DAY + HOUR,)]
    assert on_disk(path) == set()
    assert len(store.jobs(JobQuery(), NEXT)) == jobs


def test_one_table_can_be_kept_shorter_than_the_others(store: Embedded, path: Path) -> None:
    store.compact(NEXT)
    assert store.forget(NEXT, ["process"]) == 36
    assert rows(store, "process") == (0, 0)
    assert rows(store, "usage")[1] > 0
    assert "usage/2026/11/15.parquet" in on_disk(path)


def test_jobs_go_only_when_they_are_asked_to(store: Embedded) -> None:
    assert store.forget_jobs(MIDNIGHT + 2 * HOUR) == 2
    assert sorted(job["id"] for job in store.jobs(JobQuery(), NOON)) == ["100", "9"]


def test_what_is_made_of_rows_outlives_them_unless_somebody_says_otherwise() -> None:
    keeping = Retention(30 * DAY, {"process": 14 * DAY, "slice": 5 * DAY}, None)
    assert {name: keeping.of(name) / DAY for name in ("process", "load", "run", "usage", "slice", "share")} == {
        "process": 14, "load": 30, "run": 30, "usage": 365, "slice": 5, "share": 3650
    }  # fmt: skip
    assert Retention(1000 * DAY, {}, None).of("usage") == 1000 * DAY
    assert keeping.times(["process", "load", "run"]) == {14 * DAY: ["process"], 30 * DAY: ["load", "run"]}


def test_each_table_goes_at_its_own_time_and_jobs_at_theirs(store: Embedded) -> None:
    roll(store, NEXT)
    counts = {table: sum(rows(store, table)) for table in ("process", "load", "run", "usage", "slice", "share")}
    assert all(counts.values())
    keeping = Retention(30 * DAY, {"process": 14 * DAY}, 400 * DAY)
    for age, gone in (
        (20, {"process"}),
        (40, {"load", "run"}),
        (370, {"usage"}),
        (740, {"slice"}),
        (3660, {"share"}),
    ):
        retain(store, keeping, MIDNIGHT + (age + 1) * DAY)
        counts |= dict.fromkeys(gone, 0)
        assert {table: sum(rows(store, table)) for table in counts} == counts
        assert bool(store.jobs(JobQuery(), NOON)) == (age < 400)


def test_settings_name_tables_and_their_times() -> None:
    text = "store: {keep: 10d, keep_rows: {process: 2d, usage: 104w}, keep_jobs: 520w}"
    keeping = retention(parse(text, "x.yaml").store)
    assert (keeping.of("process"), keeping.of("usage"), keeping.jobs) == (2 * DAY, 728 * DAY, 3640 * DAY)
    with pytest.raises(SettingsError, match=r"x\.yaml: store\.keep_rows\.weather: no such table"):
        parse("store: {keep_rows: {weather: 2d}}", "x.yaml")
