"""Lustre's tables through a real store: what was done is what they add up to, whatever the order it came in."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.lustre import OPERATIONS, STEP
from jobsight.analyse.lustreroll import roll
from jobsight.schema.series import series_id
from jobsight.serving import Lustre
from jobsight.store.protocol import Store
from tests.analyse.lustrehistory import EVERY, START, History, message, row, scan
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414
from tests.store.test_amends import opened as opened  # noqa: PLC0414
from tests.store.test_postgres import url as url  # noqa: PLC0414

Begin = Callable[[], Any]
ENTRIES = ["11:1001:n1", "12:1002:n2", "13:1001:n3", ":1003:n1", "0:0:n9"]


@pytest.fixture
def store(opened: Begin) -> Any:
    return opened()


def give(store: Store, lines: list[bytes]) -> None:
    store.append(lines).result(10)
    store.digest()


def sums(store: Store, table: str, by: str = "target") -> dict[tuple[str, str], int]:
    """Every operation's sum, by target or what else."""
    listed = ", ".join(f"sum({name})" for name in OPERATIONS)
    rows = store.query(f"SELECT {by}, {listed} FROM {table} GROUP BY {by}")
    return {
        (row[0], name): int(value) for row in rows for name, value in zip(OPERATIONS, row[1:], strict=True) if value
    }


def truth(history: History) -> dict[tuple[str, str], int]:
    """What was done, by target."""
    found: dict[tuple[str, str], int] = {}
    for (target, _, operation), amount in history.done.items():
        found[target, operation] = found.get((target, operation), 0) + amount
    return {key: value for key, value in found.items() if value}


@pytest.mark.parametrize(("seed", "starts"), [(0, True), (1, True), (2, False), (3, False)])
def test_all_that_was_done_is_in_every_table(store: Store, seed: int, starts: bool) -> None:
    history = History(seed, ENTRIES, starts=starts)
    give(store, history.lines)
    assert roll(store) > 0
    for table in ("lustreslice", "lustretotal", "lustreshare"):
        assert sums(store, table) == truth(history), table
    assert store.query("SELECT count(*) FROM lustredue") == [(0,)]
    # What each did, too: the system's users are one.
    names = {"11": "11:1001:n1", "12": "12:1002:n2", "13": "13:1001:n3"}
    by_job = sums(store, "lustreslice", "job")
    for job, entry in names.items():
        done = sum(
            amount for (_, name, operation), amount in history.done.items() if name == entry and operation == "read"
        )
        assert by_job[job, "read"] == done


def contents(store: Store, table: str) -> list[str]:
    return sorted(map(repr, store.query(f"SELECT * FROM {table}")))


@pytest.mark.slow
def test_order_lateness_and_repetition_change_nothing(opened: Begin, tmp_path: Path) -> None:
    from jobsight.analyse.keeper import open_store

    history = History(7, ENTRIES, 0.7)
    store = opened()
    chance = random.Random(3)
    lines = [*history.lines, *chance.sample(history.lines, 10)]
    chance.shuffle(lines)
    for first in range(0, len(lines), 17):
        give(store, lines[first : first + 17])
        roll(store)
    other = open_store(str(tmp_path / "other"))
    give(other, history.lines)
    roll(other)
    for table in ("lustreslice", "lustretotal", "lustreshare", "lustredensity"):
        assert contents(store, table) == contents(other, table), table
    other.close()


def test_a_series_is_described_once_by_the_identifier_of_its_target_and_entry(store: Store) -> None:
    entry = "11317854:17627127:r01c01"
    for time in (START + EVERY, START + 20 * EVERY):
        give(store, [message("lustreost", time, [row("scratch-OST0001", entry, read=1, absent_at=time - EVERY)])])
        roll(store)
    (found,) = store.query("SELECT identifier, target, entry, job, uid, host, time FROM lustreseries")
    name = str(series_id(store.namespace(), f"scratch-OST0001:{entry}"))
    assert found == (name, "scratch-OST0001", entry, "11317854", 17627127, "r01c01", START + EVERY)


def test_a_target_that_moves_to_another_server_goes_on(store: Store) -> None:
    lines = []
    for number, (node, count) in enumerate([("oss1", 10), ("oss1", 20), ("oss2", 5), ("oss2", 9)], 1):
        time = START + number * EVERY
        lines.append(message("lustreost", time, [row("T-OST0000", "11:1001:n1", read=count)], node))
        lines.append(message("lustrescan", time, [scan("T-OST0000", "ost", time)], node))
    give(store, lines)
    roll(store)
    assert sums(store, "lustretotal") == {("T-OST0000", "read"): 10 + 5 + 4}


def test_idle_and_not_observed_differ(store: Store) -> None:
    times = [START, *(START + number * EVERY for number in (1, 2, 3, 4, 5, 20, 21, 22))]
    give(store, [message("lustrescan", time, [scan("T-MDT0000", "mdt", time)]) for time in times])
    roll(store)
    rows = store.query("SELECT time, observed, open, creates FROM lustretotal ORDER BY time")
    assert [(time - START, seen) for time, seen, *_ in rows] == [(0, 300), (300, 300), (2400, 240)]
    assert {row[2] for row in rows} == {0}, "nothing was opened"
    assert {row[3] for row in rows} == {None}, "a metadata target has no such counter"


@pytest.mark.parametrize(
    ("fate", "owners"), [("fold", ["(system)", "4711"]), ("keep", ["4711", "root"]), ("drop", ["4711"])]
)
def test_the_systems_own_users_are_folded_kept_or_dropped(store: Store, fate: str, owners: list[str]) -> None:
    rows = [
        row("T-OST0000", entry, read=2, absent_at=START)
        for entry in ("7:0:n1", "7:0:n2", "8:4711:n1")
    ]  # fmt: skip
    give(store, [message("lustreost", START + EVERY, rows)])
    roll(store, Lustre(system=fate))
    found = store.query("SELECT owner, sum(read) FROM lustreslice GROUP BY owner ORDER BY owner")
    assert [owner for owner, _ in found] == owners
    assert sum(amount for _, amount in found) == (2 if fate == "drop" else 6)


def test_densities_count_users_and_jobs_by_the_power_of_ten_of_their_rates(store: Store) -> None:
    amounts = {"1:1001:n1": 3, "2:1001:n1": 300 * 150, "3:1002:n2": 300 * 999, "4:1003:n3": 300}
    rows = [row("T-OST0000", entry, read=amount, absent_at=START) for entry, amount in amounts.items()]
    give(store, [message("lustreost", START + STEP, rows)])
    roll(store)
    found = store.query(
        "SELECT members, decade, cells FROM lustredensity WHERE operation = 'read' ORDER BY members, decade"
    )
    assert found == [("job", -2, 1), ("job", 0, 1), ("job", 2, 2), ("user", 0, 1), ("user", 2, 2)]


@pytest.mark.slow
def test_rows_in_files_are_read_too(tmp_path: Path) -> None:
    from jobsight.analyse.keeper import open_store

    store = open_store(str(tmp_path / "store"))
    history = History(5, ENTRIES, 2.0)
    half = len(history.lines) // 2
    give(store, history.lines[:half])
    roll(store)
    assert store.compact(START + 10 * 86400, 1) > 0
    give(store, history.lines[half:])
    roll(store)
    assert sums(store, "lustretotal") == truth(history)
    store.close()


def test_an_identifier_that_servers_read_by_different_formats_counts_once(store: Store) -> None:
    plain = row("T-OST0000", "11:4711:n1", absent_at=START, start_time=START)
    other = {"host": None, "format": "mine", "job": None}
    for number, said in enumerate(({}, other), 1):
        time = START + number * EVERY
        give(store, [message("lustreost", time, [plain | said | {"read": 10 * number}])])
    roll(store)
    assert sums(store, "lustretotal") == {("T-OST0000", "read"): 20}


def test_figures_that_cannot_be_keep_nothing_from_being_made(store: Store) -> None:
    rows = [row("T-OST0000", f"1:4711:n{number}", read=2**62, absent_at=START) for number in range(4)]
    lines = [message("lustreost", START + EVERY, [*rows, row("T-OST0001", "1:4711:n1", read=7, absent_at=START)])]
    lines.append(message("lustreost", START + EVERY, [row("T-OST0002", "1:4711:n1", read=-(2**62))], "oss2"))
    lines.append(message("lustreost", START + 2 * EVERY, [row("T-OST0002", "1:4711:n1", read=2**62)], "oss2"))
    lines.append(message("lustrescan", START + EVERY, [scan("T-OST0001", "ost", 1e18)]))
    give(store, lines)
    roll(store)
    assert sums(store, "lustretotal")["T-OST0001", "read"] == 7


def test_a_scan_that_put_entries_off_does_not_say_that_they_had_not_changed(store: Store) -> None:
    lines = []
    for number, (count, postponed) in enumerate([(0, 0), (None, 5), (1200, 0)]):
        time = START + number * STEP
        if count is not None:
            lines.append(message("lustreost", time, [row("T-OST0000", "1:4711:n1", read=count)]))
        lines.append(message("lustrescan", time, [scan("T-OST0000", "ost", time, postponed=postponed)]))
    give(store, lines)
    roll(store)
    assert store.query("SELECT time, read FROM lustreslice ORDER BY time") == [(START, 600), (START + STEP, 600)]


def test_a_row_that_comes_late_changes_what_was_made_of_the_next_however_much_later_that_was(store: Store) -> None:
    told = {0: 10, 1: 30, 60: 40}
    rows = {
        number: message("lustreost", START + number * EVERY, [row("T-OST0000", "1:4711:n1", read=count)])
        for number, count in told.items()
    }
    scans = [
        message(
            "lustrescan",
            START + number * EVERY,
            [scan("T-OST0000", "ost", START + number * EVERY, cleanup_interval=0.0)],
        )
        for number in range(61)
    ]
    give(store, [*scans, rows[0], rows[60]])
    roll(store)
    assert sums(store, "lustretotal") == {("T-OST0000", "read"): 30}
    give(store, [rows[1]])
    roll(store)
    assert sums(store, "lustretotal") == {("T-OST0000", "read"): 30}, "not twice"


def test_a_series_that_began_while_nobody_looked_is_described_too(store: Store) -> None:
    late = START + 30 * EVERY * 3
    give(store, [message("lustreost", late, [row("T-OST0000", "11:4711:n1", read=1, absent_at=START)])])
    roll(store)
    assert store.query("SELECT entry FROM lustreseries") == [("11:4711:n1",)]


def test_rows_that_are_kept_for_a_day_only_are_enough(store: Store) -> None:
    day = START + 80000.0
    told = [message("lustreost", START - 86400, [row("T-OST0000", "1:4711:n1", read=1)])]
    told.append(message("lustreost", day, [row("T-OST0000", "2:4711:n1", read=5, absent_at=day - EVERY)]))
    give(store, told)
    store.forget(START, ["lustreost"])
    roll(store)
    assert sums(store, "lustretotal") == {("T-OST0000", "read"): 5}
    assert store.query("SELECT count(*) FROM lustredue") == [(0,)]
