"""Checks one message: typed by its collector's record, whole or not at all. Pure.

What passes here loads without fail: types, lengths and ranges are those of the tables, and what is kept is written
anew from what was understood, so that nobody downstream can understand it otherwise.
"""

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from jobsight import catalogue
from jobsight.schema.message import SCHEMA, Status
from jobsight.schema.record import fields_of
from jobsight.schema.units import base
from jobsight.schema.wire import instant

LARGEST = 32 * 2**20

Word = Annotated[str, Meta(min_length=1, max_length=255)]
# Within what a table's 64 bits hold even when a few are added up.
Whole = Annotated[int, Meta(ge=-(2**62), le=2**62)]
Real = Annotated[float, Meta(ge=-1e18, le=1e18)]

# The first second of the year 10000.
LAST_TIME = 253_402_300_800


class Envelope(Struct, forbid_unknown_fields=True):
    """A message as it comes, its rows not yet looked at."""

    schema: int
    cluster: Word
    node: Word
    boot: Word
    collector: Word
    time: datetime
    status: Status
    rows: Raw
    uptime: Real = 0.0
    every: Real | None = None
    seconds: Real = 0.0
    error: str | None = None
    missing: dict[str, str] = {}


class Accepted(Struct, frozen=True):
    """A message that is what its record says."""

    line: bytes
    cluster: str
    node: str
    boot: str
    collector: str
    time: float
    uptime: float
    every: float | None
    status: Status
    seconds: float
    error: str | None
    missing: dict[str, str]
    count: int
    columns: dict[str, list[Any]]

    @property
    def identity(self) -> tuple[str, str, str, str, float]:
        return self.cluster, self.node, self.boot, self.collector, self.time


class Refused(Struct, frozen=True):
    """A message that is not, where, and why."""

    line: bytes
    path: str
    reason: str


_envelope = msgspec.json.Decoder(Envelope)


def accept(line: bytes) -> Accepted | Refused:
    """One line of a body."""
    if len(line) > LARGEST:
        return Refused(line[:1024], "$", f"{len(line)} bytes, more than {LARGEST}")
    try:
        envelope = _envelope.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _refuse(line, "$", error)
    if envelope.schema != SCHEMA:
        return Refused(line, "$.schema", f"schema {envelope.schema}, this server knows {SCHEMA}")
    if envelope.time.tzinfo is None:
        return Refused(line, "$.time", "a time without an offset")
    # An offset may carry a date out of the years that can be written.
    if not 0 <= envelope.time.timestamp() < LAST_TIME:
        return Refused(line, "$.time", "a time outside the years 1970 to 9999")
    if envelope.collector not in catalogue.collector_names():
        return Refused(line, "$.collector", f"no collector {envelope.collector!r}")
    try:
        columns = _rows(envelope.collector).decode(envelope.rows)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _refuse(line, "$.rows", error)
    given = {name: value for name in columns.__struct_fields__ if (value := getattr(columns, name)) is not None}
    return _check(line, envelope, given)


def recall(line: bytes, wanted: Mapping[str, tuple[str, ...]] | None = None) -> Accepted | Refused:
    """A message as `accept` wrote it, in a third of the time: read, not judged once more. `wanted` are the columns
    somebody will look at, by collector; the others are passed over.
    """
    try:
        envelope = _envelope.decode(line)
        names = None if wanted is None else wanted.get(envelope.collector, ())
        columns = _plain_rows(envelope.collector, names).decode(envelope.rows)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
        # Written by a program that knew more, or not by us.
        return accept(line)
    given = {name: value for name in columns.__struct_fields__ if (value := getattr(columns, name)) is not None}
    count = len(next(iter(given.values()), ()))
    return _accepted(line, envelope, round(envelope.time.timestamp(), 6), given, count)


def _check(line: bytes, envelope: Envelope, given: dict[str, list[Any]]) -> Accepted | Refused:
    lengths = {name: len(values) for name, values in given.items()}
    count = max(lengths.values(), default=0)
    if uneven := [name for name, length in lengths.items() if length != count]:
        return Refused(line, f"$.rows.{uneven[0]}", f"{lengths[uneven[0]]} values where others have {count}")
    if given and (lacking := [name for name in _needed(envelope.collector) if name not in given]):
        return Refused(line, f"$.rows.{lacking[0]}", "this column is needed")
    time = round(envelope.time.timestamp(), 6)
    plain = {name: getattr(envelope, name) for name in envelope.__struct_fields__}
    return _accepted(
        msgspec.json.encode({**plain, "time": instant(time), "rows": given}), envelope, time, given, count
    )


def _accepted(line: bytes, envelope: Envelope, time: float, columns: dict[str, list[Any]], count: int) -> Accepted:
    return Accepted(
        line=line,
        cluster=envelope.cluster,
        node=envelope.node,
        boot=envelope.boot,
        collector=envelope.collector,
        time=time,
        uptime=envelope.uptime,
        every=envelope.every,
        status=envelope.status,
        seconds=envelope.seconds,
        error=envelope.error,
        missing=envelope.missing,
        count=count,
        columns=columns,
    )


@cache
def _needed(collector: str) -> list[str]:
    """The columns that rows of one record cannot lack."""
    return [field.name for field in fields_of(catalogue.collector(collector).record) if not field.optional]


@cache
def _rows(collector: str) -> "msgspec.json.Decoder[Any]":
    """A decoder for the columns of one record."""
    return _decoder(collector, {int: Whole, float: Real}, strict=True)


@cache
def _plain_rows(collector: str, names: tuple[str, ...] | None) -> "msgspec.json.Decoder[Any]":
    """The same for what has passed: of the right types, looked at no further. One column tells how many rows."""
    return _decoder(collector, {}, {*names, *_needed(collector)[:1]} if names is not None else None)


def _decoder(
    collector: str, kinds: dict[type, Any], names: Collection[str] | None = None, *, strict: bool = False
) -> "msgspec.json.Decoder[Any]":
    """Of the columns of these names, or all."""
    columns = []
    for field in fields_of(catalogue.collector(collector).record):
        # Without one that is never missing nobody could count rows.
        if names is not None and _needed(collector) and field.name not in names:
            continue
        kind: Any = kinds.get(base(field.unit), base(field.unit))
        columns.append((field.name, list[kind | None] | None if field.optional else list[kind] | None, None))
    return msgspec.json.Decoder(msgspec.defstruct("Rows", columns, forbid_unknown_fields=strict))


def _refuse(line: bytes, within: str, error: Exception) -> Refused:
    text = str(error)
    found = re.search(r" - at `\$?([^`]*)`$", text)
    path = within + (found[1] if found else "")
    return Refused(line, path, text[: found.start()] if found else text)
