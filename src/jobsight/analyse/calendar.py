"""Hours, days and months of a site: instants in its time zone, right across changes of the clock. Pure but for the
machine's own zone.
"""

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from jobsight.formats import when

HOUR = 3600.0
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
LOCAL = "/etc/localtime"
USUAL = "30d"
# Periods that end now or a while ago.
NAMED = ("today", "yesterday", "month", "last month", "year", "last year")


class Span(NamedTuple):
    """From an instant to before another, on whole hours of UTC, and what it is called."""

    since: float
    until: float
    name: str = ""


def zone(name: str) -> tzinfo:
    """A time zone by its name; the machine's own if that is empty. ValueError if there is none of that name."""
    try:
        return ZoneInfo(name or _own())
    except (ZoneInfoNotFoundError, ValueError, OSError):
        if not name:
            # A machine without a list of time zones.
            return UTC
        raise ValueError(f"timezone: expected a name such as Europe/Oslo, got {name!r}") from None


def _own() -> str:
    place = os.path.realpath(LOCAL)
    _, found, name = place.partition("/zoneinfo/")
    return name if found and name else "UTC"


class Calendar:
    """What an hour, which begins at an instant, is called."""

    def __init__(self, where: tzinfo) -> None:
        self.zone = where
        self._at: Callable[[float], datetime] = lru_cache(20_000)(lambda time: datetime.fromtimestamp(time, where))

    def hour(self, time: float) -> str:
        """With its offset: when the clock is set back an hour comes twice."""
        return self._at(time).replace(minute=0).isoformat(timespec="minutes")

    def day(self, time: float) -> str:
        return self._at(time).date().isoformat()

    def month(self, time: float) -> str:
        return self._at(time).date().isoformat()[:7]

    def weekday(self, time: float) -> int:
        """0 is Monday."""
        return self._at(time).weekday()

    def clock(self, time: float) -> int:
        """The hour of day, 0 to 23."""
        return self._at(time).hour

    def named(self, time: float, step: str) -> str:
        """The hour, day, month, weekday or hour of day it belongs to."""
        if step == "weekday":
            return WEEKDAYS[self.weekday(time)]
        if step == "hour-of-day":
            return f"{self.clock(time):02d}"
        found: str = {"hour": self.hour, "day": self.day, "month": self.month}[step](time)
        return found

    def begins(self, time: float, step: str) -> float:
        """When the day or month began that an instant is in."""
        local = self._at(time).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
        if step == "month":
            local = local.replace(day=1)
        return local.timestamp()


def span(
    calendar: Calendar,
    now: float,
    since: str = "",
    until: str = "",
    period: str = "",
    periods: Mapping[str, str] = {},
) -> Span:
    """A time as somebody asks for it: since and until, or a period: `month`, `last month`, `year`, `30d`, a month
    such as 2026-10, a year, or a name of the settings. ValueError says what was expected.
    """
    if period and (since or until):
        raise ValueError("a period says since when and until when: give it or these, not both")
    if not period:
        return _whole(_instant(calendar, since or USUAL, now), _instant(calendar, until or "now", now, end=True), now)
    if period in periods:
        first, dots, last = periods[period].partition("..")
        if not dots:
            raise ValueError(f"periods.{period}: expected two dates as 2026-04-01..2026-09-30, got {first!r}")
        begin, end = _instant(calendar, first, now), _instant(calendar, last or "now", now, end=True)
        return _whole(begin, end, now)._replace(name=period)
    found = _named(calendar, now, period)
    if found is None:
        try:
            found = _instant(calendar, period, now), now
        except ValueError:
            known = ", ".join([*NAMED, "30d", "2026-10", "2026", *periods])
            raise ValueError(f"no period {period!r}; there are {known}") from None
    return _whole(*found, now)._replace(name=period)


def _named(calendar: Calendar, now: float, period: str) -> tuple[float, float] | None:
    here = datetime.fromtimestamp(now, calendar.zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    month = here.replace(day=1)
    before = (month - timedelta(days=1)).replace(day=1)
    known = {
        "today": (here, None), "yesterday": (here - timedelta(days=1), here), "month": (month, None),
        "last month": (before, month), "year": (month.replace(month=1), None),
        "last year": (month.replace(month=1, year=here.year - 1), month.replace(month=1)),
    }  # fmt: skip
    if period in known:
        first, last = known[period]
        return _up(first.timestamp()), now if last is None else last.timestamp()
    for form, step in (("%Y-%m", 32), ("%Y", 367)):
        try:
            first = datetime.strptime(period, form).replace(tzinfo=calendar.zone)
        except ValueError:
            continue
        try:
            last = (first + timedelta(days=step)).replace(day=1)
        except OverflowError:
            raise ValueError(f"{period!r} is too far away") from None
        return _up(first.timestamp()), (last if form == "%Y-%m" else last.replace(month=1)).timestamp()
    return None


def _instant(calendar: Calendar, text: str, now: float, *, end: bool = False) -> float:
    """As `formats.when` reads it, but what has no offset is the site's own time."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return when.instant(text, now, end=end)
    if found.tzinfo is None:
        found = found.replace(tzinfo=calendar.zone)
    dated = len(text.strip()) <= len("2026-11-15")
    try:
        time = (found + timedelta(days=1 if end and dated else 0)).timestamp()
        return _up(time) if dated else time
    except OverflowError:
        raise ValueError(f"{text!r} is too far away") from None


def _up(time: float) -> float:
    """An hour belongs to the day it begins in, also where days begin at half past an hour of UTC."""
    return -(-time // HOUR) * HOUR


def _whole(since: float, until: float, now: float) -> Span:
    """On whole hours: what is counted is counted by the hour. Nothing was counted before 1970."""
    since, until = max(0.0, since), min(until, now)
    begin, end = since // HOUR * HOUR, _up(until)
    if begin >= end:
        raise ValueError("the time ends before it begins")
    return Span(begin, end)
