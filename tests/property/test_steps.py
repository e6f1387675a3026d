"""Step functions: sums lose nothing and thinning invents nothing. Whole numbers, so that sums are exact."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobsight.analyse.steps import Step, covered, integral, mean, peak, thin, total

# A busy machine is no reason to fail.
calm = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
whole = st.integers(-1000, 1000).map(float)
spans = st.tuples(st.integers(0, 200), st.integers(0, 50), whole).map(
    lambda span: Step(float(span[0]), float(span[0] + span[1]), span[2])
)


@st.composite
def streams(draw: st.DrawFn) -> list[Step]:
    """One node's steps: in order, not overlapping, with gaps."""
    found, now = [], 0
    for gap, length, value in draw(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9), whole), max_size=40)):
        found.append(Step(float(now + gap), float(now + gap + length), value))
        now += gap + length
    return found


def value_at(steps: list[Step], instant: float) -> list[float]:
    return [step.value for step in steps if step.start <= instant < step.end]


@calm
@given(st.lists(st.lists(spans, max_size=8), max_size=5))
def test_sum_has_at_each_instant_what_its_parts_have(parts: list[list[Step]]) -> None:
    found = total(parts)
    flat = [step for part in parts for step in part]
    for second in range(0, 252, 3):
        instant = second + 0.5
        values = value_at(flat, instant)
        assert value_at(found, instant) == ([sum(values)] if values else [])


@calm
@given(st.lists(st.lists(spans, max_size=8), max_size=5))
def test_sum_conserves_the_integral_and_is_ordered_without_overlap(parts: list[list[Step]]) -> None:
    found = total(parts)
    assert integral(found) == sum(integral(part) for part in parts)
    assert all(step.start < step.end for step in found)
    assert all(one.end <= other.start for one, other in pairwise(found))


@calm
@given(st.lists(spans, max_size=20), st.data())
def test_sum_does_not_depend_on_how_streams_are_split_or_ordered(steps: list[Step], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(steps))
    cut = data.draw(st.integers(0, len(steps)))
    assert total([steps]) == total([shuffled[:cut], shuffled[cut:]]) == total([[step] for step in shuffled])


@calm
@given(streams(), st.data())
def test_step_cut_in_two_is_the_same_function(stream: list[Step], data: st.DataObject) -> None:
    pieces = []
    for step in stream:
        middle = data.draw(st.sampled_from([step.start, (step.start + step.end) / 2, step.end]))
        pieces += [Step(step.start, middle, step.value), Step(middle, step.end, step.value)]
    found = total([pieces])
    assert integral(found) == integral(stream)
    assert covered(found) == covered(stream)
    assert peak(found) == peak(stream)


@calm
@given(streams())
def test_sum_of_one_stream_is_itself(stream: list[Step]) -> None:
    assert total([stream]) == stream
    assert total([stream, []]) == stream


@calm
@given(streams())
def test_mean_lies_between_the_lowest_and_the_peak(stream: list[Step]) -> None:
    found = mean(stream)
    if found is None:
        assert not stream
        return
    assert min(step.value for step in stream) - 1e-9 <= found <= max(step.value for step in stream) + 1e-9


@calm
@given(streams(), st.integers(1, 10))
def test_thinning_keeps_lowest_and_highest_and_invents_nothing(stream: list[Step], buckets: int) -> None:
    found = thin(stream, buckets)
    gaps = sum(after.start - before.end > 0 for before, after in pairwise(stream))
    assert {step.value for step in found} <= {step.value for step in stream}
    assert found == sorted(found)
    assert len(found) <= 2 * (buckets + gaps + 1) or found == stream
    assert covered(found) == pytest.approx(covered(stream))
    if stream:
        assert peak(found) == peak(stream)
        assert min(step.value for step in found) == min(step.value for step in stream)
