"""The faults of those who came before, one test each."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobsight.analyse.answers import answers
from jobsight.analyse.balance import balance
from jobsight.analyse.binding import binding
from jobsight.analyse.keeper import open_store
from jobsight.analyse.ledger import Ledger
from jobsight.analyse.rightsize import rightsize
from jobsight.analyse.steps import Step, mean, peak
from jobsight.analyse.summary import summary
from jobsight.analyse.track import intervals, levels
from jobsight.store.embedded import Embedded
from jobsight.store.protocol import JobQuery
from jobsight.store.sight import Sight
from tests.analyse.figures import GIB, job, part, ran, steady
from tests.analyse.history import History
from tests.analyse.test_ledger import counted
from tests.store.contract import BOOT, _line, process_line

Cluster = Any


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Embedded]:
    opened = open_store(str(tmp_path / "store"))
    yield opened
    opened.close()


def held(store: Embedded, lines: list[bytes]) -> dict[str, Any]:
    store.append(lines).result(10)
    store.digest()
    (found,) = store.jobs(JobQuery(), BOOT + 1000)
    return found


def test_b1_cpu_time_is_not_the_sum_of_a_counter_over_samples(cluster: Cluster) -> None:
    found = counted(
        cluster,
        *(cluster.processes(100 + 10 * i, {"pid": 100, "started": 90.0, "cpu_user": 10.0 + 8 * i}) for i in range(6)),
    )
    assert found["100"].cpu_time == pytest.approx(50.0)


def test_b2_hosts_that_sample_ninety_seconds_apart_are_added_up() -> None:
    rows = [
        ("cgroup", node, at + 300.0 * i, 300.0, 300.0, 2400.0, None, None)
        for node, at in (("n1", 300.0), ("n2", 390.0))
        for i in range(12)
    ]
    course = levels(intervals(rows, "cgroup", 0.0))
    both = [Step(level.start, level.end, level.cores) for level in course if 90 <= level.start < 3600]
    assert mean(both) == pytest.approx(16.0)
    assert peak(both) == pytest.approx(16.0)


def test_b3_a_mean_is_weighted_by_time(cluster: Cluster) -> None:
    busy = {"pid": 100, "started": 0.0}
    found = counted(
        cluster,
        cluster.processes(120, {**busy, "cpu_user": 120.0}, every=120),
        cluster.processes(3600, {**busy, "cpu_user": 120.0}, every=120),
    )
    assert found["100"].cores_mean == pytest.approx(120 / 3600)


def test_b4_the_same_messages_give_the_same_answers_in_whatever_order_they_came(tmp_path: Path) -> None:
    said = set()
    for turn in range(3):
        lines = [_shuffled(line, turn) for line in History(7, samples=20).lines]
        store = open_store(str(tmp_path / str(turn)))
        try:
            store.append(lines).result(10)
            store.digest()
            found = sorted(store.jobs(JobQuery(), 2e9), key=lambda document: document["key"])
            assert len(found) > 2
            said.add(b"".join(msgspec.json.encode(answers(store, one, summary(one, 2e9))) for one in found))
        finally:
            store.close()
    assert len(said) == 1


def _shuffled(line: bytes, seed: int) -> bytes:
    """The same message, its rows in another order."""
    message = json.loads(line)
    columns = message["rows"]
    order = list(range(len(next(iter(columns.values()), []))))
    random.Random(seed).shuffle(order)
    message["rows"] = {name: [values[place] for place in order] for name, values in columns.items()}
    return json.dumps(message).encode()


def test_b5_read_and_written_are_what_their_counters_grew_by(cluster: Cluster) -> None:
    gb = 10**9
    moved = [{"pid": 100, "started": 90.0, "read": i * gb // 2, "written": i * gb} for i in range(5)]
    found = counted(cluster, *(cluster.processes(100.0 + 10 * i, row) for i, row in enumerate(moved)))
    assert (found["100"].read, found["100"].written) == (2 * gb, 4 * gb)


def test_b6_a_filter_that_leaves_a_job_out_leaves_the_others_in(store: Embedded) -> None:
    told = {"scheduler": ["slurm"] * 2, "job": ["1", "2"], "source": ["prolog"] * 2, "account": ["a", "b"]}
    rows = [
        process_line(BOOT + at, node=f"n{number}", scheduler="slurm", job=number, owner=f"u{number}")
        for at in (100, 110)
        for number in "12"
    ]
    store.append(
        [_line("allocation", BOOT + 99, told, "n1"), _line("allocation", BOOT + 99, told, "n2"), *rows]
    ).result(10)
    store.digest()
    for query in (
        JobQuery(accounts=("b",)),
        JobQuery(owner="u2"),
        JobQuery(node="n2"),
        JobQuery(sight=Sight(("u2",))),
    ):
        assert [found["id"] for found in store.jobs(query, BOOT + 115)] == ["2"]
    assert store.jobs(JobQuery(accounts=("c",)), BOOT + 115) == []


def test_b7_what_is_asked_of_a_peak_is_tested_on_the_peak() -> None:
    spiky = part(memory_peak=62 * GIB, memory_seconds=3600.0 * 20 * GIB)
    figures = job(spiky)
    assert figures.memory_mean == 20 * GIB
    assert binding(figures, [], balance([spiky], "cgroup"), []).resource == "memory"
    assert (rightsize(ran(figures, steady(4.0), spiky)).value("mem") or 0) > 62 * GIB


def test_b8_what_belongs_to_no_batch_job_is_not_lost_on_a_node_without_one(cluster: Cluster) -> None:
    found = counted(cluster, cluster.processes(100, {"pid": 5, "started": 90.0, "job": "5"}, node="lonely"))
    assert found["5"].nodes == ["lonely"]


def test_b9_an_idle_node_is_no_job(cluster: Cluster) -> None:
    assert counted(cluster, cluster.processes(100), cluster.processes(110)) == {}


def gpu_line(node: str, at: float, busy: float | None) -> bytes:
    rows = {
        "uuid": [f"GPU-{node}"], "vendor": ["nvidia"], "ordinal": [0], "minor": [0], "scheduler": ["slurm"],
        "job": ["7"], "held_by": ["allocation"], "utilization": [busy], "processes": [0],
    }  # fmt: skip
    return _line("gpu", BOOT + at, rows, node)


def worked(node: str) -> list[bytes]:
    return [process_line(BOOT + at, node=node, scheduler="slurm", job="7") for at in (100, 110, 120)]


def test_b10_a_card_that_fails_with_no_process_on_it_is_not_taken_for_one_that_works(store: Embedded) -> None:
    found = held(store, [*worked("n1"), *(gpu_line("n1", at, None) for at in (101, 111))])
    (card,) = answers(store, found, summary(found, BOOT + 1000)).cards
    assert card.busy is None
    assert not card.used


def test_b11_the_same_pid_and_command_after_a_reboot_is_another_job(cluster: Cluster) -> None:
    hers = {"pid": 100, "started": 50.0, "owner": "alice", "cpu_user": 500.0}
    his = {"pid": 100, "started": 50.0, "owner": "bob", "cpu_user": 5.0}
    found = counted(cluster, cluster.processes(1000, hers), cluster.processes(1600, his, boot="b2"))
    assert sorted((one.owner, one.cpu_time) for one in found.values()) == [("alice", 500.0), ("bob", 5.0)]


def test_b12_memory_is_suggested_in_the_unit_it_is_compared_in() -> None:
    small = part(memory_peak=int(16.5 * GIB))
    (line,) = [one for one in rightsize(ran(job(small), steady(4.0), small)).lines if "mem" in one.option]
    assert (line.option, line.value) == ("--mem=20G", 20 * GIB)


def test_b13_one_process_is_one_process(cluster: Cluster) -> None:
    found = counted(cluster, cluster.processes(100, {"pid": 100, "started": 90.0, "merged": None}))
    assert found["100"].processes_peak == 1
    alone = part(processes_peak=1)
    assert rightsize(ran(job(alone, processes_peak=1), steady(4.0), alone)).value("cpus-per-task") == 4


def test_b14_card_0_of_two_nodes_is_two_cards(store: Embedded) -> None:
    lines = [line for node in ("n1", "n2") for line in worked(node)]
    lines += [gpu_line(node, at, 0.9) for node in ("n1", "n2") for at in (101, 111)]
    found = held(store, lines)
    cards = answers(store, found, summary(found, BOOT + 1000)).cards
    assert [card.node for card in cards] == ["n1", "n2"]
    assert [card.busy for card in cards] == pytest.approx([0.9, 0.9])


def test_b15_after_a_counter_was_reset_the_next_value_is_its_own(cluster: Cluster) -> None:
    """A control group made anew, then a core flat out: never more than one."""
    ledger, rates = Ledger(cluster.nothing()), []
    for turn, cpu in enumerate((100.0, 110.0, 2.0, 12.0, 22.0)):
        ledger.take(cluster.groups(100 + 10 * turn, {"cpu_time": cpu}))
        rows, (found,) = ledger.emptied()
        rates += [row.usage.cpu_time / row.usage.seconds for row in rows if turn and row.usage.cpu_time is not None]
    assert rates == pytest.approx([1.0, 0.2, 1.0, 1.0])
    assert found.parts[0].cpu_time == pytest.approx(100 + 10 + 2 + 10 + 10)
