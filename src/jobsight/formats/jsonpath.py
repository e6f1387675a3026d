"""A value in a JSON answer by the names on the way to it: `results.0.taux_co2`. Others change their answers; settings
then name another way.
"""

import json
from typing import Any

from jobsight.collector import ParseError


def loaded(text: bytes) -> Any:
    """ParseError if it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ParseError(f"expected JSON, got {text[:60]!r}") from None


def found(answer: Any, path: str) -> Any:
    """What stands there; ParseError says how far one gets."""
    value, passed = answer, ""
    for name in path.split("."):
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
        else:
            raise ParseError(f"expected {name!r} after {passed or 'the beginning'!r}, got {_short(value)}")
        passed = f"{passed}.{name}".lstrip(".")
    return value


def number(answer: Any, path: str, least: float, most: float) -> float:
    """A number within bounds; a wrong one is worse than none."""
    value = found(answer, path)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParseError(f"{path}: expected a number, got {_short(value)}")
    if not least <= value <= most:
        # As text: a whole number may be larger than any other.
        raise ParseError(f"{path}: expected {least:g} to {most:g}, got {_short(value)}")
    return float(value)


def instant(answer: Any, path: str) -> float:
    """Seconds since 1970 of an ISO time; without an offset it is UTC."""
    # Not for every node: few ask anybody anything.
    from datetime import UTC, datetime

    value = found(answer, path)
    try:
        read = datetime.fromisoformat(str(value))
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise ParseError(f"{path}: expected a time such as 2026-11-15T08:00+01:00, got {_short(value)}") from None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
