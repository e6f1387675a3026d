"""Curves: exact at any instant, whichever way one adds them up."""

from itertools import pairwise

import pytest

from jobsight.simulate.work import Curve, Phase, cut, length

GIB = 2.0**30
PHASES = (
    Phase("load", 100.0, 1.0, (0.0, 2 * GIB), read=5e6),
    Phase("compute", 1000.0, 7.5, (2 * GIB, 3 * GIB), written=1e5, gpu=0.8, gpu_memory=0.5),
    Phase("checkpoint", 60.0, 0.0, (3 * GIB, 1 * GIB), written=2e8),
)


def test_each_phase_adds_what_it_says_whatever_the_wobble() -> None:
    curve = Curve(5000.0, PHASES, 8 * GIB)
    ends = [curve.at(time) for time in (5100.0, 6100.0, 6160.0)]
    assert [level.cpu for level in ends] == pytest.approx([100.0, 7600.0, 7600.0], rel=1e-12)
    assert ends[-1].read == pytest.approx(5e8)
    assert ends[-1].written == pytest.approx(1e8 + 1.2e10)
    assert ends[-1].gpu == pytest.approx(800.0)


def test_totals_never_fall_and_the_rate_wobbles_by_a_few_hundredths() -> None:
    curve = Curve(0.0, PHASES, 8 * GIB)
    totals = [curve.at(100.0 + step).cpu for step in range(1001)]
    rates = [after - before for before, after in pairwise(totals)]
    assert 0.95 * 7.5 < min(rates) < 7.5 < max(rates) < 1.035 * 7.5


def test_before_the_start_there_is_nothing_and_after_the_end_nothing_changes() -> None:
    curve = Curve(50.0, PHASES, 8 * GIB)
    assert curve.at(49.9).cpu == 0.0
    assert curve.at(curve.end) == curve.at(1e9)
    assert curve.end == 50.0 + length(PHASES)


def test_memory_and_cache_stay_within_the_room_and_the_peak_is_the_highest_sum() -> None:
    curve = Curve(0.0, PHASES, 4 * GIB)
    levels = [curve.at(float(time)) for time in range(1161)]
    assert max(level.memory + level.cache for level in levels) <= 4 * GIB
    assert levels[-1].peak == pytest.approx(max(level.memory + level.cache for level in levels), rel=1e-6)
    assert curve.peak() == 3 * GIB


def test_a_life_that_is_cut_is_the_same_up_to_there() -> None:
    whole, short = Curve(0.0, PHASES, 8 * GIB), Curve(0.0, cut(PHASES, 400.0), 8 * GIB)
    assert short.end == 400.0
    assert short.at(400.0).cpu == pytest.approx(100.0 + 300 * 7.5)
    assert short.at(399.0).memory == pytest.approx(whole.at(399.0).memory)
