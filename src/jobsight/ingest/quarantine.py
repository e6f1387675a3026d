"""Where refused messages go: files of a day, with path and reason. Bounded: the oldest go first, and are counted.

Several processes may write here: a server, and `jobsight load` beside it. `review` looks at it all again.
"""

import base64
import binascii
import fcntl
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from jobsight import files
from jobsight.ingest.accept import Refused
from jobsight.schema.wire import instant

BOUND = 64 * 2**20
# What is kept of one message. Longer ones can be recognised, and not be taken in later.
LONGEST = 4 * 2**20
# The bound is made of so many files, so that what must go is not everything.
FILES = 8
COUNT = "discarded"
# While a file is being reviewed nobody adds to it.
TAKEN = ".taken"

NAME = re.compile(r"(\d{4}-\d\d-\d\d)(?:-(\d+))?\.jsonl")


class Entry(NamedTuple):
    """A refused message as it stands in a file."""

    text: bytes
    """The line of the file."""
    message: bytes | None
    """None if it is not all here."""


class Quarantine:
    """The refused messages of one server."""

    def __init__(self, path: str, bound: int = BOUND) -> None:
        self._path = path
        self._bound = bound
        self._lock = threading.Lock()
        self.count = 0
        self.discarded = 0
        """Thrown away by this process; `thrown_away` has all."""
        files.make_directory(path)

    def keep(self, refused: list[Refused]) -> None:
        """Write them down; the oldest go when there are too many."""
        now = time.time()
        with self._alone():
            for piece in self._pieces([line_of(item, now) for item in refused]):
                text = b"".join(piece)
                if self._make_room(len(text)):
                    files.append(self._newest(time.strftime("%Y-%m-%d", time.gmtime(now)), len(text)), text)
                else:
                    self._discard(len(piece))
            self.count += len(refused)

    def thrown_away(self) -> int:
        """How many were ever discarded to make room."""
        text = files.read_at(os.path.join(self._path, COUNT), 0, 32).strip()
        return int(text) if text.isdigit() else 0

    def held(self) -> int:
        """How many are here."""
        with self._alone():
            return sum(_lines(os.path.join(self._path, name)) for name in self._names())

    def take(self) -> list[str]:
        """Take all files out of use, to be reviewed; those too that an earlier review did not come to the end of."""
        with self._alone():
            for name in self._names():
                os.rename(os.path.join(self._path, name), os.path.join(self._path, name + TAKEN))
            taken = sorted((name for name in os.listdir(self._path) if name.endswith(TAKEN)), key=_order)
            return [os.path.join(self._path, name) for name in taken]

    def give_back(self, taken: str, left: list[Entry]) -> None:
        """What is left of a file; one from which nothing is left goes."""
        if not left:
            os.unlink(taken)
            return
        files.replace(taken, b"".join(entry.text for entry in left))
        with self._alone():
            place = taken.removesuffix(TAKEN)
            if os.path.exists(place):
                place = self._unused(os.path.basename(place)[:10])
            os.rename(taken, place)

    def _pieces(self, lines: list[bytes]) -> Iterator[list[bytes]]:
        """Lines that go to a file together."""
        piece: list[bytes] = []
        size = 0
        for line in lines:
            if piece and size + len(line) > self._bound // FILES:
                yield piece
                piece, size = [], 0
            piece.append(line)
            size += len(line)
        if piece:
            yield piece

    def _make_room(self, size: int) -> bool:
        """Make room by forgetting the oldest; False if there would not be enough even then."""
        if size > self._bound:
            return False
        sizes = {name: os.path.getsize(os.path.join(self._path, name)) for name in self._names()}
        total = size + sum(sizes.values())
        for name, held in sizes.items():
            if total <= self._bound:
                break
            path = os.path.join(self._path, name)
            count = _lines(path)
            os.unlink(path)
            self._discard(count)
            total -= held
        return True

    def _discard(self, count: int) -> None:
        if not self.discarded:
            print("jobsight: the quarantine is full; the oldest refused messages go", file=sys.stderr, flush=True)
        self.discarded += count
        # A full disk: then the count of this process is all there is.
        with suppress(OSError):
            files.replace(os.path.join(self._path, COUNT), b"%d\n" % (self.thrown_away() + count))

    def _newest(self, day: str, size: int) -> str:
        """The file to add to: the day's last, unless it is full."""
        names = [name for name in self._names() if name.startswith(day)]
        if names:
            path = os.path.join(self._path, names[-1])
            if os.path.getsize(path) + size <= self._bound // FILES:
                return path
        return self._unused(day)

    def _unused(self, day: str) -> str:
        """A name behind those of the day that are there."""
        held = [found for name in os.listdir(self._path) if (found := NAME.match(name)) and found[1] == day]
        number = max((int(found[2] or 1) for found in held), default=0) + 1
        return os.path.join(self._path, f"{day}.jsonl" if number == 1 else f"{day}-{number}.jsonl")

    def _names(self) -> list[str]:
        """The files, oldest first."""
        return sorted((name for name in os.listdir(self._path) if NAME.fullmatch(name)), key=_order)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Of all threads and processes."""
        with self._lock:
            folder = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(folder, fcntl.LOCK_EX)
                yield
            finally:
                os.close(folder)


def _lines(path: str) -> int:
    with open(path, "rb") as file:
        return sum(1 for _ in file)


def _order(name: str) -> tuple[str, int]:
    found = NAME.match(name)
    return (found[1], int(found[2] or 1)) if found else (name, 0)


def line_of(item: Refused, now: float) -> bytes:
    entry: dict[str, str | int] = {"time": instant(now), "path": item.path, "reason": item.reason}
    if len(item.line) > LONGEST:
        entry["length"] = len(item.line)
    try:
        entry["message"] = item.line[:LONGEST].decode()
    except UnicodeDecodeError:
        entry["base64"] = base64.b64encode(item.line[:LONGEST]).decode()
    return json.dumps(entry).encode() + b"\n"


def entries(path: str) -> Iterator[Entry]:
    """Those of one file. A line that is none of ours is one whose message is not there."""
    with open(path, "rb") as file:
        for text in file:
            yield Entry(text if text.endswith(b"\n") else text + b"\n", _message(text))


def _message(text: bytes) -> bytes | None:
    try:
        entry = json.loads(text)
        if "length" in entry:
            return None
        return base64.b64decode(entry["base64"]) if "base64" in entry else str(entry["message"]).encode()
    except (ValueError, KeyError, TypeError, binascii.Error):
        return None
