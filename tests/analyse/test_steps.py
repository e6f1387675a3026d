import pytest

from jobsight.analyse.steps import Step, covered, integral, mean, peak, thin, total


def test_sum_is_cut_wherever_a_part_changes() -> None:
    one = [Step(0, 10, 1.0), Step(10, 20, 2.0)]
    other = [Step(5, 15, 10.0)]
    assert total([one, other]) == [Step(0, 5, 1.0), Step(5, 10, 11.0), Step(10, 15, 12.0), Step(15, 20, 2.0)]


def test_gap_stays_a_gap() -> None:
    found = total([[Step(0, 1, 5.0)], [Step(3, 4, 7.0)]])
    assert found == [Step(0, 1, 5.0), Step(3, 4, 7.0)]
    assert covered(found) == 2


def test_zero_is_a_value_and_a_gap_is_none() -> None:
    assert total([[Step(0, 2, 0.0)]]) == [Step(0, 2, 0.0)]
    assert mean([Step(0, 2, 0.0)]) == 0.0
    assert mean([]) is None
    assert peak([]) is None


def test_step_without_length_counts_for_nothing() -> None:
    assert total([[Step(1, 1, 5.0), Step(3, 2, 5.0)]]) == []


def test_mean_is_weighted_by_time_over_the_seconds_with_a_value() -> None:
    steps = [Step(0, 30, 1.0), Step(100, 110, 5.0)]
    assert integral(steps) == 80.0
    assert mean(steps) == 2.0
    assert peak(steps) == 5.0


def test_rounding_errors_do_not_outlive_the_steps_they_came_from() -> None:
    found = total([[Step(0, 1, 0.1)], [Step(0, 1, 0.2)], [Step(2, 3, 0.0)]])
    assert found[-1] == Step(2, 3, 0.0)


def test_thinning_keeps_the_spike_and_the_dip() -> None:
    steps = [Step(second, second + 1, 5.0) for second in range(1000)]
    steps[400] = Step(400, 401, 99.0)
    steps[401] = Step(401, 402, -1.0)
    found = thin(steps, 10)
    assert len(found) <= 20
    assert {99.0, -1.0} <= {step.value for step in found}
    assert covered(found) == covered(steps)


@pytest.mark.parametrize("count", [0, 1, 20])
def test_few_steps_are_not_thinned(count: int) -> None:
    steps = [Step(second, second + 1, float(second)) for second in range(count)]
    assert thin(steps, 10) == steps
