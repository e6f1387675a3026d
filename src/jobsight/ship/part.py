"""Parts of a message that is too large for a broker: pieces of its packed form that say where they belong.

A part is a record with the header `part`: checksum and length of the whole, and the place where the part begins. All
parts of a message have its topic and its key, so they stand in one partition. How a whole is cut may change between
two tries: the places tell, and parts that overlap do no harm.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

HEADER = "part"
# A packed text ends in its own checksum and length. With them in it, the checksum of one that could not be packed
# smaller is always the same number.
TRAILER = 8


class Part(NamedTuple):
    """A piece of a whole."""

    checksum: int
    length: int
    start: int
    content: bytes

    @property
    def whole(self) -> tuple[int, int]:
        """What all parts of a whole have in common."""
        return self.checksum, self.length

    @property
    def end(self) -> int:
        return self.start + len(self.content)

    def header(self) -> bytes:
        return b"%08x %d %d" % (self.checksum, self.length, self.start)


def cut(whole: bytes, size: int) -> Iterator[Part]:
    """Parts of at most so many bytes, in order."""
    checksum = checksum_of(whole)
    for start in range(0, len(whole), size):
        yield Part(checksum, len(whole), start, whole[start : start + size])


def checksum_of(whole: bytes | bytearray) -> int:
    return zlib.crc32(memoryview(whole)[:-TRAILER])


def parse(header: bytes, content: bytes) -> Part:
    """ValueError if it is no part."""
    words = header.split(b" ")
    try:
        part = Part(int(words[0], 16), int(words[1]), int(words[2]), content)
    except (ValueError, IndexError):
        raise ValueError(f"expected a part's checksum, length and place, got {header[:60]!r}") from None
    if len(words) != 3 or part.start < 0 or not content or part.end > part.length:
        raise ValueError(f"expected a part within its whole, got {header[:60]!r} and {len(content)} bytes")
    return part


def join(parts: Iterable[Part]) -> bytes | None:
    """The whole, if its parts cover it and are what they say; they may overlap and come in any order."""
    made = bytearray()
    part = None
    for part in sorted(parts, key=lambda part: part.start):
        if part.start > len(made):
            return None
        made += part.content[len(made) - part.start :]
    if part is None or len(made) != part.length or checksum_of(made) != part.checksum:
        return None
    return bytes(made)
