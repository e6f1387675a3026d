"""Messages on disk until a destination has them: bounded in bytes and age, oldest out first.

Segments `00000012.spool` hold frames of length, checksum and payload. Appending is one write; what is acknowledged
moves a mark, and a segment whose frames are all acknowledged is unlinked. After kill -9 the last frame may be torn:
it is dropped and counted. The mark may be older than the truth: then some messages are sent twice, which the
receiver does not mind.
"""

import os
from contextlib import suppress
from errno import EDQUOT, ENOSPC
from typing import NamedTuple

from jobsight import files, frame

SEGMENT = 4 * 2**20
SUFFIX = ".spool"


class Frame(NamedTuple):
    """One message waiting: its payload and where the spool stands after it."""

    payload: bytes
    segment: int
    end: int


class Spool:
    """The messages of one destination, in order."""

    def __init__(self, path: str, size: int, age: float, now: float) -> None:
        self._path = path
        self._size = size
        self._age = age
        self.dropped = 0
        files.make_directory(path)
        self._sizes = {number: os.path.getsize(self._file(number)) for number in self._numbers()}
        number, position = self._read_mark()
        # Never append behind a torn frame, never use a number again that the mark may speak of.
        self._last = max([number, *self._sizes]) + 1
        self._sizes[self._last] = 0
        known = position <= self._sizes.get(number, -1)
        self._first, self._offset = (number, position) if known else (min(self._sizes), 0)
        self._count_torn()
        self._expire(now)

    @property
    def waiting(self) -> int:
        """Bytes not yet acknowledged."""
        return sum(self._sizes.values()) - self._offset

    def append(self, payload: bytes, now: float) -> None:
        """Take one message. Makes room by dropping the oldest; OSError if even then the disk is full."""
        packed = frame.pack(payload)
        self._expire(now)
        while self.waiting + len(packed) > self._size and self._drop_segment():
            pass
        try:
            files.append(self._file(self._last), packed)
        except OSError as error:
            if error.errno not in (ENOSPC, EDQUOT) or not self._drop_segment():
                raise
            files.append(self._file(self._last), packed)
        self._sizes[self._last] += len(packed)
        if self._sizes[self._last] >= min(SEGMENT, max(1, self._size // 8)):
            self._last += 1
            self._sizes[self._last] = 0

    def oldest(self, limit: int) -> list[Frame]:
        """The oldest messages, at least one if there is any, up to about `limit` bytes."""
        found: list[Frame] = []
        total = 0
        for number in sorted(self._sizes):
            start = self._offset if number == self._first else 0
            for one in frames(self._load(number, start, limit + frame.HEAD.size), number, start):
                if found and total + len(one.payload) > limit:
                    return found
                found.append(one)
                total += len(one.payload)
            # The piece that was loaded may end before the segment does: what follows must not be passed over.
            if total >= limit or (found and found[-1].segment == number and found[-1].end < self._sizes[number]):
                break
        return found

    def acknowledge(self, last: Frame) -> None:
        """Forget everything up to and with this message."""
        if last.segment not in self._sizes:
            return  # dropped to make room while it was being sent
        for number in [n for n in self._sizes if n < last.segment]:
            self._unlink(number)
        self._first, self._offset = last.segment, last.end
        if last.segment != self._last and last.end >= self._sizes.get(last.segment, 0):
            self._unlink(last.segment)
            self._first, self._offset = min(self._sizes), 0
        # A mark that cannot be written stays as it was: then some are sent twice, and none is lost.
        with suppress(OSError):
            files.replace(os.path.join(self._path, "mark"), f"{self._first} {self._offset}\n".encode())

    def _expire(self, now: float) -> None:
        """Drop whole segments whose last message is too old; one that is being written has time."""
        for number in sorted(self._sizes)[:-1]:
            if os.path.getmtime(self._file(number)) > now - self._age or not self._drop_segment():
                return

    def _drop_segment(self) -> bool:
        """Drop the oldest segment; False if the one being written is all there is."""
        number = min(self._sizes)
        if number == self._last:
            return False
        start = self._offset if number == self._first else 0
        self.dropped += len(frames(self._load(number, start, self._sizes[number]), number, start))
        self._unlink(number)
        self._first, self._offset = min(self._sizes), 0
        return True

    def _count_torn(self) -> None:
        for number in sorted(self._sizes)[:-1]:
            start = self._offset if number == self._first else 0
            held = frames(self._load(number, start, self._sizes[number]), number, start)
            end = held[-1].end if held else start
            if end < self._sizes[number]:
                self.dropped += 1
                os.truncate(self._file(number), end)
                self._sizes[number] = end
            if end == start:
                self._unlink(number)
        if self._first not in self._sizes:
            self._first, self._offset = min(self._sizes), 0

    def _load(self, number: int, start: int, size: int) -> bytes:
        data = files.read_at(self._file(number), start, size)
        # A message larger than what was asked for must still come out whole.
        if (need := frame.size(data)) > len(data):
            data = files.read_at(self._file(number), start, min(need, self._sizes[number]))
        return data

    def _unlink(self, number: int) -> None:
        self._sizes.pop(number, None)
        with suppress(FileNotFoundError):
            os.unlink(self._file(number))

    def _numbers(self) -> list[int]:
        names = (name.removesuffix(SUFFIX) for name in os.listdir(self._path) if name.endswith(SUFFIX))
        return sorted(int(name) for name in names if name.isdecimal())

    def _read_mark(self) -> tuple[int, int]:
        words = files.read_at(os.path.join(self._path, "mark"), 0, 64).split()
        if len(words) != 2 or not all(word.isdigit() for word in words):
            return 0, 0
        return int(words[0]), int(words[1])

    def _file(self, number: int) -> str:
        return os.path.join(self._path, f"{number:08d}{SUFFIX}")


def frames(data: bytes, segment: int, start: int) -> list[Frame]:
    """The whole frames of a piece of a segment that begins at `start`."""
    return [Frame(payload, segment, start + end) for payload, end in frame.unpack(data)]
