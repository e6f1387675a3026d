"""One store copied into another, by table and day, whatever the engines are.

A day of a table is replaced whole, in one transaction, together with a mark that says from where it came and what it
adds up to. So a copy that was broken off goes on, one that is run again does what is new, and what the target has
from elsewhere is never touched: then nothing is copied.
"""

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from jobsight.schema.record import fields_of
from jobsight.schema.sqltable import STAMP
from jobsight.schema.units import base
from jobsight.store.counter import Entry
from jobsight.store.protocol import Store, StoreError

DAY = 86400
# Rows or documents handed on at a time.
BATCH = 20_000
RUN = {
    "cluster": str, "node": str, "boot": str, "collector": str, "time": float, "uptime": float, "every": float,
    "status": str, "seconds": float, "error": str, "missing": str, "count": int,
}  # fmt: skip

Row = tuple[Any, ...]
Figures = tuple[float | None, ...]
Kinds = dict[str, type[Any]]
Piece = tuple[str, int]


class Mark(NamedTuple):
    """What a copy has left behind of one day of one table."""

    source: str
    figures: Figures


class Side(Protocol):
    """A store as a copy sees it. It has the store for itself."""

    place: str

    @property
    def store(self) -> Store: ...

    def site(self) -> str:
        """The namespace of the store's series: no two stores have the same."""

    def read(self, table: str, day: int) -> Iterator[list[Row]]:
        """The rows of one day."""

    def replace(self, table: str, day: int, rows: Iterator[list[Row]], mark: Mark) -> int:
        """These rows in place of those of that day; how many. All of it holds, or none."""

    def marks(self) -> dict[Piece, Mark]:
        """What was copied here."""

    def jobs(self) -> Iterator[list[Entry]]:
        """All jobs."""

    def put(self, jobs: list[Entry]) -> None:
        """Jobs as they are now."""

    def weighed(self) -> Figures:
        """How many jobs there are, and the length of their documents together."""

    def finish(self, horizons: dict[str, float]) -> None:
        """Bring about what follows from the rows, and remember from when on each table's are complete."""


def tables(records: dict[str, type[Any]]) -> dict[str, Kinds]:
    """Every table and what its columns hold."""
    own = {name: {**STAMP, **{f.name: base(f.unit) for f in fields_of(record)}} for name, record in records.items()}
    return {"run": RUN} | own


def figures(store: Store, table: str, kinds: Kinds) -> dict[int, Figures]:
    """What each day of a table adds up to: how many rows, and for every column how many have it and their sum. Of a
    text its length counts.
    """
    summed = {str: "sum(length({0}))", bool: "count(*) FILTER (WHERE {0})"}
    parts = [f"count({name}), {summed.get(kind, 'sum({0})').format(name)}" for name, kind in kinds.items()]
    day = f"floor(time / {DAY})"
    asked = f"SELECT {day}, count(*), {', '.join(parts)} FROM {table} GROUP BY {day}"
    return {int(row[0]): tuple(row[1:]) for row in store.query(asked)}


def same(one: Figures | None, other: Figures | None) -> bool:
    """Whole numbers exactly; others as far as the order of adding them lets one say."""
    if one is None or other is None or len(one) != len(other):
        return False
    return all(_same(first, second) for first, second in zip(one, other, strict=True))


def _same(one: float | None, other: float | None) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        return one is not None and other is not None and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return one == other


class Copy:
    """What there is to do, the doing of it, and whether both are alike then."""

    def __init__(self, source: Side, target: Side, records: dict[str, type[Any]]) -> None:
        self._source, self._target = source, target
        self._kinds = tables(records)
        self._site = source.site()
        self._theirs = self._counted(source.store)
        ours, marks = self._counted(target.store), target.marks()
        for piece, found in sorted(ours.items()):
            if not same(found, self._theirs.get(piece)) and not self._own(marks.get(piece), found):
                raise StoreError(f"{target.place} has rows of {_named(piece)} that are not from {source.place}")
        self.pieces = [piece for piece, found in sorted(self._theirs.items()) if not same(found, ours.get(piece))]
        self.total = sum(self._rows(piece) for piece in self.pieces)
        self.present = sum(map(self._rows, self._theirs)) - self.total

    def rows(self, tell: Callable[[int], None]) -> None:
        """Copy; `tell` how many rows there are in each part of it."""
        for table, day in self.pieces:
            mark = Mark(self._site, self._theirs[table, day])
            self._target.replace(table, day, _telling(self._source.read(table, day), tell), mark)

    def jobs(self) -> int:
        """Copy the jobs, and all else that a store needs; how many."""
        number = 0
        for some in self._source.jobs():
            self._target.put(some)
            number += len(some)
        self._findings()
        self._target.finish({table: self._source.store.horizon(table) for table in self._kinds})
        return number

    def _findings(self) -> None:
        """What was found, and what people wrote about it."""
        known, ours = self._source.store.findings.kept(0.0, math.inf), self._target.store.findings
        ours.keep(known)
        for one in known:
            if one.acknowledged is not None:
                ours.acknowledge(one.id, one.acknowledged, one.acknowledged_by or "", one.note or "")

    def compared(self) -> dict[str, tuple[int, bool]]:
        """Of every table that has rows, how many, and whether the target has the same."""
        found: dict[str, tuple[int, bool]] = {}
        ours = self._counted(self._target.store)
        for piece in sorted(self._theirs):
            number, alike = found.get(piece[0], (0, True))
            found[piece[0]] = (number + self._rows(piece), alike and same(self._theirs[piece], ours.get(piece)))
        jobs = self._source.weighed()
        return {**found, "job": (int(jobs[0] or 0), same(jobs, self._target.weighed()))}

    def _counted(self, store: Store) -> dict[Piece, Figures]:
        return {
            (name, day): x for name, kinds in self._kinds.items() for day, x in figures(store, name, kinds).items()
        }

    def _own(self, mark: Mark | None, found: Figures) -> bool:
        """Whether a day is as this source's copy left it."""
        return mark is not None and mark.source == self._site and same(mark.figures, found)

    def _rows(self, piece: Piece) -> int:
        return int(self._theirs[piece][0] or 0)


def _telling(rows: Iterator[list[Row]], tell: Callable[[int], None]) -> Iterator[list[Row]]:
    for some in rows:
        yield some
        tell(len(some))


def _named(piece: Piece) -> str:
    table, day = piece
    try:
        return f"{table} on {datetime.fromtimestamp(day * DAY, UTC):%Y-%m-%d}"
    except (OverflowError, ValueError, OSError):
        return f"{table} on a day that no calendar has"
