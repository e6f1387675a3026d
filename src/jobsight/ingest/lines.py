"""Cuts a body into lines as it arrives, gunzipped on the way, holding no more than one message at a time."""

import zlib
from collections.abc import Iterator

from jobsight.ingest.limit import DeniedError
from jobsight.schema.wire import GZIP

BLANK = 10_000
# What is kept of a line that is too long, to recognise it by.
KEPT = 1024


class Lines:
    """Feed it pieces, take the lines. A line over `limit` comes as its first bytes and its length."""

    def __init__(self, *, packed: bool, limit: int) -> None:
        self._packed = packed
        self._limit = limit
        self._unpacker = zlib.decompressobj(GZIP)
        self._fresh = True
        self._held = bytearray()
        self._overlong = 0
        self._blank = 0
        # Bytes cut so far: what a body is when it is unpacked.
        self.unpacked = 0

    def feed(self, piece: bytes) -> Iterator[tuple[bytes, int]]:
        """The lines this piece completes, each with its length. zlib.error if it is not gzip."""
        if not self._packed:
            yield from self._cut(piece)
            return
        while piece:
            if self._unpacker.eof:
                self._unpacker, self._fresh = zlib.decompressobj(GZIP), True
            # A bomb is unpacked a quarter megabyte at a time, and the cutter throws overlong lines away.
            yield from self._cut(self._unpacker.decompress(piece, 2**18))
            self._fresh = False
            piece = self._unpacker.unused_data if self._unpacker.eof else self._unpacker.unconsumed_tail

    def finish(self) -> list[tuple[bytes, int]]:
        """The last line, which need not end in a newline; zlib.error if the body stopped in the middle."""
        if self._packed and not self._fresh and not self._unpacker.eof:
            raise zlib.error("the compressed body ends in the middle")
        return self._cut(b"\n") if self._held or self._overlong else []

    def _cut(self, piece: bytes) -> list[tuple[bytes, int]]:
        self.unpacked += len(piece)
        *whole, rest = piece.split(b"\n")
        lines = []
        for part in whole:
            self._hold(part)
            if self._held.strip():
                lines.append((bytes(self._held), self._overlong or len(self._held)))
            else:
                self._count_blank()
            self._held.clear()
            self._overlong = 0
        self._hold(rest)
        return lines

    def _count_blank(self) -> None:
        """Nobody needs empty lines, and a small body may unpack to a great many, which take minutes to pass over."""
        self._blank += 1
        if self._blank > BLANK:
            raise DeniedError(413, f"more than {BLANK} empty lines in one request")

    def _hold(self, part: bytes) -> None:
        if self._overlong or len(self._held) + len(part) > self._limit:
            self._overlong = (self._overlong or len(self._held)) + len(part)
            if len(self._held) < KEPT:
                self._held += part[: KEPT - len(self._held)]
            del self._held[KEPT:]
        else:
            self._held += part
