"""How long what is kept: each table its own time, jobs theirs. Pure."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jobsight.settings import Store

YEAR = 365 * 86400.0
# What is made of rows is small and outlives them, unless `store.keep_rows` says otherwise.
# Marks of what is to be done, see `analyse.late`, go when it is done.
MARKS = ("late", "due", "lustredue")
# Few rows a day, of which reports ask years at once: as files they would be hundreds, and each costs its opening.
STAYS = ("tally", "stint")
DERIVED = {"usage": YEAR, "slice": 2 * YEAR, "share": 10 * YEAR}
DERIVED |= dict.fromkeys(("tally", "capacity", "stint", "energy"), 10 * YEAR)
DERIVED |= {"lustreslice": YEAR / 4, "lustretotal": 2 * YEAR, "lustreseries": YEAR}
DERIVED |= dict.fromkeys(("lustreshare", "lustredensity"), 10 * YEAR)


class Retention(NamedTuple):
    """Seconds that rows and jobs are kept."""

    keep: float
    """Rows as they were sent."""
    rows: Mapping[str, float]
    """Tables that are kept otherwise."""
    jobs: float | None
    """For ever if None."""

    def of(self, table: str) -> float:
        # What is derived is never dropped before what it is made of: it could not be made again.
        usual = max(self.keep, DERIVED[table]) if table in DERIVED else self.keep
        return self.rows.get(table, usual)

    def times(self, tables: Iterable[str]) -> dict[float, list[str]]:
        """Tables that are kept equally long, by how long."""
        found: dict[float, list[str]] = {}
        for table in tables:
            found.setdefault(self.of(table), []).append(table)
        return found


def retention(settings: Store) -> Retention:
    """As the settings have it."""
    return Retention(settings.keep, settings.keep_rows, settings.keep_jobs)
