"""What is to be done again: messages that came after later ones, and hours whose rollups no longer hold.

Both are rows of tables like any other, so they are stored in the same commit as what they are about, in every store.
They are taken out when it has been done.
"""

from collections.abc import Iterable
from typing import Any

from jobsight.ingest.accept import Accepted
from jobsight.schema.record import label, record
from jobsight.store.protocol import REACH

HOUR = 3600.0


@record
class Late:
    """A message that came after later ones of its node, and waits to be counted."""

    collector: str = label("Whose message.")


@record
class Due:
    """An hour, which begins at this row's time, whose rollups are to be made (again)."""

    reason: str = label("`usage` that was counted, or a `recount`.")


def marks(late: Iterable[Accepted]) -> list[tuple[Any, ...]]:
    """Rows of `late`."""
    return [(m.cluster, m.node, m.boot, m.time, m.collector) for m in late]


def due(intervals: Iterable[tuple[str, float, float]], reason: str = "usage") -> list[tuple[Any, ...]]:
    """Rows of `due`: the hours that intervals of usage overlap, each given by its cluster, its end and its length."""
    hours = set()
    for cluster, time, seconds in intervals:
        last = time // HOUR
        first = (time - min(seconds, REACH)) // HOUR
        hours.add((cluster, last))
        while first < last:
            hours.add((cluster, first))
            first += 1
    return [(cluster, "", "", hour * HOUR, reason) for cluster, hour in sorted(hours)]
