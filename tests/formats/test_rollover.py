"""Counters that begin anew at a known range."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobsight.formats.rollover import risen

# A package of a server: begins anew after a quarter of an hour at 290 W.
SPAN = 262143.32885
FASTEST = 500.0


def test_a_counter_that_rose_rose_by_the_difference() -> None:
    assert risen(1000.0, 4000.0, SPAN, 30.0, FASTEST) == 3000.0


def test_a_counter_that_began_anew_rose_over_its_range() -> None:
    assert risen(SPAN - 1000.0, 2000.0, SPAN, 30.0, FASTEST) == pytest.approx(3000.0)


def test_a_missed_sample_costs_nothing_as_long_as_the_counter_cannot_have_gone_round_twice() -> None:
    assert risen(SPAN - 1000.0, 59000.0, SPAN, 300.0, FASTEST) == pytest.approx(60000.0)


def test_after_so_long_that_it_may_have_gone_round_twice_nobody_can_tell() -> None:
    assert risen(1000.0, 4000.0, SPAN, SPAN / FASTEST, FASTEST) is None


def test_a_reset_is_not_taken_for_a_turn() -> None:
    """From half of its range to nought would be half the range in half a minute."""
    assert risen(SPAN / 2, 10.0, SPAN, 30.0, FASTEST) is None


@pytest.mark.parametrize(("before", "after", "seconds"), [(-1.0, 5.0, 30.0), (5.0, SPAN + 1, 30.0), (5.0, 6.0, 0.0)])
def test_what_cannot_be_tells_nothing(before: float, after: float, seconds: float) -> None:
    assert risen(before, after, SPAN, seconds, FASTEST) is None


@given(
    st.floats(0, SPAN),
    st.lists(st.tuples(st.floats(1.0, 400.0), st.floats(0.0, FASTEST - 1)), min_size=1, max_size=30),
    st.sets(st.integers(1, 29)),
)
def test_whatever_is_missed_the_sum_is_what_was_taken(
    start: float, steps: list[tuple[float, float]], missed: set[int]
) -> None:
    """Readings of a counter that wraps, of which some are lost, give the energy or say that they cannot."""
    moments, totals = [0.0], [start]
    for seconds, watts in steps:
        moments.append(moments[-1] + seconds)
        totals.append(totals[-1] + seconds * watts)
    kept = [index for index in range(len(totals)) if index not in missed or index == len(totals) - 1]
    for first, second in pairwise(kept):
        rose = risen(totals[first] % SPAN, totals[second] % SPAN, SPAN, moments[second] - moments[first], FASTEST)
        if (moments[second] - moments[first]) * FASTEST >= SPAN:
            assert rose is None
        else:
            assert rose == pytest.approx(totals[second] - totals[first], abs=1e-3)
