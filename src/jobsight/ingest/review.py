"""A second look at what was set aside: the quarantine, messages the tables would not take, segments of the log.

After a newer version, or a mended one, some of it may be acceptable. What is goes to the store like anything that
comes in; what is not stays where it is. Whatever is interrupted can be done again: the store keeps one of each.
"""

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from jobsight import files, frame
from jobsight.ingest.accept import Accepted, Refused, accept
from jobsight.ingest.assembly import part_of, unpacked
from jobsight.ingest.quarantine import TAKEN, Entry, Quarantine, entries
from jobsight.ship.part import Part, join

# What is handed over at a time.
MESSAGES = 2000
BYTES = 4 * 2**20

REFUSED = "refused.jsonl"
# Of such a file, bytes: it had no bound.
MOST = 256 * 2**20
FAILED = ".failed"

HandIn = Callable[[list[bytes]], object]


class Found(NamedTuple):
    """What came of it."""

    accepted: int
    left: int


def review(path: str, hand_in: HandIn) -> Found:
    """All that was set aside in the folder of a store. `hand_in` makes messages durable, or raises."""
    quarantine = Quarantine(os.path.join(path, "quarantine"))
    _absorb(os.path.join(path, REFUSED), quarantine)
    log = os.path.join(path, "log")
    segments = [os.path.join(log, name) for name in sorted(os.listdir(log))] if os.path.isdir(log) else []
    accepted = sum(_segment(file, quarantine, hand_in) for file in segments if file.endswith(FAILED))
    accepted += _quarantine(quarantine, hand_in)
    return Found(accepted, quarantine.held())


def _absorb(refused: str, quarantine: Quarantine) -> None:
    """Stores of earlier versions wrote what their tables would not take into a file of its own."""
    if os.path.exists(refused) and not os.path.exists(refused + TAKEN):
        # Out of use first: somebody may add to one of that name meanwhile.
        os.rename(refused, refused + TAKEN)
    lines = files.read_at(refused + TAKEN, 0, MOST).splitlines()
    if lines:
        quarantine.keep([Refused(line, "$", "the tables would not take it") for line in lines])
        os.unlink(refused + TAKEN)


def _segment(file: str, quarantine: Quarantine, hand_in: HandIn) -> int:
    """A segment that could not be digested; how many of its messages were acceptable. A damaged one stays."""
    data = files.read_at(file, 0, os.path.getsize(file))
    payloads = list(frame.unpack(data))
    found = [accept(line) for payload, _ in payloads for line in payload.split(b"\n") if line]
    good = [one.line for one in found if isinstance(one, Accepted)]
    _hand_in_all(good, hand_in)
    if not payloads or payloads[-1][1] < len(data):
        return len(good)
    if bad := [one for one in found if isinstance(one, Refused)]:
        quarantine.keep(bad)
    os.unlink(file)
    return len(good)


def _quarantine(quarantine: Quarantine, hand_in: HandIn) -> int:
    taken = {file: list(entries(file)) for file in quarantine.take()}
    left = dict(taken)
    try:
        held = [entry for found in taken.values() for entry in found]
        joined = _joined(held)
        good = {number: line for number, entry in enumerate(held) if (line := _acceptable(entry, joined))}
        # Several parts are one message.
        lines = dict.fromkeys(good.values())
        _hand_in_all(lines, hand_in)
        numbers = iter(range(len(held)))
        left = {file: [entry for entry in found if next(numbers) not in good] for file, found in taken.items()}
    finally:
        for file, some in left.items():
            quarantine.give_back(file, some)
    return len(lines)


def _joined(held: Iterable[Entry]) -> dict[tuple[int, int], bytes]:
    """Messages whose parts are all here."""
    sets: dict[tuple[int, int], list[Part]] = {}
    for entry in held:
        if entry.message and (part := part_of(entry.message)):
            sets.setdefault(part.whole, []).append(part)
    found = {}
    for key, parts in sets.items():
        if packed := join(parts):
            try:
                found[key] = unpacked(packed)
            except ValueError:
                continue
    return found


def _acceptable(entry: Entry, joined: dict[tuple[int, int], bytes]) -> bytes | None:
    if entry.message is None:
        return None
    part = part_of(entry.message)
    message = entry.message if part is None else joined.get(part.whole)
    found = accept(message) if message else None
    return found.line if isinstance(found, Accepted) else None


def _hand_in_all(lines: Iterable[bytes], hand_in: HandIn) -> None:
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if len(batch) >= MESSAGES or size >= BYTES:
            hand_in(batch)
            batch, size = [], 0
    if batch:
        hand_in(batch)
