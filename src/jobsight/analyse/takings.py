"""Rows of the table `energy`, and of hours that are not in it yet: made when somebody asks, and not kept."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from jobsight.analyse.energy import Taking, taken
from jobsight.analyse.late import HOUR
from jobsight.analyse.sources import Place, places
from jobsight.metering import USUAL, Energy
from jobsight.schema.record import fields_of
from jobsight.schema.sqltable import STAMP
from jobsight.store.protocol import Store

# Hours that are made while somebody waits: more only if nobody tends the store.
WAITED_FOR = 3
# For one job, whose part of what it took would be taken for the whole.
FOR_ONE = 48
# Of more nodes than this nobody waits for the hour that runs: lists then end with the last one that is made.
MOST = 64
LABELS = ("part", "job_key", "grade", "source", "approximate", "factor_source", "currency")
SUMS = ("seconds", "covered", "energy", "energy_full", "energy_cards", "unsure", "emissions", "cost", "whole")
COLUMNS = [*STAMP, *(field.name for field in fields_of(Taking))]


class Asked(NamedTuple):
    """Of which time; of one job or some nodes only."""

    since: float
    until: float
    job: str | None = None
    places: Sequence[Place] | None = None


class Row(NamedTuple):
    """Sums over some hours of what has the same labels."""

    cluster: str
    node: str
    time: float
    labels: dict[str, Any]
    sums: dict[str, float | None]
    built: float
    baseline: float | None


class Takings:
    """What one store has. Each hour is made once, however often it is asked for."""

    def __init__(self, store: Store, options: Energy = USUAL) -> None:
        self._store, self._options = store, options
        self.waiting = 0
        """Hours of the last question that are still to be made, and were not made for it."""
        self._made: dict[tuple[float, float, float, tuple[Place, ...] | None], list[Row]] = {}

    def rows(self, asked: Asked, now: float, width: float = 0.0) -> list[Row]:
        """Of a time, summed over its hours; in steps of `width` if that is given."""
        since, until = asked.since // HOUR * HOUR, min(asked.until, now)
        live = self._live_hours(asked, since, until, now)
        found = _kept(self._store, asked, since, until, live, width)
        # Hours that follow each other at once: what is known of a month before is looked up each time.
        for _, some in groupby(enumerate(live), lambda one: one[1] - one[0] * HOUR):
            hours = [hour for _, hour in some]
            made = self._live(hours[0], min(hours[-1] + HOUR, now), now, asked)
            found += [row for row in made if asked.job in (None, row.labels["job_key"])]
        return found

    def _live_hours(self, asked: Asked, since: float, until: float, now: float) -> list[float]:
        """Hours that are to be made (again), and the one that runs."""
        marked = self._store.query("SELECT DISTINCT time FROM due WHERE time >= ? AND time < ?", [since, until])
        running = now // HOUR * HOUR
        due = {time for (time,) in marked if time <= running} | ({running} if since <= running < until else set())
        live = sorted(due)[-(WAITED_FOR if asked.job is None else FOR_ONE) :]
        if live and asked.places is None and len(places(self._store, live[0], now, self._options)) > MOST:
            live = []
        self.waiting = len(due) - len(live)
        return live

    def _live(self, since: float, until: float, now: float, asked: Asked) -> list[Row]:
        key = since, until, now, None if asked.places is None else tuple(asked.places)
        if key not in self._made:
            made = taken(self._store, since, until, self._options, asked.places)
            self._made[key] = [_row(row) for row in made] if since < until else []
        return self._made[key]


def _kept(store: Store, asked: Asked, since: float, until: float, live: list[float], width: float) -> list[Row]:
    step = f"floor(time / {width!r}) * {width!r}" if width else "0.0"
    heads = ["cluster", "node", *LABELS]
    sums = ", ".join(f"sum({name})" for name in SUMS)
    where, values = ["time >= ?", "time < ?"], [since, until]
    if live:
        where.append(f"NOT (time IN ({', '.join(repr(hour) for hour in live)}))")
    if asked.job is not None:
        where.append("job_key = ?")
        values.append(asked.job)  # type: ignore[arg-type]
    answer = store.query(
        f"SELECT {', '.join(heads)}, {step} AS begun, {sums}, sum(energy_full * pue), max(baseline) FROM energy "
        f"WHERE {' AND '.join(where)} GROUP BY {', '.join(heads)}, begun",
        values,
        (since, until),
    )
    width_of = len(heads) + 1
    return [
        Row(
            line[0],
            line[1],
            line[width_of - 1],
            dict(zip(LABELS, line[2:], strict=False)),
            dict(zip(SUMS, line[width_of:], strict=False)),
            line[-2],
            line[-1],
        )
        for line in answer
    ]


def _row(row: tuple[Any, ...]) -> Row:
    told = dict(zip(COLUMNS, row, strict=True))
    return Row(
        told["cluster"],
        told["node"],
        told["time"],
        {name: told[name] for name in LABELS},
        {name: told[name] for name in SUMS},
        told["energy_full"] * told["pue"],
        told["baseline"],
    )
