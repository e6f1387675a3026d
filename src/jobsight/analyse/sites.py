"""What a site says of itself for its reports: its clock, its periods and its map of programs."""

from collections.abc import Mapping
from typing import NamedTuple

from jobsight.analyse.calendar import Calendar, Span, span, zone
from jobsight.analyse.programmap import Maps
from jobsight.settings import Settings, SettingsError
from jobsight.store.sight import Sight, within


class Site(NamedTuple):
    """A site as reports see it."""

    calendar: Calendar
    maps: Maps
    periods: Mapping[str, str] = {}  # nobody writes to it


USUAL_SITE = Site(Calendar(zone("")), Maps())


class Asked(NamedTuple):
    """What somebody wants a report of. Empty means any."""

    by: str = ""
    since: str = ""
    until: str = ""
    period: str = ""
    owner: str = ""
    account: str = ""
    partition: str = ""
    program: str = ""
    """Of `usage`: that program. Of `programs`: a tag, or a program."""
    cluster: str = ""

    def span(self, site: Site, now: float) -> Span:
        """ValueError with a sentence for a time nobody can read."""
        return span(site.calendar, now, self.since, self.until, self.period, site.periods)


def site_of(settings: Settings) -> Site:
    """SettingsError for a time zone that is none."""
    programs = settings.programs
    try:
        where = zone(settings.timezone)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    return Site(Calendar(where), Maps(programs.map, starter=programs.builtin), settings.periods)


def chosen(asked: Asked, sight: Sight | None) -> tuple[str, list[str]]:
    """A condition on rows that have an owner, an account and a partition, and its values: what is asked for, and of
    that what may be seen.
    """
    seen, values = within(sight, "?")
    tests = [
        (name, value) for name in ("cluster", "owner", "account", "partition") if (value := getattr(asked, name))
    ]
    return " AND ".join([seen, *(f"{name} = ?" for name, _ in tests)]), [*values, *(value for _, value in tests)]
