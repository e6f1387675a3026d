"""Messages that come from Kafka in parts, until they are whole.

Until then the brokers are not told that the first of the parts was read: whoever is killed meanwhile, they send them
all again. What stays incomplete for too long, or takes too much memory, is refused part by part: then it is in
quarantine, and if the rest comes later, so is that; `review` joins them.
"""

import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jobsight.ingest.accept import LARGEST, Refused
from jobsight.schema.wire import GZIP
from jobsight.ship.part import Part, join, parse

# Seconds without another part. Long: an agent that cannot reach its brokers goes on when it can.
HOLD = 1800.0
# Bytes, of all that is incomplete.
BOUND = 64 * 2**20
# What a held part costs besides its bytes.
OVERHEAD = 512
# How a part in quarantine begins.
MARK = b"part "

Partition = tuple[str, int]


class Record(NamedTuple):
    """One message of ours or a part of one, and where it stands."""

    topic: str
    partition: int
    offset: int
    value: bytes
    part: bytes | None = None

    @property
    def place(self) -> Partition:
        return self.topic, self.partition

    def placed(self, refused: Refused) -> Refused:
        """With its place in the reason."""
        where = f"{self.topic}, partition {self.partition}, offset {self.offset}"
        return Refused(refused.line, refused.path, f"{refused.reason} ({where})")


class Incomplete:
    """The parts of one message that are here."""

    def __init__(self) -> None:
        self.parts: dict[int, tuple[Record, Part]] = {}
        self.size = 0
        self.since = 0.0

    def add(self, record: Record, part: Part, now: float) -> None:
        known = self.parts.get(part.start)
        # Cut another way the longer one has more, and read again it stands where it stood first.
        if known is None or len(known[1].content) < len(part.content):
            self.size += len(part.content) - (len(known[1].content) if known else -OVERHEAD)
            self.parts[part.start] = (known[0] if known else record, part)
            # Not for one that is known: a sender that begins again and again would never be given up.
            self.since = now

    @property
    def first(self) -> int:
        return min(record.offset for record, _ in self.parts.values())

    def whole(self) -> bytes | None:
        parts = [part for _, part in self.parts.values()]
        if sum(len(part.content) for part in parts) < parts[0].length:
            return None
        return join(parts)

    def refusals(self) -> list[Refused]:
        parts = [part for _, part in self.parts.values()]
        had = sum(len(part.content) for part in parts)
        reason = f"parts of a message of which no more came: {had} of {parts[0].length} bytes"
        return [record.placed(Refused(kept(part), "$", reason)) for record, part in self.parts.values()]


class Assembly:
    """What is incomplete, of all partitions we read."""

    def __init__(self, hold: float = HOLD, bound: int = BOUND) -> None:
        self._hold = hold
        self._bound = bound
        self._sets: dict[tuple[Partition, tuple[int, int]], Incomplete] = {}
        self._seen: dict[Partition, int] = {}

    def take(self, record: Record, now: float) -> Record | Refused | None:
        """The message this completes, if it is one; None if more must come."""
        if record.part is None:
            return record
        try:
            part = parse(record.part, record.value)
        except ValueError as error:
            return record.placed(Refused(record.value, "$", str(error)))
        if part.length > LARGEST:
            return record.placed(Refused(kept(part), "$", f"parts of {part.length} bytes, more than {LARGEST}"))
        key = record.place, part.whole
        found = self._sets.setdefault(key, Incomplete())
        found.add(record, part, now)
        if (packed := found.whole()) is None:
            return None
        del self._sets[key]
        try:
            return record._replace(value=unpacked(packed))
        except ValueError as error:
            return record.placed(Refused(packed, "$", str(error)))

    def overdue(self, now: float) -> bool:
        """Whether something is given up by now."""
        return any(now - found.since > self._hold for found in self._sets.values())

    def given_up(self, now: float) -> list[Refused]:
        """What came too late or is too much: as many of the oldest as must go, and they are forgotten."""
        gone = [key for key, found in self._sets.items() if now - found.since > self._hold]
        total = sum(found.size for key, found in self._sets.items() if key not in gone)
        for key, found in sorted(self._sets.items(), key=lambda item: item[1].since):
            if total <= self._bound:
                break
            if key not in gone:
                gone.append(key)
                total -= found.size
        return [refused for key in gone for refused in self._sets.pop(key).refusals()]

    def reached(self, records: Sequence[Record]) -> dict[Partition, int]:
        """How far the brokers may be told we are, now that these are stored: not past what is incomplete."""
        self._seen.update({record.place: record.offset + 1 for record in records})
        firsts: dict[Partition, int] = {}
        for (place, _), found in self._sets.items():
            firsts[place] = min(found.first, firsts.get(place, found.first))
        told = {place: min(seen, firsts.get(place, seen)) for place, seen in self._seen.items()}
        self._seen = {place: seen for place, seen in self._seen.items() if place in firsts}
        return told

    def confine(self, ours: Iterable[Partition]) -> None:
        """Forget what is of other partitions: whoever has them now reads it all again."""
        if self._sets:
            mine = set(ours)
            self._sets = {key: found for key, found in self._sets.items() if key[0] in mine}
            self._seen = {place: seen for place, seen in self._seen.items() if place in mine}

    def renew(self, now: float) -> None:
        """Let everything incomplete have all its time again."""
        for found in self._sets.values():
            found.since = now


def unpacked(packed: bytes) -> bytes:
    """A message out of its packed form. ValueError if it is none, or larger than a message may be."""
    unpacker = zlib.decompressobj(GZIP)
    try:
        found = unpacker.decompress(packed, LARGEST + 1)
    except zlib.error as error:
        raise ValueError(f"parts of what is not gzip: {error}") from None
    if len(found) > LARGEST:
        raise ValueError(f"parts of more than {LARGEST} bytes")
    if not unpacker.eof:
        raise ValueError("parts of gzip that ends in the middle")
    return found


def kept(part: Part) -> bytes:
    """A part as it stands in quarantine."""
    return MARK + part.header() + b"\n" + part.content


def part_of(line: bytes) -> Part | None:
    """A part that stood in quarantine; None if it is none."""
    head, _, content = line.partition(b"\n")
    try:
        return parse(head.removeprefix(MARK), content) if head.startswith(MARK) else None
    except ValueError:
        return None
