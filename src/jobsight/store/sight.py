"""What somebody may see of the jobs, as the store's query says it. Pure."""

from collections.abc import Sequence
from typing import Any, NamedTuple


class Sight(NamedTuple):
    """Jobs of these owners, and those charged to these accounts. Nothing where both are empty."""

    owners: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()


def within(sight: Sight | None, mark: str) -> tuple[str, list[Any]]:
    """A condition for WHERE and its values; None sees everything. `mark` is how the engine writes a parameter."""
    if sight is None:
        return "1 = 1", []
    parts, values = [], []
    for column, names in sight._asdict().items():
        if names:
            parts.append(among([column[:-1]], len(names), mark))
            values += names
    # Nothing else in the OR: each part has an index, and a constant among them would keep all from being used.
    return f"({' OR '.join(parts or ['1 = 0'])})", values


def among(columns: Sequence[str], count: int, mark: str) -> str:
    """That one of these columns has one of so many values. They are given once for each column."""
    marks = ", ".join([mark] * count)
    return f"({' OR '.join(f'{column} IN ({marks})' for column in columns)})"
