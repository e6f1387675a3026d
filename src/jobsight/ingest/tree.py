"""Trees of files: which there are, in what order to read them, and the documents in each.

A document begins on a line that begins with a brace. So one a line, several on one line and pretty-printed ones are
all found, and a broken one costs no other.
"""

import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import BinaryIO, NamedTuple, Self

from jobsight.ingest.accept import LARGEST

MAGIC = b"\x1f\x8b"
NAMES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
# What is kept of a document that is too long, to recognise it by.
KEPT = 1024
HEAD = 65536
# What reading may stumble over.
BROKEN = (OSError, EOFError, zlib.error)


class Source(NamedTuple):
    """One file."""

    path: str
    size: int
    changed: int
    """When, in nanoseconds."""
    day: str
    node: str
    """Whose documents it has, by its name; the path if that does not tell."""


class Document(NamedTuple):
    """A piece of a file that should be one document, or several on one line."""

    text: bytes
    start: int
    end: int
    """Where the next one begins, in bytes of the unpacked file."""
    length: int
    """Longer than the text if it is too long to be one."""
    last: bool
    """Whether the file ends in it, without the end of a line: it may still be being written."""


def find(paths: Iterable[str]) -> tuple[list[Source], list[OSError]]:
    """Every file, in the order to read them: by day, then by node, so that each node's story is told in order. And
    what could not be looked at.
    """
    found: dict[str, Source] = {}
    failed: list[OSError] = []
    for path in paths:
        whole = os.path.abspath(path)
        for file in _below(whole, failed) if os.path.isdir(whole) else [whole]:
            try:
                found[file] = _source(file)
            except OSError as error:
                failed.append(error)
    return sorted(found.values(), key=lambda source: (source.day, source.node, source.path)), failed


def _below(path: str, failed: list[OSError]) -> Iterator[str]:
    for folder, _, names in os.walk(path, onerror=failed.append):
        yield from (os.path.join(folder, name) for name in names if name.endswith(NAMES) and name[0] != ".")


def _source(path: str) -> Source:
    status = os.stat(path)
    # `<collector>-<node>.jsonl` and `0+sample-<node>.json`: neither collectors nor kinds have a hyphen.
    _, hyphen, node = os.path.basename(path).removesuffix(".gz").rpartition(".")[0].partition("-")
    dated = re.search(r"/(\d{4})/(\d\d)/(\d\d)/[^/]*$", path, re.ASCII)
    day = "-".join(dated.groups()) if dated else _first_day(path)
    return Source(path, status.st_size, status.st_mtime_ns, day, node if hyphen and node else path)


def _first_day(path: str) -> str:
    """The date of its first document, where no folder is named after it."""
    head = b""
    # What cannot be read will be told when it is its turn.
    with suppress(*BROKEN), Stream(path) as stream:
        while len(head) < HEAD and (line := stream.unpacked.readline(HEAD)):
            head += line
    found = re.search(rb'"time"\s*:\s*"(\d{4}-\d\d-\d\d)', head)
    return found[1].decode() if found else ""


class Stream:
    """An open file, unpacked as it is read."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "rb")  # noqa: SIM115
        try:
            self.packed = self._file.read(2) == MAGIC
            self._file.seek(0)
        except OSError:
            self._file.close()
            raise
        self.unpacked: BinaryIO = gzip.GzipFile(fileobj=self._file) if self.packed else self._file  # type: ignore[assignment]

    @property
    def read(self) -> int:
        """Bytes of the file read until now, packed or not."""
        return self._file.tell()

    def close(self) -> None:
        if self.packed:
            self.unpacked.close()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def documents(stream: BinaryIO, position: int) -> Iterator[Document]:
    """The documents from `position` on; one of BROKEN where the file cannot be read on."""
    stream.seek(position)
    held = Held(position)
    broken: Exception | None = None
    lines = _lines(stream)
    while True:
        try:
            line = next(lines, b"")
        except BROKEN as error:
            broken, line = error, b""
        if not line:
            break
        if held.whole and line.startswith(b"}{"):
            # The end of one and the beginning of the next.
            held.add(b"}")
            yield from held.out(last=False)
            line = line[1:]
        elif held.whole and line.startswith(b"{"):
            yield from held.out(last=False)
        held.add(line)
    if broken is None or held.whole:
        yield from held.out(last=not held.whole)
    if broken is not None:
        raise broken


class Held:
    """The document being read."""

    def __init__(self, position: int) -> None:
        self._text = bytearray()
        self._start = self._end = position
        self.whole = True
        """Whether it ends with a line."""

    def add(self, line: bytes) -> None:
        self._end += len(line)
        if self._end - self._start <= LARGEST:
            self._text += line
        else:
            self._text = (self._text + line[:KEPT])[:KEPT]
        self.whole = line.endswith(b"\n")

    def out(self, *, last: bool) -> Iterator[Document]:
        """What is held, if it is anything."""
        if self._text.strip():
            yield Document(bytes(self._text), self._start, self._end, self._end - self._start, last)
        self._text.clear()
        self._start = self._end


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Lines, long ones in pieces."""
    while line := stream.readline(LARGEST):
        yield line
