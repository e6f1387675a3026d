"""Whose a card was: between two looks, when jobs come and go, and when several share it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.attribution import Owned
from jobsight.analyse.holding import Life, Lives, Part, divided, nearest, parted
from jobsight.analyse.keeper import open_store
from jobsight.analyse.meter import Span
from jobsight.analyse.tending import settle
from jobsight.store.protocol import Store
from tests.analyse.energyhistory import HOUR, START, load
from tests.store.contract import BOOT, _line, process_line

SPAN = Span(100.0, 200.0, 1000.0)


def life(key: str, started: float, ended: float) -> Life:
    return Life(started, ended, key, "")


def mine(key: str | None) -> tuple[Owned, ...]:
    return (Owned(key, 1.0),)


def test_one_who_is_seen_at_both_ends_has_it_all_the_time() -> None:
    assert divided(SPAN, life("a", 0, 500), life("a", 0, 500)) == [Part(100.0, 200.0, mine("a"))]


def test_a_card_changes_hands_when_one_ends_and_the_other_begins() -> None:
    assert divided(SPAN, life("a", 0, 130), life("b", 160, 500)) == [
        Part(100.0, 130.0, mine("a")), Part(130.0, 160.0, mine(None)), Part(160.0, 200.0, mine("b")),
    ]  # fmt: skip


def test_two_that_say_they_had_it_at_once_have_it_one_after_the_other() -> None:
    assert divided(SPAN, life("a", 0, 190), life("b", 150, 500)) == [
        Part(100.0, 150.0, mine("a")), Part(150.0, 200.0, mine("b")),
    ]  # fmt: skip


def test_before_the_first_and_after_the_last_it_is_nobodys() -> None:
    assert divided(SPAN, None, life("b", 150, 500)) == [
        Part(100.0, 150.0, mine(None)), Part(150.0, 200.0, mine("b")),
    ]  # fmt: skip
    assert divided(SPAN, life("a", 0, 130), None) == [Part(100.0, 130.0, mine("a")), Part(130.0, 200.0, mine(None))]
    assert divided(SPAN, None, None) == [Part(100.0, 200.0, mine(None))]


def test_sharers_have_parts_by_activity_and_alike_where_none_is_told() -> None:
    (part,) = parted(SPAN, [("a", 0.6), ("b", 0.2), (None, 0.0)])
    assert [(one.key, one.approximate) for one in part.owners] == [("a", True), ("b", True)]
    assert [one.energy for one in part.owners] == pytest.approx([0.75, 0.25])
    (part,) = parted(SPAN, [("a", None), ("b", None), (None, None)])
    assert part.owners == (Owned("a", 0.5, True), Owned("b", 0.5, True))
    (part,) = parted(SPAN, [(None, None)])
    assert part.owners == mine(None)


def document(key: str, name: str, started: float, **changes: Any) -> dict[str, Any]:
    usual = {"cluster": "fox", "scheduler": "slurm", "id": name, "number": "", "scope": "", "seen": started + 100}
    return usual | {"key": key, "started": started} | changes


def test_a_number_that_comes_back_is_the_job_that_had_begun_by_then() -> None:
    lives = Lives([document("first", "7", 0.0), document("second", "7", 1000.0)])
    assert lives.of("fox", "n1", ("slurm", "7"), 500.0) == Life(0.0, 100.0, "first", "")
    assert lives.of("fox", "n1", ("slurm", "7"), 1500.0) == Life(1000.0, 1100.0, "second", "")
    assert lives.of("fox", "n1", ("slurm", "8"), 500.0) is None
    assert lives.of("fox", "n1", None, 500.0) is None


def test_a_session_is_one_nodes_and_holds_no_cpus() -> None:
    told = document("mine", "42", 0.0, scheduler="session", scope="n1/b1")
    lives = Lives([told])
    assert lives.of("fox", "n1", ("session", "42"), 50.0) is not None
    assert lives.of("fox", "n2", ("session", "42"), 50.0) is None
    assert lives.loose == {"mine"}


def test_the_nearest_look_counts_if_it_is_near() -> None:
    assert nearest([10.0, 20.0], 14.0, 5.0) == 0
    assert nearest([10.0, 20.0], 16.0, 5.0) == 1
    assert nearest([10.0, 20.0], 40.0, 5.0) is None
    assert nearest([], 40.0, 5.0) is None


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(str(tmp_path / "store"))
    yield opened
    opened.close()


def test_a_divided_cards_energy_goes_to_its_instances_holders_marked_approximate(store: Store) -> None:
    """Two jobs on two instances of one card of 300 W; one is three times as active as the other."""
    lines = []
    for turn in range(61):
        time = START + turn * 60.0
        lines.append(
            _line(
                "gpu", time,
                {
                    "uuid": ["GPU-1", "MIG-1", "MIG-2"], "vendor": ["nvidia"] * 3, "parent": [None, "GPU-1", "GPU-1"],
                    "energy": [300.0 * turn * 60, None, None], "power_limit": [400.0, None, None],
                    "scheduler": [None, "slurm", "slurm"], "job": [None, "1", "2"],
                    "utilization": [None, 0.6, 0.2],
                },
                "n1",
            )
        )  # fmt: skip
        lines += [
            process_line(
                time, pid=100 * n, started=START - 100 - BOOT, cpu_user=60.0 * turn, scheduler="slurm", job=str(n)
            )
            for n in (1, 2)
        ]
    load(store, lines)
    settle(store, START + 4 * HOUR)
    rows = store.query(
        "SELECT part, approximate, source, sum(energy) FROM energy WHERE time >= ? AND energy > 0 "
        "GROUP BY part, job_key, approximate, source ORDER BY 4",
        [START],
    )
    assert rows == [
        ("job", True, "gpu", pytest.approx(300.0 * HOUR / 4)),
        ("job", True, "gpu", pytest.approx(300.0 * HOUR * 3 / 4)),
    ]
