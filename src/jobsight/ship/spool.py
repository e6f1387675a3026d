"""Messages on disk until a destination has them: bounded in bytes and age, oldest out first.

Segments `00000012-1794733024.spool`, named by number and beginning, hold frames of length, checksum and payload.
Appending is one write; what is acknowledged moves a mark, and a segment whose frames are all acknowledged is
unlinked. After kill -9 or a power cut the last frame may be torn: it is dropped and counted. The mark may be older
than the truth: then some messages are sent twice, which the receiver does not mind.
"""

import os
from contextlib import suppress
from errno import EDQUOT, EFBIG, ENOSPC
from typing import NamedTuple

from jobsight import files, frame

SEGMENT = 4 * 2**20
SUFFIX = ".spool"
# A segment is dropped whole, so it must not span too long a time; an eighth of the bounds at most.
SPAN = 3600.0
PART = 8


class Frame(NamedTuple):
    """One message waiting: its payload and where the spool stands after it."""

    payload: bytes
    segment: int
    end: int


class Segment:
    """One file of it."""

    __slots__ = ("began", "count", "path", "size")

    def __init__(self, path: str, size: int, began: float) -> None:
        self.path = path
        self.size = size
        self.began = began
        self.count = 0
        """Messages in it that wait."""


class Mark(NamedTuple):
    """Where the spool stands: all up to there is acknowledged."""

    segment: int = 0
    offset: int = 0
    since: float = 0.0
    """Nothing that waits came earlier."""


class Backlog(NamedTuple):
    """What waits in a spool, and what it has lost in its life."""

    messages: int
    size: int
    since: float | None
    """When the oldest came, at the earliest; None if none waits."""
    dropped: int
    torn: int
    """How many of the dropped were cut off by a kill or a power cut."""


class Spool:
    """The messages of one destination, in order."""

    def __init__(self, path: str, size: int, age: float, now: float) -> None:
        self._path = path
        self._size = size
        self._age = age
        # In this life.
        self.dropped = 0
        self.torn = 0
        files.make_directory(path)
        self._before = read_lost(path)
        self._segments = found_in(path)
        mark = read_mark(path)
        # Never append behind a torn frame, never use a number again that the mark may speak of.
        self._begin(max([mark.segment, *self._segments]) + 1, now)
        known = mark.segment in self._segments and mark.offset <= self._segments[mark.segment].size
        self._first, self._offset = (mark.segment, mark.offset) if known else (min(self._segments), 0)
        self._count_torn()
        began = max(self._segments[self._first].began, mark.since if known else 0.0)
        self._since = began if self.messages else None
        self._expire(now)
        self._remember_lost()

    @property
    def waiting(self) -> int:
        """Bytes not yet acknowledged."""
        return sum(segment.size for segment in self._segments.values()) - self._offset

    @property
    def messages(self) -> int:
        """Those not yet acknowledged."""
        return sum(segment.count for segment in self._segments.values())

    def backlog(self) -> Backlog:
        dropped, torn = self._before
        return Backlog(self.messages, self.waiting, self._since, dropped + self.dropped, torn + self.torn)

    def append(self, payload: bytes, now: float) -> None:
        """Take one message. Makes room by dropping the oldest; OSError if even then the disk is full, or if it is
        larger than the whole spool may be.
        """
        packed = frame.pack(payload)
        if len(packed) > self._size:
            raise OSError(EFBIG, f"a message of {len(payload)} bytes is larger than the spool may be")
        self._turn(now)
        self._expire(now)
        while self.waiting + len(packed) > self._size and (self._drop_segment() or self._turn(now, at_once=True)):
            pass
        try:
            files.append(self._segments[self._last].path, packed)
        except OSError as error:
            if error.errno not in (ENOSPC, EDQUOT) or not (self._drop_segment() or self._spare(now)):
                raise
            files.append(self._segments[self._last].path, packed)
        if self._since is None:
            self._since = now
        segment = self._segments[self._last]
        segment.size += len(packed)
        segment.count += 1

    def oldest(self, limit: int) -> list[Frame]:
        """The oldest messages, at least one if there is any, up to about `limit` bytes."""
        found: list[Frame] = []
        total = 0
        for number in sorted(self._segments):
            start = self._offset if number == self._first else 0
            for one in frames(self._load(number, start, limit + frame.HEAD.size), number, start):
                if found and total + len(one.payload) > limit:
                    return found
                found.append(one)
                total += len(one.payload)
            # The piece that was loaded may end before the segment does: what follows must not be passed over.
            more = bool(found) and found[-1].segment == number and found[-1].end < self._segments[number].size
            if total >= limit or more:
                break
        return found

    def acknowledge(self, last: Frame) -> None:
        """Forget everything up to and with this message."""
        if last.segment not in self._segments:
            return  # dropped to make room while it was being sent
        for number in [n for n in self._segments if n < last.segment]:
            self._unlink(number)
        start = self._offset if last.segment == self._first else 0
        segment = self._segments[last.segment]
        segment.count -= frame.count(files.read_at(segment.path, start, last.end - start))
        self._first, self._offset = last.segment, last.end
        if last.segment != self._last and last.end >= segment.size:
            self._unlink(last.segment)
            self._first, self._offset = min(self._segments), 0
        self._age_again()
        # A mark that cannot be written stays as it was: then some are sent twice, and none is lost.
        with suppress(OSError):
            text = f"{self._first} {self._offset} {int(self._since or 0)}\n"
            files.replace(os.path.join(self._path, "mark"), text.encode())

    def _begin(self, number: int, now: float) -> None:
        self._last = number
        path = os.path.join(self._path, f"{number:08d}-{max(0, round(now))}{SUFFIX}")
        self._segments[number] = Segment(path, 0, now)

    def _turn(self, now: float, *, at_once: bool = False) -> bool:
        """Begin another segment if this one is long enough, in bytes or in time; whether it was."""
        segment = self._segments[self._last]
        if not segment.size:
            segment.began = now
            return False
        full = segment.size >= min(SEGMENT, max(1, self._size // PART))
        old = abs(now - segment.began) >= min(SPAN, self._age / PART)
        if full or old or at_once:
            self._begin(self._last + 1, now)
        return full or old or at_once

    def _expire(self, now: float) -> None:
        """Drop whole segments whose last message is too old; one that is being written has time."""
        for number in sorted(self._segments)[:-1]:
            if os.path.getmtime(self._segments[number].path) > now - self._age or not self._drop_segment():
                return

    def _drop_segment(self) -> bool:
        """Drop the oldest segment; False if the one being written is all there is."""
        number = min(self._segments)
        if number == self._last:
            return False
        self.dropped += self._segments[number].count
        self._unlink(number)
        self._first, self._offset = min(self._segments), 0
        self._age_again()
        self._remember_lost()
        return True

    def _spare(self, now: float) -> bool:
        """Give up the segment being written if nothing in it waits any more; whether there was one."""
        if self.messages or not self._turn(now, at_once=True):
            return False
        return self._drop_segment()

    def _age_again(self) -> None:
        """The oldest is another now. It is in the first segment, so it came after that began."""
        if not self.messages:
            self._since = None
        elif self._since is not None:
            self._since = max(self._since, self._segments[self._first].began)

    def _count_torn(self) -> None:
        for number in sorted(self._segments)[:-1]:
            segment = self._segments[number]
            start = self._offset if number == self._first else 0
            held = frames(self._load(number, start, segment.size), number, start)
            segment.count = len(held)
            end = held[-1].end if held else start
            if end < segment.size:
                self.dropped += 1
                self.torn += 1
                os.truncate(segment.path, end)
                segment.size = end
            if end == start:
                self._unlink(number)
        if self._first not in self._segments:
            self._first, self._offset = min(self._segments), 0

    def _load(self, number: int, start: int, size: int) -> bytes:
        segment = self._segments[number]
        data = files.read_at(segment.path, start, size)
        # A message larger than what was asked for must still come out whole.
        if (need := frame.size(data)) > len(data):
            data = files.read_at(segment.path, start, min(need, segment.size))
        return data

    def _unlink(self, number: int) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._segments.pop(number).path)

    def _remember_lost(self) -> None:
        """For people who ask while another process has the spool. It is only told, so it may fail."""
        told = self.backlog()
        if (told.dropped, told.torn) != read_lost(self._path):
            with suppress(OSError):
                files.replace(os.path.join(self._path, "lost"), f"{told.dropped} {told.torn}\n".encode())


def frames(data: bytes, segment: int, start: int) -> list[Frame]:
    """The whole frames of a piece of a segment that begins at `start`."""
    return [Frame(payload, segment, start + end) for payload, end in frame.unpack(data)]


def found_in(path: str) -> dict[int, Segment]:
    """The segments in a folder."""
    found = {}
    for name in os.listdir(path):
        number, _, began = name.removesuffix(SUFFIX).partition("-")
        if name.endswith(SUFFIX) and number.isdecimal():
            file = os.path.join(path, name)
            state = os.stat(file)
            # Earlier versions did not say when one began: not after its last change.
            found[int(number)] = Segment(file, state.st_size, float(began) if began.isdecimal() else state.st_mtime)
    return found


def read_mark(path: str) -> Mark:
    file = os.path.join(path, "mark")
    numbers = _numbers(file)
    if len(numbers) < 2:
        return Mark()
    segment, offset, *since = numbers
    if not since:
        return Mark(segment, offset)
    # None means that none waited when it was written.
    return Mark(segment, offset, float(since[0]) or os.path.getmtime(file))


def read_lost(path: str) -> tuple[int, int]:
    """How many were dropped, and how many of these were torn, since there is a spool."""
    numbers = _numbers(os.path.join(path, "lost"))
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (0, 0)


def _numbers(file: str) -> list[int]:
    """What a small file of ours says; nothing if a power cut left something else."""
    words = files.read_at(file, 0, 64).split()
    return [int(word) for word in words] if all(word.isdigit() for word in words) else []
