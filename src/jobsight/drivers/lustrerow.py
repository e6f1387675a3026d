"""Which column of a record has what of an operation.

Of an operation its count, of reads and writes also the bytes and their sizes, and the time the server took where the
record has a column for it. A server that does not count reads as such counts them as samples of their bytes.
"""

from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

from jobsight.formats.lustreentry import Columns, Entry
from jobsight.schema.record import fields_of

# SQL has `create` for itself.
RENAMED = {"creates": "create"}
SIZES, BYTES, TIME = "_sizes", "_bytes", "_time"
SECOND = 1e6
MOST_REMEMBERED = 1024


class Plan(NamedTuple):
    """How values of some columns become those of a record."""

    columns: Columns
    pick: Callable[[list[Any]], tuple[Any, ...]]
    times: tuple[int, ...]
    """Values that are microseconds."""
    others: tuple[tuple[str, int], ...]
    """Operations that have no column."""


class Layout:
    """Makes rows of a record: a head with what is said of the entry, then its operations."""

    def __init__(self, record: type[Any]) -> None:
        self._record = record
        names = [field.name for field in fields_of(record)]
        first = next(field.name for field in fields_of(record) if field.kind == "counter")
        self._names = names[names.index(first) :]
        self.summed = frozenset(
            name if name.endswith(BYTES) else _operation(name.removesuffix(TIME))
            for name in self._names
            if name.endswith((BYTES, TIME))
        )
        """Operations of which the record has the sum."""
        # By the identity of what entries share; kept with it, so that nobody else can get the same.
        self._plans: dict[int, Plan] = {}

    def row(self, head: tuple[Any, ...], entry: Entry) -> Any:
        """`head` is what stands before the operations."""
        plan = self._plans.get(id(entry.columns)) or self._remember(entry.columns)
        values = [*entry.values, None, None]
        for index in plan.times:
            # Nothing stays nothing, and is written quicker as a whole number.
            if values[index]:
                values[index] /= SECOND
        if plan.others:
            told = [f"{name}={values[index]}" for name, index in plan.others if values[index]]
            values[-1] = ",".join(told) or None
        return tuple.__new__(self._record, head + plan.pick(values))

    def _remember(self, columns: Columns) -> Plan:
        if len(self._plans) >= MOST_REMEMBERED:
            self._plans.clear()
        plan = self._plans[id(columns)] = planned(self._names, columns)
        return plan


def planned(names: list[str], columns: Columns) -> Plan:
    """Where each of the record's columns comes from. After an entry's values stand a missing one and `other`."""
    at = {(column.operation, column.part): index for index, column in enumerate(columns)}
    units = {column.operation: column.unit for column in columns}
    missing, other = len(columns), len(columns) + 1
    picked: list[int] = []
    for name in names:
        source = _source(name, units)
        found = other if name == "other" else missing if source is None else at.get(source, missing)
        picked.append(found)
    times = {index for name, index in zip(names, picked, strict=True) if name.endswith(TIME) and index != missing}
    known = {_operation(name) for name in names}
    others = tuple(
        (column.operation, index)
        for index, column in enumerate(columns)
        if column.part == "samples" and column.operation not in known
    )
    return Plan(columns, itemgetter(*picked), tuple(sorted(times)), others)


def _operation(name: str) -> str:
    return RENAMED.get(name, name)


def _source(name: str, units: dict[str, str]) -> tuple[str, str] | None:
    """Of which operation a column is, and which part of it."""
    if name.endswith(BYTES):
        # Some count reads of bytes and call them requests.
        return (name, "total") if units.get(name) == "bytes" else None
    if name.endswith(SIZES):
        return name.removesuffix(SIZES) + BYTES, "sizes"
    if name.endswith(TIME):
        operation = _operation(name.removesuffix(TIME))
        return (operation, "total") if units.get(operation) == "usecs" else None
    if name in ("read", "write") and name not in units:
        return name + BYTES, "samples"
    return _operation(name), "samples"
