"""What a kilowatt hour causes and costs at a time: factors and prices as step functions, with where they are from.

Factors come from the table `emissionfactor`; where none is known of a time, the yearly figure of the country or the
constant of the settings. The most immediate source comes first.
"""

import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import cache
from math import isfinite
from typing import NamedTuple

from jobsight.formats import owid, when
from jobsight.metering import PROVIDERS, Energy
from jobsight.store.protocol import Store

KILOWATT_HOUR = 3.6e6
# How long a factor holds when no other comes (seconds): grids change by the day's hours.
HOLDS = 86400.0
GLOBAL = 475.0
TOLD = """SELECT cluster, provider, zone, vintage, time, age, valid, factor FROM emissionfactor
WHERE time BETWEEN ? AND ? ORDER BY time"""


class Factor(NamedTuple):
    """Grams of CO2 equivalent a kilowatt hour, and whose word that is."""

    grams: float
    source: str


class Steps:
    """A value that holds until the next one comes, or too long ago."""

    def __init__(self, points: Iterable[tuple[float, float]], holds: float = float("inf")) -> None:
        points = sorted(points)
        self._times = [time for time, _ in points]
        self._values = [value for _, value in points]
        self._holds = holds

    def at(self, time: float) -> float | None:
        place = bisect_right(self._times, time) - 1
        if place < 0 or time - self._times[place] > self._holds:
            return None
        return self._values[place]


class Factors:
    """All that is known of some time, by cluster."""

    def __init__(self, rows: Iterable[tuple[str, str, str, str, float, float]], options: Energy) -> None:
        """Rows of cluster, provider, zone, vintage, time and grams."""
        told: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
        for cluster, provider, zone, vintage, time, grams in rows:
            if provider in ((options.provider,) if options.provider else PROVIDERS):
                source = " ".join(filter(None, (provider, zone, vintage.replace("now", ""))))
                told.setdefault((cluster, provider, source), []).append((time, grams))
        self._known = [
            (cluster, source, Steps(points, HOLDS))
            for (cluster, _, source), points in sorted(told.items(), key=lambda item: PROVIDERS.index(item[0][1]))
        ]
        self._clusters = {cluster for cluster, _, _ in self._known}
        self._static = static(options)

    def at(self, cluster: str, time: float) -> Factor:
        """Of its own cluster, or of any where its own tells none: they may share a grid."""
        # What the settings say of themselves comes before what an agent says of the whole world.
        for place, source, steps in self._known:
            if place == cluster or cluster not in self._clusters:
                grams = steps.at(time)
                if grams is not None and not (source.startswith(("owid", "constant")) and self._static[1]):
                    return Factor(grams, source)
        return self._static[0]


def static(options: Energy) -> tuple[Factor, bool]:
    """What holds at any time, and whether the settings chose it."""
    if options.constant is not None:
        return Factor(options.constant, "constant"), True
    yearly = owid.yearly(options.country)
    if yearly is None:
        return Factor(GLOBAL, "constant WORLD"), False
    return Factor(yearly.factor, f"owid {yearly.zone} {yearly.year}"), bool(options.country)


def factors(store: Store, since: float, until: float, options: Energy) -> Factors:
    """Of a time, from the store."""
    span = since - HOLDS, until + 3600.0
    rows = store.query(TOLD, span, span)
    return Factors(
        (
            # An answer holds since it says so, or since it came.
            (cluster, provider, zone, vintage, min(time, valid) if valid is not None else time - age, grams)
            for cluster, provider, zone, vintage, time, age, valid, grams in rows
        ),
        options,
    )


class Prices:
    """Of a kilowatt hour over time; none if the settings know none."""

    def __init__(self, options: Energy, text: str = "") -> None:
        self.currency = options.currency
        constant = [] if options.price is None else [(float("-inf"), options.price)]
        self._steps = Steps(constant or parse(text))

    def at(self, time: float) -> float | None:
        return self._steps.at(time)


def prices(options: Energy, say: Callable[[str], None] | None = None) -> Prices:
    """From the settings. A file that cannot be read is said, and nothing has a price: energy must not wait for it."""
    if not options.price_file:
        return Prices(options)
    try:
        with open(options.price_file, encoding="utf-8") as file:
            return Prices(options, file.read())
    except (OSError, ValueError) as error:
        (say or _say)(f"jobsight: energy.price_file: {options.price_file}: {error}")
        return Prices(options)


@cache
def _say(text: str) -> None:
    """Once: it is read again and again."""
    print(text, file=sys.stderr, flush=True)


def parse(text: str) -> list[tuple[float, float]]:
    """Lines of a time, a tab and a price; `#` begins a comment."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            time, tab, price = line.partition("\t")
            try:
                begin, money = when.instant(time, 0.0), float(price)
            except ValueError:
                begin, money = 0.0, 0.0
            # A time ago, such as 7d, is none here.
            if not tab or begin <= 0 or not isfinite(money):
                raise ValueError(f"line {number}: expected a time, a tab and a price, got {line[:60]!r}")
            found.append((begin, money))
    return found
