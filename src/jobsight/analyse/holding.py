"""Whose a card was between two looks, by the lives of the jobs that held it. Pure."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from jobsight.analyse.attribution import Owned
from jobsight.analyse.job import LOCAL
from jobsight.analyse.meter import Reading, Span

# Clocks of a node and of its batch system may differ by so much (seconds).
SLACK = 60.0
# Those who are given CPUs of their own all the same.
GIVEN = frozenset({"htcondor"})


class Look(NamedTuple):
    """A card at one instant: what it shows, and the job it names."""

    reading: Reading
    name: tuple[str, str] | None
    activity: float | None


class Part(NamedTuple):
    """A piece of a span, and whose part of it: None is nobody's."""

    start: float
    end: float
    owners: tuple[Owned, ...]
    """With their part of the energy, of 1."""


class Life(NamedTuple):
    """When a job lived."""

    started: float
    ended: float
    key: str
    scope: str


class Lives:
    """The jobs of some time, by what nodes call them."""

    def __init__(self, documents: Iterable[Mapping[str, Any]]) -> None:
        self._by_name: dict[tuple[str, str, str], list[Life]] = {}
        self.loose: set[str] = set()
        """Keys of those to whom nobody gave any CPUs: sessions, containers."""
        for one in documents:
            life = Life(one["started"], one["seen"], one["key"], one["scope"])
            for name in {one["id"], one["number"] or one["id"]}:
                self._by_name.setdefault((one["cluster"], one["scheduler"], name), []).append(life)
            if one["scheduler"] in LOCAL - GIVEN:
                self.loose.add(one["key"])
        for lives in self._by_name.values():
            lives.sort()

    def of(self, cluster: str, node: str, name: tuple[str, str] | None, time: float) -> Life | None:
        """The job that a node calls so at a time: the last that had begun by then."""
        if name is None:
            return None
        known = [
            life
            for life in self._by_name.get((cluster, *name), ())
            if not life.scope or life.scope.partition("/")[0] == node
        ]
        begun = [life for life in known if life.started <= time + SLACK]
        return begun[-1] if begun else None


def divided(span: Span, before: Life | None, after: Life | None) -> list[Part]:
    """A span by who held the card: the one seen at its begin until that one ended, the one seen at its end from when
    it began.
    """
    if before is not None and after is not None and before.key == after.key:
        return [Part(span.start, span.end, (Owned(before.key, 1.0),))]
    leaves = span.start if before is None else min(max(before.ended, span.start), span.end)
    comes = span.end if after is None else min(max(after.started, span.start), span.end)
    # Two cannot have had it at once: the one who comes is known better.
    leaves = min(leaves, comes)
    parts = [
        (span.start, leaves, before.key if before else None),
        (leaves, comes, None),
        (comes, span.end, after.key if after else None),
    ]
    return [Part(start, end, (Owned(key, 1.0),)) for start, end, key in parts if end > start]


def parted(span: Span, sharers: list[tuple[str | None, float | None]]) -> list[Part]:
    """A span of a card that several have: by how active each was, else alike. Nobody's power is measured there."""
    active = sum(activity or 0.0 for _, activity in sharers)
    held = [(key, activity) for key, activity in sharers if key is not None]
    if active > 0:
        owners = [Owned(key, (activity or 0.0) / active, approximate=True) for key, activity in sharers if activity]
    elif held:
        owners = [Owned(key, 1.0 / len(held), approximate=True) for key, _ in held]
    else:
        owners = [Owned(None, 1.0)]
    return [Part(span.start, span.end, tuple(owners))]


def nearest(times: list[float], time: float, most: float) -> int | None:
    """The place of the time that lies nearest, if it is near enough."""
    place = bisect_left(times, time)
    around = [one for one in (place - 1, place) if 0 <= one < len(times)]
    found = min(around, key=lambda one: abs(times[one] - time), default=None)
    return found if found is not None and abs(times[found] - time) <= most else None
