"""Yearly carbon intensities by country, as Our World in Data publishes them: the small table beside this file.

For those who have no better source, and for machines without a network. Which year it is of is part of every value.
"""

from functools import cache
from typing import NamedTuple

TABLE = "owid.tsv"
WORLD = "WORLD"


class Yearly(NamedTuple):
    """One country's mean over a year."""

    zone: str
    country: str
    year: int
    factor: float
    """Grams of CO2 equivalent a kilowatt hour."""


@cache
def table() -> dict[str, Yearly]:
    """By the country's two letters; `WORLD` is the mean of all."""
    # Not by path: the program may be one file. Loaded here, for nodes that never ask.
    import pkgutil

    return parse((pkgutil.get_data(__package__, TABLE) or b"").decode())


def parse(text: str) -> dict[str, Yearly]:
    """Lines of zone, country, year and factor with tabs between; `#` begins a comment."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            zone, country, year, factor = line.split("\t")
            found[zone] = Yearly(zone, country, int(year), float(factor))
    return found


def yearly(country: str) -> Yearly | None:
    """Of a country, or of the world if none is named; None for one that is not in the table."""
    return table().get(country.upper() or WORLD)
