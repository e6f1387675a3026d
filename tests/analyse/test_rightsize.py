"""What to ask for next time."""

import pytest

from jobsight.analyse.batch import Batch
from jobsight.analyse.cards import Card
from jobsight.analyse.rightsize import clock, cost, fewest, rightsize
from jobsight.analyse.track import Interval
from tests.analyse.figures import EVERY, GIB, job, part, ran, steady

DONE = Batch(4000.0, "7", "COMPLETED", start=0.0, ended=3600.0, elapsed=3600.0, exit_code=0, time_limit=86400.0)


def card(node: str, busy: float, held: float = 0.5) -> Card:
    return Card(node, f"GPU-{node}-{busy}", busy, busy, int(held * 40 * GIB), 40 * GIB, 200.0, 60)


def test_a_run_that_used_a_quarter_is_given_a_quarter_and_a_margin() -> None:
    held = part(memory_peak=10 * GIB, cpu_time=1.9 * 3600)
    asked = rightsize(ran(job(held, batch=DONE), steady(1.9), held))
    assert asked.script == [
        "#SBATCH --nodes=1", "#SBATCH --cpus-per-task=2", "#SBATCH --mem=12G", "#SBATCH --time=01:20:00"
    ]  # fmt: skip
    assert asked.sure
    assert asked.core_hours == pytest.approx(8.0)
    assert asked.core_hours_next == pytest.approx(2.0)
    assert cost(asked) == "The run held 8 core hours; with this it would hold 2."


def test_a_run_that_used_nearly_all_its_cores_keeps_them() -> None:
    asked = rightsize(ran(job(batch=DONE), steady(7.1)))
    assert asked.value("cpus-per-task") == 8


def test_cores_are_those_with_which_the_work_takes_no_longer() -> None:
    minutes = [Interval(i * EVERY, (i + 1) * EVERY, 16.0 if i < 10 else 1.0, None, None) for i in range(60)]
    assert fewest(minutes, 1.01) == 16
    # A minute at 16 of ten hours: on two cores it takes eight minutes.
    rare = [Interval(i * EVERY, (i + 1) * EVERY, 16.0 if i == 9 else 2.0, None, None) for i in range(600)]
    assert 2 < fewest(rare, 1.01) < 6
    assert fewest(minutes, 1e9) == 1


def test_a_process_a_core_is_asked_for_as_tasks() -> None:
    ranks = part(processes_peak=9)
    asked = rightsize(ran(job(ranks, batch=DONE, processes_peak=9), steady(7.5), ranks))
    assert asked.value("ntasks-per-node") == 8


def test_a_few_processes_beside_one_that_works_are_no_tasks() -> None:
    helped = part(processes_peak=8, threads_peak=8)
    asked = rightsize(ran(job(helped, batch=DONE, processes_peak=8), steady(1.0), helped))
    assert asked.value("cpus-per-task") == 1


def test_nodes_that_did_nothing_are_left_out_if_their_memory_fits_on_the_others() -> None:
    small = {"memory_peak": 10 * GIB}
    parts = [part("n1", **small), part("n2", cpu_time=10.0, **small), part("n3", cpu_time=20.0, **small)]
    track = steady(4.0) | steady(0.01, node="n2") | steady(0.01, node="n3")
    asked = rightsize(ran(job(*parts, batch=DONE), track, *parts))
    assert asked.value("nodes") == 1
    assert asked.value("cpus-per-task") == 8
    assert asked.value("mem") == 36 * GIB
    full = [part("n1"), part("n2", cpu_time=10.0), part("n3", cpu_time=20.0)]
    kept = rightsize(ran(job(*full, batch=DONE), track, *full))
    assert kept.value("nodes") == 3
    assert "does not fit" in kept.notes[0]


def test_gpus_are_those_of_the_node_that_used_the_most() -> None:
    cards = [card("n1", 0.9), card("n1", 0.0, 0.01), card("n2", 0.8), card("n2", 0.7)]
    parts = [part("n1"), part("n2")]
    asked = rightsize(ran(job(*parts, batch=DONE), steady(4.0) | steady(4.0, node="n2"), *parts, cards=cards))
    assert asked.value("gpus-per-node") == 2
    idle = rightsize(ran(job(batch=DONE), steady(4.0), cards=[card("n1", 0.0, 0.01)]))
    assert idle.value("gpus-per-node") is None
    assert "used none" in idle.notes[0]


def test_a_run_cut_short_is_given_a_guess_that_says_so() -> None:
    stopped = job(batch=Batch(4000.0, "7", "TIMEOUT", start=0.0, ended=3600.0, time_limit=3600.0))
    asked = rightsize(ran(stopped, steady(7.5)))
    assert (asked.sure, asked.value("time")) == (False, 7200)
    killed = job(part(oom_kills=1), batch=Batch(4000.0, "7", "OUT_OF_MEMORY", start=0.0, ended=3600.0))
    asked = rightsize(ran(killed, steady(7.5)))
    assert (asked.sure, asked.value("mem")) == (False, 128 * GIB)


@pytest.mark.parametrize(
    ("changes", "seconds", "word"),
    [
        ({"state": "running"}, 3600.0, "still running"),
        ({"state": "pending"}, 3600.0, "not begun"),
        ({}, 180.0, "3 times"),
        ({}, 0.0, "Nothing is kept"),
        ({"coverage": 0.3}, 3600.0, "observed"),
        ({"batch": Batch(1.0, "7", "RUNNING", start=0.0)}, 3600.0, "not known yet"),
        ({"batch": Batch(1.0, "7", "FAILED", ended=1.0, exit_code=1)}, 3600.0, "not finish"),
    ],
)
def test_nothing_is_suggested_where_the_run_does_not_tell(
    changes: dict[str, object], seconds: float, word: str
) -> None:
    asked = rightsize(ran(job(**changes), steady(4.0, seconds) if seconds else {}))  # type: ignore[arg-type]
    assert word in asked.refused
    assert asked.lines == []


def test_times_are_written_as_slurm_reads_them() -> None:
    assert [clock(seconds) for seconds in (300, 5400, 90000, 8 * 86400)] == [
        "00:05:00", "01:30:00", "1-01:00:00", "8-00:00:00"
    ]  # fmt: skip
