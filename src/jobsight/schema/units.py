"""Units as types: a number that knows what it is.

A record's field is annotated with one of these; the wire, the tables, the metric names and the pages take the
unit from there. Base units only: a page may show GiB, nothing below it ever does.
"""

from typing import Any, NewType

Bytes = NewType("Bytes", int)
Seconds = NewType("Seconds", float)
Cores = NewType("Cores", float)
Count = NewType("Count", int)
Ratio = NewType("Ratio", float)
Hertz = NewType("Hertz", int)
Celsius = NewType("Celsius", float)
Watts = NewType("Watts", float)
Joules = NewType("Joules", float)

# The word Prometheus and the reference pages use. A plain str, int or bool has no unit.
WORDS: dict[Any, str] = {
    Bytes: "bytes",
    Seconds: "seconds",
    Cores: "cores",
    Count: "",
    Ratio: "ratio",
    Hertz: "hertz",
    Celsius: "celsius",
    Watts: "watts",
    Joules: "joules",
}


def word(unit: Any) -> str:
    """The unit's word, empty for labels and counts."""
    return WORDS.get(unit, "")


def base(unit: Any) -> type:
    """The Python type that carries the unit: int, float, str or bool."""
    carrier: type = getattr(unit, "__supertype__", unit)
    return carrier
