"""Which rows are due to go from the tables to files, and which files to become one. Pure.

An hour's rows go to a file when the hour is over, if they are many; a day's files become one when the day is over,
and what few rows are still in the table go with them. Rows that come later than that wait in the table, and go to
a further file of their day, one a day at the most.
"""

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

HOUR = 3600.0
DAY = 86400.0
# How long after its end a span is still filling: what nodes could not send at once.
HOUR_SETTLES = 900.0
DAY_SETTLES = 7200.0
# Rows of an hour that are worth a file. Fewer wait for the day: a file of ten rows is mostly its own description.
LEAST = 10_000
# Files of a day that are together larger than this stay as they are: sorting them once more would take too long.
LARGEST = 1 << 30


class Piece(NamedTuple):
    """One file of the catalogue."""

    name: str
    """Its path below the folder of the files."""
    source: str
    """The table its rows are of."""
    level: str
    """`hour` or `day`: what it was made for."""
    start: float
    """Of that hour or day."""
    oldest: float
    newest: float
    rows: int
    size: int
    made: float
    fields: str
    """Its columns, with commas between."""


class Move(NamedTuple):
    """Rows of a table from `start` to before `stop`, and those of the files it replaces, into one file."""

    source: str
    level: str
    start: float
    stop: float
    replaces: tuple[Piece, ...] = ()


def meets(piece: Piece, between: tuple[float, float]) -> bool:
    """Whether a file can have rows of a time."""
    return piece.oldest <= between[1] and piece.newest >= between[0]


def moves(
    source: str, hours: dict[float, int], pieces: Iterable[Piece], now: float, least: int = LEAST
) -> list[Move]:
    """What is due of one table. `hours` says how many rows of each hour are in the table."""
    pieces = list(pieces)
    found = []
    for day in sorted({start // DAY * DAY for start in [*hours, *(piece.start for piece in pieces)]}):
        own = [piece for piece in pieces if day <= piece.start < day + DAY]
        waiting = {hour: count for hour, count in hours.items() if day <= hour < day + DAY}
        if day + DAY + DAY_SETTLES <= now:
            found += _of_day(source, day, own, bool(waiting), now)
        else:
            found += _of_hours(source, own, waiting, now, least)
    return found


def _of_day(source: str, day: float, own: Sequence[Piece], waiting: bool, now: float) -> list[Move]:
    whole = Move(source, "day", day, day + DAY)
    if any(piece.level == "hour" for piece in own) and sum(piece.size for piece in own) <= LARGEST:
        return [whole._replace(replaces=tuple(own))]
    if waiting and now - max((piece.made for piece in own), default=0.0) >= DAY:
        return [whole]
    return []


def _of_hours(source: str, own: Sequence[Piece], waiting: dict[float, int], now: float, least: int) -> list[Move]:
    done = {piece.start for piece in own}
    return [
        Move(source, "hour", hour, hour + HOUR)
        for hour, count in sorted(waiting.items())
        if hour + HOUR + HOUR_SETTLES <= now and count >= least and hour not in done
    ]


def name(move: Move, number: int) -> str:
    """`process/2026/11/15/13.parquet` or `process/2026/11/15.parquet`; the second of that name `15-2.parquet`."""
    form = "%Y/%m/%d/%H" if move.level == "hour" else "%Y/%m/%d"
    suffix = f"-{number}" if number > 1 else ""
    return f"{move.source}/{time.strftime(form, time.gmtime(move.start))}{suffix}.parquet"
