"""One entry of a Lustre target's job statistics, read line by line; see `lustrestats` for the file.

What an entry says is a row of values, and what they are stands beside them once for all entries alike: there are tens
of thousands, and a server has other work.
"""

import re
from typing import Any, NamedTuple

from jobsight.collector import ParseError
from jobsight.formats.lustreid import decoded

HEADING = b"job_stats:"
# The value of `- job_id:` begins so many bytes after the colon; further blanks are its own.
MARGIN = 10
BLANK = b" " * MARGIN
# What a message can hold.
LARGEST = 2**62
# Times before 2001 are times since boot.
CREDIBLE = 1e9

LINE = re.compile(
    rb"\s*([A-Za-z_]\w*)\s*:\s*\{\s*samples:\s*(\d{1,20}),\s*unit:\s*(\w+)"
    rb"(?:,\s*min:\s*(\d+),\s*max:\s*(\d+),\s*sum:\s*(\d{1,20})(?:,\s*sumsq:\s*(\d+))?)?"
    rb"(?:,\s*hist:\s*\{([^{}]*)\})?\s*\}\s*"
)
TIME = re.compile(rb"\s*(snapshot_time|start_time|elapsed_time)\s*:\s*(\d{1,12}(?:\.\d{1,9})?)(?:\s+\w+\.\w+)?\s*")
# Of a line that has more, or has it in another order.
_LOOSE = re.compile(rb"\s*([A-Za-z_]\w*)\s*:\s*\{(.*)\}\s*", re.DOTALL)
_HIST = re.compile(rb"\bhist:\s*\{([^{}]*)\}")
_PART = re.compile(rb"(\w+):\s*(\w+)")
_BUCKET = re.compile(rb"(\d{1,4}[KMGTPE]?):\s*(\d{1,20})")


class Operation(NamedTuple):
    """How often something was done, and the sum of what its unit says: bytes, microseconds."""

    samples: int
    unit: str
    total: int | None = None
    sizes: str | None = None
    """How often by size, up to and including: `4K=2,1M=8`."""


class Column(NamedTuple):
    """What one value of an entry is."""

    operation: str
    part: str
    """`samples`, `total` or `sizes`."""
    unit: str


Columns = tuple[Column, ...]


class Entry(NamedTuple):
    """One entry, whole."""

    raw: bytes
    """The identifier, as the client gave it."""
    snapshot: float | None
    start: float | None
    columns: Columns
    """Entries that are alike share one."""
    values: list[Any]
    """In the columns' order."""
    bad: int = 0
    """Lines that did not read."""

    @property
    def operations(self) -> dict[str, Operation]:
        """The same by name."""
        found: dict[str, Operation] = {}
        for (name, part, unit), value in zip(self.columns, self.values, strict=True):
            before = found.get(name, Operation(0, unit))
            found[name] = before._replace(**{part: value})
        return found


def columns_of(operations: dict[str, Operation]) -> Columns:
    """What the values of some operations are; numbers first, then sizes."""
    numbers = [
        Column(name, part, one.unit)
        for name, one in operations.items()
        for part in (("samples",) if one.total is None else ("samples", "total"))
    ]
    sizes = [Column(name, "sizes", one.unit) for name, one in operations.items() if one.sizes is not None]
    return (*numbers, *sizes)


def identifier(text: bytes) -> bytes:
    """The identifier of an entry as it was cut: all after `- job_id:`."""
    end = text.find(b"\n")
    line = text if end < 0 else text[:end]
    if line[:MARGIN] == BLANK:
        return decoded(line[MARGIN:])
    return decoded(line.lstrip())


def parse(text: bytes, summed: frozenset[str] | None = None) -> Entry:
    """One entry as it was cut. Lines that do not read are counted; ParseError if none of an operation does. `summed`
    are the operations of which the sum is wanted; all if not said.
    """
    operations: dict[str, Operation] = {}
    times: dict[bytes, float] = {}
    bad = 0
    for line in text.split(b"\n")[1:]:
        if (made := _operation(line)) is not None:
            name, one = made
            operations[name] = one if summed is None or name in summed else one._replace(total=None)
        elif (match := TIME.fullmatch(line)) is not None:
            times[match[1]] = float(match[2])
        elif line.strip() and line.strip() != HEADING:
            bad += 1
    if not operations:
        raise ParseError(f"job_stats: expected an entry with operations, got {text[:80]!r}")
    columns = columns_of(operations)
    values = [getattr(operations[column.operation], column.part) for column in columns]
    snapshot, start = (since_1970(times.get(name)) for name in (b"snapshot_time", b"start_time"))
    return Entry(identifier(text), snapshot, start, columns, values, bad)


def _operation(line: bytes) -> tuple[str, Operation] | None:
    """A line of an operation, however it is printed; None if it is none."""
    match = LINE.fullmatch(line)
    if match is None:
        return _loose(line)
    name, samples, unit, _, _, total, _, sizes = match.groups()
    made = Operation(
        int(samples),
        unit.decode(),
        None if total is None else int(total),
        None if sizes is None else _sizes(sizes),
    )
    return None if max(made.samples, made.total or 0) > LARGEST else (name.decode(), made)


def _loose(line: bytes) -> tuple[str, Operation] | None:
    match = _LOOSE.fullmatch(line)
    if match is None:
        return None
    sizes = _HIST.search(match[2])
    parts = dict(_PART.findall(_HIST.sub(b"", match[2])))
    samples, unit, total = parts.get(b"samples", b""), parts.get(b"unit", b""), parts.get(b"sum")
    for number in (samples, b"0" if total is None else total):
        if not number.isdigit() or len(number) > 20 or int(number) > LARGEST:
            return None
    made = Operation(
        int(samples), unit.decode(), None if total is None else int(total), _sizes(sizes[1]) if sizes else None
    )
    return match[1].decode(), made


def _sizes(text: bytes) -> str:
    return ",".join(f"{label.decode()}={count.decode()}" for label, count in _BUCKET.findall(text))


def since_1970(seconds: float | None) -> float | None:
    """A time that is one; of one since boot nobody here knows the date."""
    return seconds if seconds is not None and seconds >= CREDIBLE else None
