"""What pages and commands say of a Lustre file system."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.lustre import HOUR, STEP
from jobsight.analyse.lustrejob import sizes
from jobsight.analyse.lustreload import LAG, Loads, checked, loads, word
from jobsight.analyse.lustreroll import roll
from jobsight.store.protocol import Store
from jobsight.store.sight import Sight
from tests.analyse.lustrehistory import EVERY, START, message, row, scan
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414
from tests.store.test_amends import opened as opened  # noqa: PLC0414
from tests.store.test_postgres import url as url  # noqa: PLC0414

OST, MDT = "T-OST0000", "T-MDT0000"
UNTIL = START + HOUR
# What each does in a scan: bytes written in how many writes, files opened.
WORK = {"1:4001:n1": (3000, 3, 10), "2:4001:n2": (1000, 1, 0), "3:4002:n1": (4000, 1, 30)}


@pytest.fixture
def store(opened: Callable[[], Any]) -> Any:
    """An hour of steady work."""
    store = opened()
    lines = []
    for number in range(int(HOUR / EVERY) + 1):
        time = START + number * EVERY
        first = {"absent_at": START} if number else {}
        writes = [
            row(
                OST,
                entry,
                write_bytes=number * moved,
                write=number * times,
                write_time=number * times * 0.002,
                **first,
            )
            for entry, (moved, times, _) in WORK.items()
        ]
        opens = [
            row(MDT, entry, open=number * opens, open_time=number * opens * 1e-4, **first)
            for entry, (*_, opens) in WORK.items()
        ]
        lines.append(message("lustreost", time, writes, "oss1"))
        lines.append(message("lustremdt", time, opens, "mds1"))
        lines.append(message("lustrescan", time, [scan(OST, "ost", time), scan(MDT, "mdt", time)]))
    store.append(lines).result(10)
    store.digest()
    roll(store)
    return store


def test_targets_have_rates_and_how_much_was_observed(store: Store) -> None:
    mdt, ost = sorted(Loads(store).targets(START, UNTIL), key=lambda found: found["target"])
    assert ost["written_rate"] == pytest.approx(8000 / EVERY)
    assert mdt["metadata_rate"] == pytest.approx(40 / EVERY)
    assert (ost["observed"], mdt["kind"]) == (1.0, "mdt")


def test_a_rise_is_seen_against_the_days_mean(store: Store) -> None:
    (steady,) = {word(found["trend"]) for found in Loads(store).targets(START, UNTIL)}
    assert steady == "steady"
    time = UNTIL + EVERY
    burst = [message("lustreost", time, [row(OST, "9:4009:n9", write_bytes=10**9, absent_at=UNTIL)]),
             message("lustrescan", time, [scan(OST, "ost", time), scan(MDT, "mdt", time)])]  # fmt: skip
    store.append(burst).result(10)
    store.digest()
    roll(store)
    found = {told["target"]: word(told["trend"]) for told in Loads(store).targets(START, time + STEP + LAG)}
    assert found[OST] == "rising"


@pytest.mark.parametrize(("length", "step"), [(HOUR, STEP), (3 * 86400.0, HOUR)])
def test_the_three_panels_tell_of_the_same_work(store: Store, length: float, step: float) -> None:
    panels = Loads(store).panels(OST, "write_bytes", UNTIL - length, UNTIL)
    assert panels["step"] == step
    whole = sum(value * step for value in panels["total"]["value"])
    assert whole == pytest.approx(8000 * HOUR / EVERY)
    parts = {user["name"]: sum(value * step for value in user["value"]) for user in panels["users"]}
    assert parts == pytest.approx({"4001": 4000 * HOUR / EVERY, "4002": 4000 * HOUR / EVERY})
    assert set(panels["density"]["decade"]) == {1}
    assert set(panels["density"]["number"]) == {2}


def test_the_top_of_a_target_has_shares_latencies_and_sizes(store: Store) -> None:
    found = Loads(store).top(OST, "write_bytes", START, UNTIL, "job")
    assert [(told["job"], told["owner"]) for told in found] == [("3", "4002"), ("1", "4001"), ("2", "4001")]
    assert [told["share"] for told in found] == pytest.approx([0.5, 0.375, 0.125])
    assert [told["size"] for told in found] == pytest.approx([4000, 1000, 1000])
    assert found[0]["latency"] == pytest.approx(0.002)
    nodes = Loads(store).top(MDT, "open", START, UNTIL, "node")
    assert [(told["node"], told["owner"], told["share"]) for told in nodes] == [("n1", "", pytest.approx(1.0))]


def test_somebody_sees_their_own_and_the_whole_targets(store: Store) -> None:
    mine = Loads(store, Sight(("4002",)))
    assert [told["user"] for told in mine.top(OST, "write_bytes", START, UNTIL)] == ["4002"]
    assert mine.top(OST, "write_bytes", START, UNTIL)[0]["share"] == pytest.approx(0.5)
    panels = mine.panels(OST, "write_bytes", START, UNTIL)
    assert [user["name"] for user in panels["users"]] == ["4002"]
    assert panels["density"] is None
    assert Loads(store, Sight()).top(OST, "write_bytes", START, UNTIL) == []


def test_loads_have_each_jobs_share_largest_first(store: Store) -> None:
    found = loads(store, START, UNTIL)
    assert (found[0].target, found[0].owner) == (MDT, "4002")
    assert found[0].share == pytest.approx(0.75)
    for target in (OST, MDT):
        assert sum(load.share for load in found if load.target == target) == pytest.approx(1.0)


def test_sizes_grow_by_the_same_law(tmp_path: Path) -> None:
    from jobsight.analyse.keeper import open_store

    store = open_store(str(tmp_path / "sizes"))
    told = [("4K=2,1M=8", START - 1), ("4K=5,1M=8", START - 1), ("4K=1", START + 2 * EVERY + 1), (None, None)]
    lines = [
        message(
            "lustreost", START + (number + 1) * EVERY, [row(OST, "7:4001:n1", write_sizes=text, absent_at=absent)]
        )
        for number, (text, absent) in enumerate(told)
    ]
    store.append(lines).result(10)
    store.digest()
    assert sizes(store, "7", ["n1.site.org"], (START, UNTIL)) == {"write": {"4K": 6, "1M": 8}}
    assert sizes(store, "7", ["n2"], (START, UNTIL)) == {}
    store.close()


def test_what_is_no_operation_is_told_with_those_there_are() -> None:
    assert checked("write_bytes") == "write_bytes"
    with pytest.raises(ValueError, match="no operation 'time'; there are read, write"):
        checked("time")


def add(store: Store, time: float, moved: int, cluster: str = "fox", **first: Any) -> None:
    """One more scan, of a job that wrote."""
    lines = [message("lustreost", time, [row(OST, "9:4009:n9", write_bytes=moved, **first)], "oss1"),
             message("lustrescan", time, [scan(OST, "ost", time)])]  # fmt: skip
    lines = [line.replace(b'"fox"', f'"{cluster}"'.encode()) for line in lines]
    store.append(lines).result(10)
    store.digest()
    roll(store)


def test_a_step_that_is_cut_by_the_time_asked_for_keeps_its_rate(store: Store) -> None:
    panels = Loads(store).panels(OST, "write_bytes", START, START + 7 * STEP + 30)
    assert panels["total"]["value"] == pytest.approx([8000 / EVERY] * 8)
    assert panels["users"][0]["value"] == pytest.approx([4000 / EVERY] * 8)


def test_the_step_that_is_still_filling_has_the_rate_of_what_was_observed(store: Store) -> None:
    add(store, UNTIL + EVERY, 8000, absent_at=UNTIL)
    now = UNTIL + EVERY + 100
    panels = Loads(store).panels(OST, "write_bytes", UNTIL - STEP, now)
    assert panels["total"]["value"] == pytest.approx([8000 / EVERY] * 2)
    (ost,) = (told for told in Loads(store).targets(UNTIL, now) if told["target"] == OST)
    assert ost["written_rate"] == pytest.approx(8000 / EVERY)
    (told,) = Loads(store).top(OST, "write_bytes", UNTIL, now)
    assert told["rate"] == pytest.approx(8000 / EVERY)


def test_a_share_over_days_is_never_more_than_all(store: Store) -> None:
    add(store, UNTIL + 2000, 10**9, absent_at=UNTIL + 1900)
    for until in (UNTIL + 300, UNTIL + 1950):
        found = Loads(store).top(OST, "write_bytes", until - 3 * 86400, until)
        assert sum(told["share"] for told in found) == pytest.approx(1.0)


def test_file_systems_of_one_name_add_up(store: Store) -> None:
    add(store, START, 0, "owl")
    add(store, START + STEP, 3000, "owl")
    (ost,) = (told for told in Loads(store).targets(START, START + STEP) if told["target"] == OST)
    assert ost["written_rate"] == pytest.approx(8000 / EVERY + 3000 / STEP)


def test_sizes_that_nobody_can_read_are_left_out_and_a_part_of_them_is_not_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jobsight.analyse.keeper import open_store

    store = open_store(str(tmp_path / "sizes"))
    told = ["4K=x,=,moon=1,²=3,1P=8", "4K=5,1P=9,2=1,"]
    lines = [
        message("lustreost", START + (number + 1) * EVERY, [row(OST, "7:4001:n1", read_sizes=text, absent_at=START)])
        for number, text in enumerate(told)
    ]
    store.append(lines).result(10)
    store.digest()
    assert list(sizes(store, "7", ["n1"], (START, UNTIL))["read"].items()) == [("2", 1), ("4K", 5), ("1P", 9)]
    monkeypatch.setattr("jobsight.analyse.lustrejob.ROWS", 2)
    assert sizes(store, "7", ["n1"], (START, UNTIL)) == {}
    store.close()
