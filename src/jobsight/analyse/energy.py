"""Energy by hour, node and job: made of meters and counters when an hour is over, and of one that is not on demand.

An hour is cut into five minutes; in each the best source present says what the node took, and `attribution` says who.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from jobsight.analyse.attribution import IDLE, JOB, SYSTEM, Spell, Taken, attribute
from jobsight.analyse.emissions import KILOWATT_HOUR, Factors, Prices, factors, prices
from jobsight.analyse.holding import Lives
from jobsight.analyse.late import HOUR
from jobsight.analyse.nodetime import Measured, Nodetime
from jobsight.analyse.sources import AROUND, Place, places, sources
from jobsight.metering import USUAL, Energy
from jobsight.schema.record import counter, fields_of, gauge, label, record
from jobsight.schema.sqltable import POSTGRES, STAMP
from jobsight.schema.units import Joules, Ratio, Seconds, Watts, base
from jobsight.store.protocol import JobQuery, Store

# Tables it is made of: without one of them it cannot be made again.
MADE_OF = ("ipmi", "power", "gpu", "cpu", "usage")
METERS = ("ipmi", "power", "gpu")
# Nodes looked at together: what they told in a day is in memory meanwhile.
MANY = 100
# How far back idle power is learned from (seconds).
LEARNED = 30 * 86400.0
# A day at a time: of a thousand nodes there would be a million hours.
KNOWN = """SELECT cluster, node, source, min(quiet), max(baseline) FROM energy
WHERE part = 'idle' AND time >= ? AND time < ? GROUP BY cluster, node, source, floor(time / 86400)"""


@record
class Taking:
    """An hour, which begins at this row's time, of one node: what one job, the system or nobody took. Summed over
    the parts, `energy` and `energy_full` each are what the node took.
    """

    part: str = label("job, system or idle.")
    job_key: str = label("The job; empty for the others.")
    grade: str = label("A: a meter of the node; B: counters; C: sensors' averages; D: a model; empty: not known.")
    source: str = label("What measured: ipmi, hwmon, rapl, rapl+gpu, gpu, model; empty: nothing did.")
    method: str = label("How it was shared out: activity or cpu_time.")
    approximate: bool = label("Whether a part of a card that several share is in it.")
    factor_source: str = label("Whose word `emissions` is: provider, zone, vintage.")
    currency: str | None = label("Of `cost`.", default=None)
    seconds: Seconds = gauge("Time of the hour in which it was there.")
    covered: Seconds = gauge("Of that, how much was measured.")
    energy: Joules = counter("What its work took; of idle, what the node takes anyway.")
    energy_full: Joules = counter("The same with its part of what the node takes anyway, by the CPUs it held.")
    energy_cards: Joules = counter("Of both, what cards took.")
    unsure: Joules = counter("By how much `energy_full` may be more or less, as far as readings tell.")
    pue: Ratio = gauge("What the building took for each joule, as set then: in emissions and cost, not in energy.")
    emissions: float = counter("Grams of CO2 equivalent, of `energy_full` and the building.")
    cost: float | None = counter("Money, of the same.", default=None)
    baseline: Watts | None = gauge("What the node takes anyway, as it was known then.", default=None)
    whole: Joules | None = counter("Of idle: all that the node took, as it was measured.", default=None)
    quiet: Watts | None = gauge("Of idle: what the node took while nothing ran, cards left out.", default=None)


class Worth(NamedTuple):
    """What a kilowatt hour causes and costs."""

    factors: Factors
    prices: Prices


class Sum:
    """What becomes one row."""

    def __init__(self) -> None:
        self.seconds = self.covered = self.energy = self.full = self.cards = self.unsure = 0.0
        self.emissions = self.cost = 0.0
        self.baseline: float | None = None
        self.whole: float | None = None
        self.quiet: list[float] = []


def roll(store: Store, since: float, until: float, options: Energy = USUAL) -> int:
    """Make the hours of a time, in place of what was made of them; how many rows."""
    if since - AROUND < max(store.horizon(table) for table in MADE_OF):
        # Of what is gone nothing can be made; what was made of it stays.
        return 0
    made = [tuple(_text(value) for value in row) for row in taken(store, since, until, options)]
    kinds = [*STAMP.values(), *(base(field.unit) for field in fields_of(Taking))]
    # Names that no table has: a statement is shown the tables it names.
    names = [f"value{place}" for place in range(len(kinds))]
    cast = ", ".join(f"CAST({name} AS {POSTGRES[kind]})" for name, kind in zip(names, kinds, strict=True))
    return store.refill("energy", (since, until), f"SELECT {cast} FROM label", made, names)


def _text(value: Any) -> str | None:
    """As a number that is read back is the same."""
    return None if value is None else value if isinstance(value, str) else repr(value)


def taken(
    store: Store, since: float, until: float, options: Energy = USUAL, only: Iterable[Place] | None = None
) -> Iterator[tuple[Any, ...]]:
    """Rows of a time that begins with an hour, with their stamp; of some nodes only, if they are named."""
    wanted = None if only is None else set(only)
    here = [place for place in places(store, since, until, options) if wanted is None or place in wanted]
    if not here:
        return
    query = JobQuery(since=since - AROUND, until=until, limit=10**9, node=here[0][1] if len(here) == 1 else None)
    lives = Lives(store.jobs(query, until))
    worth = Worth(factors(store, since, until, options), prices(options))
    learned, before = _learned(store, since)
    kinds: dict[tuple[str, str], dict[str, list[float]]] = {}
    for first in range(0, len(here), MANY):
        some = here[first : first + MANY]
        found = sources(store, [node for _, node in some], since, until, lives, options)
        nodes = [
            Nodetime(place, found[place], lives.loose, learned.get(place, {}), options)
            for place in some
            if place in found
        ]
        for node in nodes:
            for source, watts in node.learned().items():
                kinds.setdefault(node.kind, {}).setdefault(source, []).append(watts)
        for node in nodes:
            node.alike = before.get(node.place, {}) | kinds.get(node.kind, {})
            yield from rows(node, worth, options)


Watch = dict[Place, dict[str, list[float]]]


def _learned(store: Store, since: float) -> tuple[Watch, Watch]:
    """By node and source: what it took while nothing ran, and what was said that it takes anyway."""
    learned: Watch = {}
    before: Watch = {}
    span = since - LEARNED, since
    for cluster, node, source, quiet, baseline in store.query(KNOWN, span, span):
        for found, watts in ((learned, quiet), (before, baseline)):
            if watts is not None:
                found.setdefault((cluster, node), {}).setdefault(source, []).append(watts)
    return learned, before


def rows(node: Nodetime, worth: Worth, options: Energy) -> Iterator[tuple[Any, ...]]:
    """One node's, with their stamp."""
    sums: dict[tuple[Any, ...], Sum] = {}
    for step, measured in enumerate(node.steps):
        begin, whole = node.begin(step), node.length(step)
        factor = worth.factors.at(node.place[0], begin + whole / 2)
        price = worth.prices.at(begin + whole / 2)
        spell = node.spell(step)
        method = _method(measured, options)
        for part in _parts(spell, measured, method, alive=node.alive(step)):
            key = (
                begin // HOUR * HOUR, part.what, part.key, measured.grade, measured.source, method,
                part.approximate, factor.source, None if price is None else worth.prices.currency,
            )  # fmt: skip
            one = sums.setdefault(key, Sum())
            present = node.present(step, part.key)
            built = part.energy_full * options.pue / KILOWATT_HOUR
            one.seconds += present
            one.covered += present * measured.seconds / whole
            one.energy += part.energy
            one.full += part.energy_full
            one.cards += part.cards
            one.unsure += measured.unsure * part.energy_full / measured.energy if measured.energy else 0.0
            one.emissions += built * factor.grams
            one.cost += built * (price or 0.0)
            one.baseline = spell.baseline
            if part.what == IDLE:
                one.whole = (one.whole or 0.0) + measured.energy
                one.quiet += [] if (watts := node.quiet[step]) is None else [watts]
    for key, one in sums.items():
        yield _row(node.place, key, one, options)


def _method(measured: Measured, options: Energy) -> str:
    # What cards alone took says nothing of who used processors.
    return "activity" if measured.source == "gpu" else options.method


def _parts(spell: Spell, measured: Measured, method: str, *, alive: bool) -> Sequence[Taken]:
    if not measured.source:
        # Who was there is said, though nobody measured; also of a node that idled.
        node = [Taken(what, "", 0.0, 0.0) for what in (SYSTEM, IDLE)] if alive else []
        return [*(Taken(JOB, job.key, 0.0, 0.0) for job in spell.jobs), *node]
    parts = attribute(spell, method)
    if measured.source == "gpu":
        # Nothing is known of what is no card's, which is not none.
        return [part for part in parts if part.cards or part.what == IDLE]
    return parts


def _row(place: Place, key: tuple[Any, ...], one: Sum, options: Energy) -> tuple[Any, ...]:
    hour, part, job, grade, source, method, approximate, factor, currency = key
    made = Taking(
        part=part,
        job_key=job,
        grade=grade,
        source=source,
        method=method,
        approximate=approximate,
        factor_source=factor,
        currency=currency,
        seconds=Seconds(one.seconds),
        covered=Seconds(one.covered),
        energy=Joules(one.energy),
        energy_full=Joules(one.full),
        energy_cards=Joules(one.cards),
        unsure=Joules(one.unsure),
        pue=Ratio(options.pue),
        emissions=one.emissions,
        cost=None if currency is None else one.cost,
        baseline=None if one.baseline is None else Watts(one.baseline),
        whole=None if one.whole is None else Joules(one.whole),
        quiet=Watts(sum(one.quiet) / len(one.quiet)) if one.quiet else None,
    )
    return (*place, "", hour, *made)  # type: ignore[misc]
