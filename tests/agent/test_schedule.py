"""When things run, with a clock that the test turns."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jobsight.agent.schedule import Schedule, next_multiple, share


def test_everything_is_due_at_the_start_and_then_on_its_multiples() -> None:
    schedule = Schedule({"a": 30, "b": 60}, 1003.0)
    assert schedule.due(1003.0) == ["a", "b"]
    assert schedule.due(1003.1) == []
    assert schedule.wait(1003.1) == 1020.0 - 1003.1
    assert schedule.due(1020.0) == ["a", "b"]
    assert schedule.due(1050.0) == ["a"]
    assert schedule.due(1080.0) == ["a", "b"]


def test_runs_missed_while_asleep_are_not_made_up_for() -> None:
    schedule = Schedule({"a": 30}, 1000.0)
    schedule.due(1000.0)
    assert schedule.due(5000.0) == ["a"]
    assert schedule.due(5001.0) == []


def test_a_clock_set_back_does_not_stop_sampling() -> None:
    schedule = Schedule({"a": 30}, 100_000.0)
    schedule.due(100_000.0)
    assert schedule.due(50_000.0) == ["a"]
    assert schedule.wait(50_000.0) <= 30


@given(st.floats(0.1, 86400), st.floats(0, 2e9))
def test_the_next_multiple_is_ahead_and_not_far(every: float, now: float) -> None:
    assert now < next_multiple(every, now) <= now + every * 1.000001


def test_a_nodes_share_follows_from_its_name_and_spreads_over_the_window() -> None:
    assert share("n1") == share("n1")
    shares = sorted(share(f"node{number:04d}") for number in range(1000))
    assert 0 <= shares[0] < 0.01
    assert 0.99 < shares[-1] < 1
    assert max(b - a for a, b in pairwise(shares)) < 0.02
