"""Load files or trees of messages into the store: jobsight's own, and Sonar's.

PATH is a tree as the sinks `directory` and `sonar` write it, as Sonar writes it, or a single file; gzipped ones too.
A second run skips what was loaded, and goes on where a file has grown. Whatever is loaded twice is stored once.
"""

import json
import os
import sqlite3
import sys
import time
from argparse import Namespace
from typing import NamedTuple, Protocol, TextIO

from jobsight.cli.arguments import FailedError, WrongUseError, add_settings, parser, sentences, settings_of
from jobsight.formats.number import duration, volume

# How often a line is shown on a terminal, and where there is none (seconds).
LIVELY, QUIET = 0.2, 10.0
# Of a kind of refusal, how many are told; all are in the quarantine.
TOLD = 10
TRIES = 20
PATIENCE = 120.0


class Handed(NamedTuple):
    """What became of messages."""

    new: int | None
    """None if only the server knows."""
    refused: int = 0


class Door(Protocol):
    """Where messages go."""

    def hand_in(self, lines: list[bytes]) -> Handed:
        """Make them durable."""

    def close(self) -> None: ...


class Direct:
    """A store that nobody else has open."""

    def __init__(self, path: str) -> None:
        from jobsight.analyse.keeper import open_store

        self._store = open_store(path)
        # What a server had acknowledged and not yet loaded when it stopped.
        self._store.digest()

    def hand_in(self, lines: list[bytes]) -> Handed:
        self._store.append(lines).result()
        return Handed(self._store.digest())

    def close(self) -> None:
        self._store.close()


class Remote:
    """The server that owns the store."""

    def __init__(self, url: str, token: str) -> None:
        from jobsight.ship.post import Poster, address

        self._url = url
        self._post = Poster(address(f"{url}/ingest"), PATIENCE)
        self._headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def hand_in(self, lines: list[bytes]) -> Handed:
        from jobsight.schema.wire import compress

        body = compress(b"\n".join(lines) + b"\n")
        for _ in range(TRIES):
            try:
                answer = self._post.post(body, self._headers)
            except OSError as error:
                raise FailedError(f"the server at {self._url} does not answer: {error}; run again to go on") from None
            if answer.status not in (429, 503):
                break
            wait = answer.headers.get("retry-after", "")
            time.sleep(min(60.0, float(wait)) if wait.isdecimal() else 1.0)
        if answer.status == 401:
            raise FailedError(f"the server at {self._url} needs a token: name its settings with --settings")
        if answer.status != 200:
            said = answer.body.decode("utf-8", "replace")[:200]
            raise FailedError(f"the server at {self._url} answered {answer.status}: {said}; run again to go on")
        # Both sides check alike, so a server refuses something only if it is another version.
        return Handed(None, json.loads(answer.body).get("refused", 0))

    def close(self) -> None:
        self._post.close()


class Nowhere:
    """For `--dry-run`."""

    def hand_in(self, lines: list[bytes]) -> Handed:  # noqa: ARG002
        return Handed(None)

    def close(self) -> None: ...


class Progress:
    """How far it got, on stderr: one moving line on a terminal, now and then a line elsewhere."""

    def __init__(self, to: TextIO) -> None:
        self._to = to
        self.total = 0
        self._live = to.isatty()
        self._began = self._shown = time.monotonic()

    def show(self, read: int, messages: int) -> None:
        now = time.monotonic()
        if now - self._shown < (LIVELY if self._live else QUIET):
            return
        self._shown = now
        took = now - self._began
        part = min(1.0, read / self.total) if self.total else 1.0
        left = f", {duration(took * (1 - part) / part)} left" if part else ""
        text = f"{100 * part:5.1f} %  {messages} messages, {messages / took:.0f}/s{left}"
        self._to.write(f"\r\033[K{text}" if self._live else f"jobsight: {text.strip()}\n")
        self._to.flush()

    def say(self, sentence: str) -> None:
        """A line of its own."""
        self._to.write(f"{self._clear()}jobsight: {sentence}\n")
        self._to.flush()

    def end(self) -> float:
        """Seconds it took."""
        self._to.write(self._clear())
        self._to.flush()
        return time.monotonic() - self._began

    def _clear(self) -> str:
        return "\r\033[K" if self._live else ""


class Tally:
    """What was loaded."""

    def __init__(self) -> None:
        self.files = 0
        self.messages = 0
        self.new: int | None = 0
        self.refused = 0
        self.skipped = 0

    def add(self, messages: int, handed: Handed) -> None:
        self.messages += messages - handed.refused
        self.refused += handed.refused
        self.new = None if handed.new is None or self.new is None else self.new + handed.new

    def sentence(self, unchanged: int, size: int, took: float, *, dry: bool) -> str:
        if dry:
            parts = [f"{_many(self.messages, 'message')} could be loaded"]
        elif self.new is None:
            parts = [f"{_many(self.messages, 'message')} handed to the server"]
        else:
            parts = [f"{_many(self.new, 'message')} new", f"{self.messages - self.new} known"]
        parts += [f"{self.refused} refused"]
        if self.skipped:
            parts.append(f"{_many(self.skipped, 'job or cluster document')} left out")
        same = f" ({unchanged} more unchanged)" if unchanged else ""
        return f"{_many(self.files, 'file')}{same}: {', '.join(parts)}; {volume(size)} in {duration(took)}"


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("load", __doc__)
    add_settings(accept)
    accept.add_argument("paths", metavar="PATH", nargs="+", help="a file, or a tree of files")
    accept.add_argument("--store", metavar="DIR", help="where rows and jobs are kept")
    accept.add_argument("--cluster", metavar="NAME", help="the cluster of Sonar's documents that name none")
    accept.add_argument("--dry-run", action="store_true", help="read and check everything, store nothing")
    given = accept.parse_args(arguments)
    for path in given.paths:
        if not os.path.exists(path):
            raise WrongUseError(f"{path}: no such file or directory")
    settings = settings_of(given.settings)
    if given.dry_run:
        return _load(given, "", Nowhere())
    path = given.store or settings.store.path
    door = _door(path, settings.serve.token_file)
    try:
        return _load(given, path, door)
    except sqlite3.Error as error:
        raise FailedError(f"{path}/load.sqlite, which remembers what was loaded: {error}") from None
    finally:
        door.close()


def _load(given: Namespace, path: str, door: Door) -> int:
    from jobsight.ingest.bookmark import Bookmarks
    from jobsight.ingest.directory import Loader
    from jobsight.ingest.quarantine import Quarantine
    from jobsight.ingest.tree import find

    progress, tally = Progress(sys.stderr), Tally()
    found, failed = find(given.paths)
    for error in failed:
        progress.say(f"{error.filename}: {error.strerror}")
    if not found and not failed:
        raise FailedError(f"nothing to load in {', '.join(given.paths)}: files end in .jsonl or .json, packed in .gz")
    bookmarks = Bookmarks(path or None)
    loader = Loader(found, bookmarks, progress.say, given.cluster)
    progress.total = loader.size
    quarantine = Quarantine(os.path.join(path, "quarantine")) if path else None
    try:
        for batch in loader.batches():
            if batch.lines:
                tally.add(len(batch.lines), door.hand_in(batch.lines))
            for refused in batch.refused[: max(0, TOLD - tally.refused)]:
                progress.say(f"refused {refused.path}: {refused.reason}")
            if batch.refused and quarantine:
                quarantine.keep(batch.refused)
            # Only now: what is not durable must be read again.
            bookmarks.save(batch.positions, batch.ended, batch.nodes)
            tally.refused += len(batch.refused)
            tally.skipped += batch.skipped
            tally.files += len(batch.ended)
            progress.show(loader.read, tally.messages)
    except KeyboardInterrupt:
        progress.say(f"stopped after {tally.messages} messages, which are kept; run again to go on")
        raise
    finally:
        bookmarks.close()
    if tally.refused > TOLD:
        progress.say(
            f"{tally.refused - TOLD} more refused" + ("" if given.dry_run else f": {path}/quarantine has all")
        )
    unchanged = len(found) - len(loader.sources)
    print(tally.sentence(unchanged, loader.read, progress.end(), dry=given.dry_run))
    return 1 if tally.refused or loader.broken or failed else 0


def _door(path: str, token_file: str | None) -> Door:
    from jobsight import files
    from jobsight.store.protocol import StoreError

    try:
        return Direct(path)
    except StoreError as error:
        announced = files.read_at(os.path.join(path, "server.json"), 0, 4096)
        if not announced:
            raise FailedError(str(error)) from None
        token = files.read_at(token_file, 0, 4096).decode("ascii", "replace").strip() if token_file else ""
        return Remote(json.loads(announced)["url"], token)
