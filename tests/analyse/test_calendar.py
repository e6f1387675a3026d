"""Hours, days and months of a site's time zone, right across changes of the clock."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from jobsight.analyse.calendar import HOUR, Calendar, span, zone

OSLO = Calendar(ZoneInfo("Europe/Oslo"))
# Clocks in Oslo: forward on 2026-03-29 at 02:00, back on 2026-10-25 at 03:00.
SPRING = datetime(2026, 3, 29, tzinfo=ZoneInfo("Europe/Oslo")).timestamp()
AUTUMN = datetime(2026, 10, 25, tzinfo=ZoneInfo("Europe/Oslo")).timestamp()
NOW = datetime(2026, 11, 15, 12, 20, tzinfo=ZoneInfo("Europe/Oslo")).timestamp()


def local(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo("Europe/Oslo")).timestamp()


def test_the_day_on_which_clocks_go_forward_has_23_hours_and_no_third() -> None:
    hours = [SPRING + number * HOUR for number in range(24)]
    today = [hour for hour in hours if OSLO.day(hour) == "2026-03-29"]
    assert len(today) == 23
    assert [OSLO.clock(hour) for hour in today] == [0, 1, *range(3, 24)]
    assert OSLO.day(hours[-1]) == "2026-03-30"


def test_the_day_on_which_clocks_go_back_has_25_hours_and_one_of_them_twice() -> None:
    today = [hour for number in range(26) if OSLO.day(hour := AUTUMN + number * HOUR) == "2026-10-25"]
    assert len(today) == 25
    assert [OSLO.clock(hour) for hour in today] == [0, 1, 2, 2, *range(3, 24)]
    assert len({OSLO.hour(hour) for hour in today}) == 25, "each hour has a name of its own"
    assert {OSLO.weekday(hour) for hour in today} == {6}


def test_a_month_begins_and_ends_at_the_sites_midnight() -> None:
    found = span(OSLO, NOW, period="2026-10")
    assert (found.since, found.until) == (local("2026-10-01"), local("2026-11-01"))
    assert (found.until - found.since) / HOUR == 31 * 24 + 1


def test_where_days_begin_at_half_past_each_hour_is_of_one_day() -> None:
    india = Calendar(ZoneInfo("Asia/Kolkata"))
    found = span(india, NOW, period="yesterday")
    hours = [found.since + number * HOUR for number in range(round((found.until - found.since) / HOUR))]
    assert [india.day(hour) for hour in hours] == ["2026-11-14"] * 24
    assert span(india, NOW, since="2026-11-14", until="2026-11-14") == found._replace(name="")
    assert span(india, NOW, period="today").since == found.until


@pytest.mark.parametrize("asked", [{"period": "9999"}, {"period": "9999-12"}, {"until": "9999-12-31"}])
def test_what_is_too_far_away_is_a_sentence(asked: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="too far away"):
        span(OSLO, NOW, **asked)


def test_nothing_is_asked_of_a_time_before_1970() -> None:
    assert span(OSLO, NOW, since="99999999999d").since == 0.0
    assert span(OSLO, NOW, period="0001-01-01").since == 0.0


def test_a_day_without_dashes_ends_with_that_day_too() -> None:
    assert span(OSLO, NOW, since="20261101", until="20261102") == span(
        OSLO, NOW, since="2026-11-01", until="2026-11-02"
    )


@pytest.mark.parametrize(
    ("period", "since", "until"),
    [
        ("month", "2026-11-01", "2026-11-15T13:00"),
        ("last month", "2026-10-01", "2026-11-01"),
        ("yesterday", "2026-11-14", "2026-11-15"),
        ("year", "2026-01-01", "2026-11-15T13:00"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("2025", "2025-01-01", "2026-01-01"),
        ("30d", "2026-10-16T13:00", "2026-11-15T13:00"),
        ("spring", "2026-04-01", "2026-10-01"),
    ],
)
def test_periods_are_those_people_name(period: str, since: str, until: str) -> None:
    found = span(OSLO, NOW, period=period, periods={"spring": "2026-04-01..2026-09-30"})
    assert (found.since, found.until) == (local(since), local(until))
    assert found.name == period


def test_bare_dates_are_the_sites_own_and_the_end_is_the_end_of_that_day() -> None:
    found = span(OSLO, NOW, since="2026-10-24", until="2026-10-25")
    assert (found.since, found.until) == (local("2026-10-24"), local("2026-10-26"))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"period": "autum"}, "no period 'autum'; there are today, .*2026-10, 2026, odd"),
        ({"since": "2026-11-14", "until": "2026-11-01"}, "ends before it begins"),
        ({"period": "month", "since": "7d"}, "not both"),
        ({"period": "odd"}, r"periods\.odd: expected two dates"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(asked: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        span(OSLO, NOW, **asked, periods={"odd": "2026-04-01"})


def test_a_zone_that_is_none_is_told() -> None:
    with pytest.raises(ValueError, match=r"expected a name such as Europe/Oslo, got 'Europe/Olso'"):
        zone("Europe/Olso")
    assert str(zone("Asia/Kolkata")) == "Asia/Kolkata"
