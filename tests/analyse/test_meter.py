"""Energy between readings: exact where it can be known, refused where it cannot."""

from itertools import pairwise

import pytest

from jobsight.analyse.meter import BRIDGED, FASTEST, Bins, Reading, Span, carded, counted, metered, together

RANGE = 262143.328850
WATTS = 300.0


def wrapped(every: float, seconds: float, watts: float = WATTS) -> list[tuple[float, float | None, float | None]]:
    """A package's counter, which goes round every 14.6 minutes at 300 W."""
    return [(turn * every, turn * every * watts % RANGE, RANGE) for turn in range(int(seconds / every) + 1)]


@pytest.mark.parametrize("every", [30.0, 60.0])
def test_a_package_that_goes_round_every_quarter_of_an_hour_loses_nothing(every: float) -> None:
    looks = wrapped(every, 6 * 3600.0)
    assert sum(1 for before, after in pairwise(looks) if (after[1] or 0) < (before[1] or 0)) == 24
    spans = counted(looks, FASTEST["processor"])
    assert sum(span.energy for span in spans) == pytest.approx(WATTS * 6 * 3600, rel=1e-12)
    assert all(span.energy == pytest.approx(WATTS * every, rel=1e-9) for span in spans)


@pytest.mark.parametrize("every", [30.0, 60.0])
def test_lost_messages_cost_no_energy_while_the_counter_cannot_have_gone_round_twice(every: float) -> None:
    looks = [look for place, look in enumerate(wrapped(every, 3600.0)) if place % 4 != 2]
    spans = counted(looks, FASTEST["processor"])
    assert sum(span.energy for span in spans) == pytest.approx(WATTS * 3600, rel=1e-12)


def test_a_gap_in_which_it_may_have_gone_round_twice_is_not_guessed() -> None:
    looks = wrapped(30.0, 3600.0)
    gap = [look for look in looks if not 600 < look[0] < 1200]
    spans = counted(gap, FASTEST["processor"])
    assert not [span for span in spans if span.end - span.start > 30.0]
    assert sum(span.energy for span in spans) == pytest.approx(WATTS * 3000, rel=1e-12)


def test_a_counter_that_was_reset_or_rises_too_fast_tells_nothing_of_that_time() -> None:
    assert counted([(0.0, 5000.0, None), (30.0, 100.0, None), (60.0, 200.0, None)], 700.0) == [
        Span(30.0, 60.0, 100.0)
    ]
    # With a range a reset looks like a turn of more than a package can take.
    assert counted([(0.0, 200_000.0, RANGE), (30.0, 10.0, RANGE)], 700.0) == []
    assert counted([(0.0, 0.0, None), (30.0, 700.0 * 31, None)], 700.0) == []


def test_readings_less_than_a_second_apart_make_no_interval_of_their_own() -> None:
    assert counted([(0.0, 0.0, None), (0.5, 400.0, None), (10.0, 1000.0, None)], 700.0) == [Span(0.0, 10.0, 1000.0)]
    looks = [Reading(0.0, 0.0, None, 400.0), Reading(0.2, 300.0, None, 400.0), Reading(10.0, 900.0, None, 400.0)]
    assert carded(looks) == [Span(0.0, 10.0, 900.0)]


def test_a_cards_counter_comes_before_the_power_it_tells() -> None:
    looks = [Reading(0.0, 1000.0, 100.0, 400.0), Reading(10.0, 3000.0, 300.0, 400.0)]
    assert carded(looks) == [Span(0.0, 10.0, 2000.0)]


def test_a_card_whose_counter_was_reset_is_known_by_its_power_and_less_sure() -> None:
    looks = [Reading(0.0, 9000.0, 100.0, 400.0), Reading(10.0, 20.0, 300.0, 400.0)]
    assert carded(looks) == [Span(0.0, 10.0, 2000.0, 1000.0, "C")]


def test_a_card_that_says_more_than_its_board_can_take_is_refused() -> None:
    over = [Reading(0.0, 0.0, 441.0, 400.0), Reading(10.0, 4410.0, 441.0, 400.0)]
    assert carded(over) == []
    allowed = [Reading(0.0, 0.0, None, 400.0), Reading(10.0, 4390.0, None, 400.0)]
    assert carded(allowed) == [Span(0.0, 10.0, 4390.0)]


def test_power_integrated_over_a_day_is_what_the_cards_counter_says() -> None:
    """A card that computes by turns; its power is told every ten seconds, its counter counts."""
    counter, by_counter, by_power = 0.0, [], []
    for turn in range(8641):
        power = 70.0 + 330.0 * (turn // 180 % 2)
        by_counter.append(Reading(turn * 10.0, counter, power, 400.0))
        by_power.append(Reading(turn * 10.0, None, power, 400.0))
        counter += power * 10
    truth = sum(span.energy for span in carded(by_counter))
    assert sum(span.energy for span in carded(by_power)) == pytest.approx(truth, rel=0.01)


def test_a_meter_stands_for_the_time_since_its_last_reading() -> None:
    spans = metered([(0.0, 100.0), (60.0, 200.0), (120.0, 300.0)], 1000.0)
    assert spans == [Span(0.0, 60.0, 12000.0, 0.0, "A"), Span(60.0, 120.0, 18000.0, 0.0, "A")]


def test_a_missing_reading_widens_what_is_not_sure_and_a_long_pause_is_not_known() -> None:
    regular = [(turn * 60.0, 200.0) for turn in range(6)]
    (bridged,) = [span for span in metered([*regular, (600.0, 400.0)], 1000.0) if span.unsure]
    assert bridged == Span(300.0, 600.0, 300.0 * 300, 100.0 * 300, "A")
    assert len(metered([*regular, (300.0 + BRIDGED + 1, 400.0)], 1000.0)) == 5


def test_a_meter_that_says_what_no_node_takes_is_not_believed() -> None:
    spans = metered([(0.0, 200.0), (60.0, -5.0), (120.0, 0.0), (180.0, 5000.0), (240.0, 200.0)], 1000.0)
    assert sum(span.energy for span in spans) == 240.0 * 200
    assert metered([(0.0, None), (60.0, None)], 1000.0) == []


def test_spans_are_cut_where_steps_end_and_lose_nothing() -> None:
    bins = Bins(0.0, 1000.0, 300.0).add([Span(-100.0, 250.0, 350.0), Span(250.0, 1100.0, 850.0, 85.0)])
    assert bins.number == 4
    assert bins.seconds(3) == pytest.approx(100.0)
    assert bins.energy == pytest.approx([300.0, 300.0, 300.0, 100.0])
    assert bins.covered == pytest.approx([300.0, 300.0, 300.0, 100.0])
    assert sum(bins.unsure) == pytest.approx(75.0)


def test_of_a_time_that_one_part_does_not_know_the_whole_is_not_known() -> None:
    one = Bins(0.0, 600.0, 300.0).add([Span(0.0, 600.0, 600.0)])
    other = Bins(0.0, 600.0, 300.0).add([Span(0.0, 150.0, 300.0)])
    whole = together([one, other])
    assert whole.covered == [150.0, 0.0]
    assert whole.energy == [450.0, 0.0]
