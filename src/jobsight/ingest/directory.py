"""Reads trees of messages, ours and Sonar's, in batches: each node's in the order of time, out of all its files."""

import heapq
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from jobsight.compat.sonarread import Reader
from jobsight.compat.sonarreadfields import Fields, UnreadableError
from jobsight.ingest.accept import LARGEST, Accepted, Refused, accept
from jobsight.ingest.bookmark import Bookmarks
from jobsight.ingest.tree import BROKEN, Document, Source, Stream, documents
from jobsight.schema.wire import encode

# A batch is handed over when it has so many messages or bytes.
MESSAGES = 2000
BYTES = 4 * 2**20


class Batch(NamedTuple):
    """Messages to make durable, and what to remember once they are."""

    lines: list[bytes]
    refused: list[Refused]
    positions: dict[Source, int]
    ended: set[Source]
    nodes: dict[tuple[str, str], str]
    skipped: int
    """Documents of kinds that are not loaded."""


class Piece(NamedTuple):
    """What one place in a file holds, with the time that puts it in order."""

    time: float
    source: Source
    end: int
    content: "Accepted | Refused | Foreign | None"
    """None where the file ends."""


class Foreign(NamedTuple):
    """A Sonar document, taken apart but not yet understood: that needs those before it."""

    value: Any
    document: Document


class Loader:
    """Reads what has not been read yet."""

    def __init__(
        self, sources: Sequence[Source], bookmarks: Bookmarks, tell: Callable[[str], None], cluster: str | None = None
    ) -> None:
        """`tell` gets a sentence for each file that cannot be read to its end."""
        self._bookmarks = bookmarks
        self._tell = tell
        self._reader = Reader(bookmarks.recall, cluster)
        self.sources = [source for source in sources if not bookmarks.finished(source)]
        self.size = sum(source.size for source in self.sources)
        self.read = 0
        self.broken = 0
        self._batch = self._empty()

    def batches(self) -> Iterator[Batch]:
        """Each must be saved before the next is asked for."""
        for _, group in groupby(self.sources, key=lambda source: (source.day, source.node)):
            yield from self._node_day(list(group))
        if self._batch.positions:
            yield self._handed_over()

    def _node_day(self, sources: list[Source]) -> Iterator[Batch]:
        for piece in heapq.merge(*(self._pieces(source) for source in sources), key=lambda piece: piece.time):
            self._batch.positions[piece.source] = piece.end
            self._held += self._take(piece)
            if len(self._batch.lines) + len(self._batch.refused) >= MESSAGES or self._held >= BYTES:
                yield self._handed_over()

    def _take(self, piece: Piece) -> int:
        """Put a piece in the batch; its size."""
        match piece.content:
            case None:
                self._batch.ended.add(piece.source)
                return 0
            case Accepted(line=line):
                self._batch.lines.append(line)
                return len(line)
            case Refused() as refused:
                self._batch.refused.append(_placed(refused, piece.source))
                return len(refused.line)
            case Foreign() as foreign:
                return self._translate(foreign, piece.source)

    def _translate(self, foreign: Foreign, source: Source) -> int:
        text = foreign.document.text
        try:
            reading = self._reader.read(foreign.value)
        except UnreadableError as error:
            self._batch.refused.append(_placed(Refused(text, error.path, error.reason), source))
            return len(text)
        if reading.kind in ("job", "cluster"):
            self._skipped += 1
        size = 0
        for message in reading.messages:
            found = accept(encode(message).rstrip())
            if isinstance(found, Refused):
                self._batch.refused.append(_placed(found, source))
            else:
                self._batch.lines.append(found.line)
            size += len(found.line)
        return size

    def _empty(self) -> Batch:
        self._skipped = self._held = 0
        return Batch([], [], {}, set(), {}, 0)

    def _handed_over(self) -> Batch:
        made = self._batch._replace(nodes=self._reader.changed(), skipped=self._skipped)
        self._batch = self._empty()
        return made

    def _pieces(self, source: Source) -> Iterator[Piece]:
        """A file's contents with times that never go back: those of one file stay in its order."""
        latest, position, before = 0.0, self._bookmarks.position(source), 0
        try:
            with Stream(source.path) as stream:
                if position > source.size and not stream.packed:
                    position = 0
                for document in documents(stream.unpacked, position):
                    self.read += stream.read - before
                    before = stream.read
                    found = list(contents(document))
                    if document.last and unfinished(document, found[-1]):
                        self._tell(f"{source.path} ends in the middle of a document, which is left for later")
                        break
                    for left, content in zip(reversed(range(len(found))), found, strict=True):
                        latest = max(latest, _time(content))
                        # Several on one line are read together or not at all.
                        position = position if left else document.end
                        yield Piece(latest, source, position, content)
        except BROKEN as error:
            self.broken += 1
            self._tell(f"{source.path}: {getattr(error, 'strerror', None) or error}")
        self.read += source.size - before
        yield Piece(latest, source, position, None)


def contents(document: Document) -> "Iterator[Accepted | Refused | Foreign]":
    """One document as a rule; several if they stand on one line."""
    text = document.text.strip()
    if document.length > LARGEST:
        yield Refused(document.text, "$", f"{document.length} bytes, more than {LARGEST}")
        return
    if text.startswith(b'{"schema":'):
        found = accept(text)
        if isinstance(found, Accepted):
            yield found
            return
    try:
        rest = text.decode()
    except UnicodeDecodeError as error:
        yield Refused(text, "$", str(error))
        return
    while rest:
        try:
            value, end = json.JSONDecoder().raw_decode(rest)
        except (ValueError, RecursionError) as error:
            yield Refused(rest.encode(), "$", f"JSON is malformed: {error}")
            return
        piece, rest = rest[:end].encode(), rest[end:].lstrip()
        if isinstance(value, dict) and "schema" in value:
            yield accept(piece)
        else:
            yield Foreign(value, document._replace(text=piece))


def unfinished(document: Document, content: "Accepted | Refused | Foreign") -> bool:
    """Whether it is no document yet, and may still become one."""
    if not isinstance(content, Refused) or document.length > LARGEST:
        return False
    try:
        json.loads(content.line)
    except (ValueError, RecursionError):
        return True
    return False


def _time(content: "Accepted | Refused | Foreign") -> float:
    """When; 0 where it does not matter: before anything else of the file that is left."""
    if isinstance(content, Accepted):
        return content.time
    if isinstance(content, Refused):
        return 0.0
    try:
        return Fields(content.value, "$").within("data").within("attributes").time("time") or 0.0
    except UnreadableError:
        return 0.0


def _placed(refused: Refused, source: Source) -> Refused:
    return Refused(refused.line, refused.path, f"{refused.reason} (in {source.path})")
