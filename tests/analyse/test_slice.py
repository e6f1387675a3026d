"""Slices and shares add up to the usage they are made of."""

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.analyse.late import due
from jobsight.analyse.recount import recount
from jobsight.analyse.slice import STEP, roll
from jobsight.store.embedded import Embedded
from jobsight.store.plan import DAY, HOUR
from jobsight.store.protocol import REACH, JobQuery
from tests.analyse.history import START, History
from tests.store.contract import BOOT, process_line

COUNTERS = ("seconds", "covered", "cpu_time", "read", "written", "oom_kills")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Embedded]:
    opened = open_store(str(tmp_path / "store"))
    yield opened
    opened.close()


def sums(store: Embedded, table: str, where: str = "") -> list[tuple[Any, ...]]:
    listed = ", ".join(f"sum({name})" for name in COUNTERS)
    return store.query(f"SELECT source, {listed} FROM {table} {where} GROUP BY source ORDER BY source")


def put(store: Embedded, rows: list[dict[str, Any]]) -> None:
    """Usage as it could come, whatever the numbers."""
    names = store.hot.columns()["usage"]
    plain = {"cluster": "fox", "boot": "b1", "source": "process"}
    full = [tuple((plain | row).get(name) for name in names) for row in rows]
    with store.still():
        store.mark("usage", full)
        store.mark("due", due(("fox", row["time"], row["seconds"]) for row in rows))


def test_parts_add_up_to_the_whole_wherever_intervals_begin_and_end(store: Embedded) -> None:
    chance = random.Random(4)
    rows = []
    for number in range(400):
        seconds = chance.choice((0.0, 10.0, 30.0, 300.0, 4000.0, 3 * DAY)) * chance.uniform(0.5, 1)
        rows.append({
            "node": f"n{number % 3}", "job_key": f"j{number % 7}", "cpus": 4, "memory": chance.randint(0, 2**40),
            "time": START + chance.choice((0, 300, chance.uniform(0, 9000))),
            "seconds": seconds, "covered": seconds * chance.choice((1.0, 0.5)), "cpu_time": chance.uniform(0, 1e6),
            "read": chance.randint(0, 10**15), "written": chance.choice((None, 1, 3)),
            "oom_kills": chance.randint(0, 2),
        })  # fmt: skip
    put(store, rows)
    assert roll(store, START + DAY) > 0
    (usage,), (slices,) = sums(store, "usage"), sums(store, "slice")
    assert slices[1:4] == pytest.approx(usage[1:4], rel=1e-9)
    assert slices[4:] == usage[4:], "whole numbers are shared out whole"
    for key in range(7):
        (one,), (other,) = (sums(store, table, f"WHERE job_key = 'j{key}'") for table in ("usage", "slice"))
        assert other[1:4] == pytest.approx(one[1:4], rel=1e-9)
        assert other[4:] == one[4:]
    assert store.query("SELECT max(memory_peak) FROM slice") == store.query("SELECT max(memory) FROM usage")
    ((most, width),) = store.query(
        f"SELECT max(covered - seconds), min(time / {STEP} - floor(time / {STEP})) FROM slice"
    )
    assert most <= 1e-6
    assert width == 0


def test_jobs_of_yesterday_met_for_the_first_time_are_made_in_bounded_parts(
    store: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"node": f"n{number}", "job_key": f"j{number}", "time": START + number, "seconds": 25 * HOUR,
         "covered": 30.0, "cpu_time": 1000.25, "read": 10**9 + number}
        for number in range(40)
    ]  # fmt: skip
    put(store, rows)
    monkeypatch.setattr("jobsight.analyse.slice.HEAVY", 2000)
    made = []
    refill = store.refill

    def spied(table: str, span: tuple[float, float], sql: str, label: Any) -> int:
        count = refill(table, span, sql, label)
        made.append((table, span, count))
        return count

    monkeypatch.setattr(store, "refill", spied)
    roll(store, START + DAY)
    spans = [span for table, span, _ in made if table == "slice"]
    assert len(spans) > 6
    assert all(before[1] == after[0] for before, after in pairwise(spans))
    # An hour more than the bound at the most: twelve slices of each.
    assert max(count for table, _, count in made if table == "slice") <= 2000 + 40 * 12
    (usage,), (slices,) = sums(store, "usage"), sums(store, "slice")
    assert slices[1:4] == pytest.approx(usage[1:4], rel=1e-9)
    assert slices[4] == usage[4]


def test_an_interval_is_shared_out_by_time_and_gauges_are_weighted_by_it(store: Embedded) -> None:
    job = {"node": "n1", "job_key": "j", "cpus": 2}
    put(store, [
        {**job, "time": START + 240, "seconds": 240.0, "covered": 240.0, "cpu_time": 24.0, "memory": 100},
        {**job, "time": START + 360, "seconds": 120.0, "covered": 120.0, "cpu_time": 120.0, "memory": 400, "read": 5},
    ])  # fmt: skip
    roll(store, START + DAY)
    found = store.query("SELECT time, seconds, cpu_time, memory, memory_peak, read FROM slice ORDER BY time")
    assert found == [
        (START, 300.0, 84.0, round((240 * 100 + 60 * 400) / 300), 400, 2),
        (START + 300, 60.0, 60.0, 400, 400, 3),
    ]


def test_a_mad_interval_reaches_back_no_further_than_a_bound(store: Embedded) -> None:
    put(store, [{"node": "n1", "job_key": "j", "time": START, "seconds": 1e15, "covered": 10.0, "cpu_time": 8.0}])
    roll(store, START + DAY)
    ((count, first, total),) = store.query("SELECT count(*), min(time), sum(cpu_time) FROM slice")
    assert (count, first) == (REACH / STEP, START - REACH)
    assert total == pytest.approx(8.0)


def test_hours_that_are_not_over_wait(store: Embedded) -> None:
    put(store, [{"node": "n1", "job_key": "j", "time": START + 100, "seconds": 10.0, "covered": 10.0}])
    assert roll(store, START + HOUR) == 0
    assert roll(store, START + HOUR + 300) == 1
    assert roll(store, START + 2 * HOUR) == 0


def test_what_was_counted_again_is_made_again_wherever_it_is(store: Embedded) -> None:
    lines = History(5, samples=400, jobs=20).lines
    late = lines[50:90]
    store.append([line for line in lines if line not in late]).result(10)
    store.digest()
    roll(store, START + DAY)
    store.compact(START + 3 * DAY, least=1)
    store.append(late).result(10)
    store.digest()
    assert recount(store).jobs > 0
    roll(store, START + DAY)
    usage, slices = sums(store, "usage"), sums(store, "slice")
    for one, other in zip(usage, slices, strict=True):
        assert other[1:4] == pytest.approx(one[1:4], rel=1e-9)
        assert other[4:] == one[4:]
    assert store.query("SELECT count(*) FROM due") == [(0,)]


def test_a_share_is_what_one_owner_used_on_one_node_in_an_hour(store: Embedded) -> None:
    store.append([process_line(BOOT + t) for t in range(100, 4000, 10)]).result(10)
    store.append([process_line(BOOT + t, pid=200, job="200", owner="bob") for t in range(100, 300, 10)]).result(10)
    store.append([process_line(BOOT + t, node="n2", owner="bob", command="gmx") for t in range(100, 300, 10)]).result(
        10
    )
    store.digest()
    recount(store)
    roll(store, BOOT + DAY)
    found = store.query("SELECT node, owner, command, sum(cpu_time), max(jobs) FROM share GROUP BY ALL ORDER BY ALL")
    assert found == [("n1", "alice", "work", pytest.approx(3940), 1), ("n2", "bob", "gmx", pytest.approx(240), 1)]
    ((total,),) = store.query("SELECT sum(cpu_time) FROM usage")
    assert sum(row[3] for row in found) == pytest.approx(total)


def test_slices_stay_when_their_usage_has_gone(store: Embedded) -> None:
    store.append([process_line(BOOT + t) for t in range(100, 4000, 10)]).result(10)
    store.digest()
    roll(store, BOOT + DAY)
    before = store.query("SELECT * FROM slice ORDER BY ALL")
    store.forget(BOOT + DAY, ["usage", "process"])
    # Something asks for it all the same.
    with store.still():
        store.mark("due", due([("fox", BOOT + 3000, 10.0)], "recount"))
    roll(store, BOOT + DAY)
    assert store.query("SELECT * FROM slice ORDER BY ALL") == before
    assert store.query("SELECT count(*) FROM due") == [(0,)]


def test_a_job_whose_rows_have_gone_still_has_its_summary_and_a_chart_of_slices(store: Embedded) -> None:
    from jobsight.analyse.profile import profile

    store.append([process_line(BOOT + t) for t in range(100, 4000, 10)]).result(10)
    store.digest()
    roll(store, BOOT + DAY)
    (document,) = store.jobs(JobQuery(), BOOT + DAY)
    whole = profile(store, document, BOOT + DAY)
    assert whole.gone == ""
    store.forget(BOOT + DAY, ["process", "run"])
    assert profile(store, document, BOOT + DAY).gone.endswith("processes are no longer kept one by one.")
    store.forget(BOOT + DAY, ["usage"])
    sliced = profile(store, document, BOOT + DAY)
    assert sliced.summary == whole.summary
    assert "means of five minutes" in sliced.gone
    assert sliced.series["cpu"].value == pytest.approx([1.0] * len(sliced.series["cpu"].value))
    assert 12 <= len(sliced.series["cpu"].value) <= 14
    store.forget(BOOT + DAY, ["slice"])
    bare = profile(store, document, BOOT + DAY)
    assert (bare.summary, bare.series["cpu"].value) == (whole.summary, [])
    assert bare.gone == "It is long ago: its totals are kept, its charts and processes no longer."
