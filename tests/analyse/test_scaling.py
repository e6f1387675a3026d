"""Will it scale: from one run, from several, and when nothing can be said."""

from typing import Any

import pytest

from jobsight.analyse.law import Timing
from jobsight.analyse.scaling import _Run, once, scaling, timing, why_not
from jobsight.analyse.track import Level
from jobsight.simulate.draft import Law
from tests.analyse.figures import EVERY, document, job, part

TRUTH = Law("s", "amdahl", 36000.0, 0.05, 0.0, 0.0)


def run(cores: int, seconds: float, **changes: Any) -> _Run:
    plain = {"cpus": cores, "cpu_time": 36000.0, "written": 0}
    return _Run(job(**(plain | changes)), Timing(cores, seconds, 0.5))


def series(*cores: int, **changes: Any) -> list[_Run]:
    return [run(count, TRUTH.seconds(count), **changes) for count in cores]


def levels(*stretches: tuple[float, float]) -> list[Level]:
    """Minutes and cores."""
    found: list[Level] = []
    for minutes, cores in stretches:
        for _ in range(int(minutes)):
            begin = found[-1].end if found else 0.0
            found.append(Level(begin, begin + EVERY, cores, None, None))
    return found


def test_the_serial_part_of_one_run_is_found_within_its_limits() -> None:
    # By Amdahl's law 5 % of ten hours, then the rest on 16 cores.
    found = once(job(cpus=16, cores_mean=9.0), levels((30, 1.0), (36, 16.0)))
    assert found.serial is not None
    assert found.serial_low is not None
    assert found.serial_high is not None
    assert found.serial_low < 30 / (30 + 36 * 16) < found.serial_high
    assert "at most 20 times" in found.sentence


def test_a_run_that_leaves_its_cores_idle_is_told_that_more_will_not_help() -> None:
    assert "hardly be quicker" in once(job(cpus=64, cores_mean=7.0), levels((60, 8.0))).sentence


def test_a_run_that_uses_all_it_has_may_gain_by_more() -> None:
    assert "more may help" in once(job(cpus=8, cores_mean=7.5), levels((60, 7.5))).sentence


def test_of_one_core_and_of_what_still_runs_no_serial_part_is_told() -> None:
    assert once(job(cpus=1, cores_mean=0.9), levels((60, 0.9))).serial is None
    assert once(job(cpus=8, cores_mean=0.9, state="running"), levels((60, 0.9))).serial is None
    assert once(job(cpus=8), []).serial is None


@pytest.mark.parametrize(
    ("runs", "word"),
    [
        (series(1, 2, 4), "3 finished runs"),
        (series(4, 4, 4, 4, 8), "core counts"),
        (series(4, 5, 6, 7), "core counts"),
        ([*series(1, 2, 4, 8), run(8, 3 * TRUTH.seconds(8))], "on 8 cores they took from"),
        ([*series(1, 2, 4, 8), run(2, TRUTH.seconds(2), written=9 * 10**9)], "they wrote"),
        ([*series(1, 2, 4), run(8, TRUTH.seconds(8), cpu_time=9000.0)], "less work"),
        ([*series(1, 2, 4), run(8, TRUTH.seconds(8) / 3)], "more than their number"),
    ],
)
def test_runs_that_do_not_make_a_law_are_refused_with_the_reason(runs: list[_Run], word: str) -> None:
    assert word in why_not(runs, job())


def test_runs_of_one_problem_on_more_and_more_cores_may_make_a_law() -> None:
    assert why_not(series(1, 2, 4, 8, 16), job()) == ""


def test_a_sampled_end_is_taken_to_lie_in_the_middle_of_what_is_not_known() -> None:
    found = timing(job(cpus=4, elapsed=600.0, every=60.0))
    assert (found.cores, found.seconds) == (4, 630.0)
    assert found.error == pytest.approx(60 / 12**0.5)


class Shelf:
    """A store that knows some jobs, and remembers what it was asked for."""

    def __init__(self, documents: list[dict[str, Any]]) -> None:
        self.documents = documents
        self.asked: Any = None

    def jobs(self, query: Any, _: float) -> list[dict[str, Any]]:
        self.asked = query
        return self.documents


def stored(cores: int, number: int, **changes: Any) -> dict[str, Any]:
    seconds = TRUTH.seconds(cores) * (1 + 0.004 * (-1) ** number)
    held = part(cpus=cores, cpu_time=36000.0, time=seconds, seconds=seconds, covered=seconds)
    return document(held, key=f"k{number}", id=str(number), seen=seconds, **changes)


def test_other_names_are_other_problems_and_the_law_is_that_of_the_rest() -> None:
    mine = [stored(cores, number, name="big") for number, cores in enumerate((1, 2, 4, 8, 16, 32))]
    others = [stored(1, 90, name="small"), stored(2, 91, name="")]
    shelf: Any = Shelf([*mine, *others])
    found = scaling(shelf, job(name="big", command="work"), [], 1e9, None)
    assert [measured.cores for measured in found.runs] == [1, 2, 4, 8, 16, 32]
    assert found.law is not None
    assert found.law.serial.low <= TRUTH.serial <= found.law.serial.high
    assert (shelf.asked.owner, shelf.asked.command) == ("alice", "work")


def test_whoever_asks_is_shown_a_law_of_what_they_may_see() -> None:
    shelf: Any = Shelf([])
    sight: Any = object()
    found = scaling(shelf, job(command="work"), [], 1e9, sight)
    assert shelf.asked.sight is sight
    assert found.law is None
    assert "0 finished runs" in found.refused
