"""Looks for findings now and then, and keeps them with what became of them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jobsight.analyse.judge import judge
from jobsight.analyse.scene import scene
from jobsight.analyse.standing import merged
from jobsight.analyse.thresholds import thresholds
from jobsight.store.protocol import Store

Look = Callable[[Store, float], int]
"""Looks at a store, at a time."""

DAY = 86400.0
# How often it is looked (seconds), and how far back the first time.
EVERY = 900.0
FIRST = 30 * DAY


def days(begin: float, end: float) -> Iterator[tuple[float, float]]:
    """A time as it is looked at: a month of a large site is more than is held at once, and what is found about users
    needs the day before.
    """
    while begin < end:
        until = end if end - begin < 1.5 * DAY else begin + DAY
        yield begin - DAY, until
        begin = until


class Watch:
    """Made once by a server; asked often, looks seldom."""

    def __init__(self, given: Mapping[str, Any], file: str = "settings") -> None:
        """`given`: what settings say under `findings`; SettingsError if that cannot be."""
        self._limits = thresholds(dict(given), file)
        self._looked: float | None = None

    def look(self, store: Store, now: float) -> int:
        """Look, if it is time and nobody else does it; how many findings there are of the last day."""
        if not store.digests or (self._looked is not None and now < self._looked + EVERY):
            return 0
        count = 0
        for since, until in days(self._begin(store, now), now):
            count = self.look_at(store, since, until, now)
        self._looked = now
        return count

    def _begin(self, store: Store, now: float) -> float:
        if self._looked is not None:
            return now - DAY
        known = store.findings.kept(now - FIRST, now)
        return max(now - FIRST, min(now - DAY, max((one.last for one in known), default=0.0) - DAY))

    def look_at(self, store: Store, since: float, until: float, now: float) -> int:
        """Look at a time; how many findings it has."""
        found = judge(scene(store, since, until, now), self._limits)
        known = store.findings.kept(since, until)
        store.findings.keep(merged(found, known, now))
        return len(found)
