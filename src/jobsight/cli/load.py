"""Load files or trees of messages into the store: jobsight's own, and Sonar's.

PATH is a tree as the sinks `directory` and `sonar` write it, as Sonar writes it, or a single file; gzipped ones too.
A second run skips what was loaded, and goes on where a file has grown. Whatever is loaded twice is stored once. With
--quarantine what was refused or set aside earlier is looked at again, and loaded if it can be now.
"""

import os
import sqlite3
import sys
import time
from argparse import Namespace
from typing import TextIO

from jobsight.cli.arguments import FailedError, WrongUseError, add_settings, parser, sentences, settings_of
from jobsight.cli.door import Door, Handed, Nowhere, open_door
from jobsight.formats.number import duration, volume
from jobsight.settings import DATABASES

# How often a line is shown on a terminal, and where there is none (seconds).
LIVELY, QUIET = 0.2, 10.0
# Of a kind of refusal, how many are told; all are in the quarantine.
TOLD = 10


class Progress:
    """How far it got, on stderr: one moving line on a terminal, now and then a line elsewhere."""

    def __init__(self, to: TextIO, noun: str = "messages") -> None:
        self._to = to
        self._noun = noun
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
        text = f"{100 * part:5.1f} %  {messages} {self._noun}, {messages / took:.0f}/s{left}"
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
            parts = [f"{_many(self.messages, 'message')} handed over"]
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
    accept.add_argument("paths", metavar="PATH", nargs="*", help="a file, or a tree of files")
    accept.add_argument("--store", metavar="DIR|URL", help="where rows and jobs are kept")
    accept.add_argument("--cluster", metavar="NAME", help="the cluster of Sonar's documents that name none")
    accept.add_argument("--dry-run", action="store_true", help="read and check everything, store nothing")
    accept.add_argument("--quarantine", action="store_true", help="what was refused or set aside: again")
    given = accept.parse_args(arguments)
    if bool(given.paths) == given.quarantine or (given.dry_run and given.quarantine):
        raise WrongUseError("either files to load or --quarantine")
    for path in given.paths:
        if not os.path.exists(path):
            raise WrongUseError(f"{path}: no such file or directory")
    settings = settings_of(given.settings)
    if given.dry_run:
        return _load(given, "", Nowhere())
    if given.store:
        chosen = {"url": given.store} if given.store.startswith(DATABASES) else {"path": given.store, "url": None}
        settings = settings._replace(store=settings.store._replace(**chosen))
    path = settings.store.path
    door = open_door(settings)
    try:
        return _review(path, door) if given.quarantine else _load(given, path, door)
    except sqlite3.Error as error:
        raise FailedError(f"{path}/load.sqlite, which remembers what was loaded: {error}") from None
    finally:
        door.close()


def _review(path: str, door: Door) -> int:
    from jobsight import files
    from jobsight.ingest.review import review
    from jobsight.store.protocol import StoreError

    handed: list[Handed] = []
    try:
        with files.Lock(os.path.join(path, "review.lock")):
            again = door.reconsider()
            found = review(path, lambda lines: handed.append(door.hand_in(lines)))
    except files.LockedError as error:
        raise FailedError(f"somebody else looks at the quarantine: {error}") from None
    except (OSError, StoreError) as error:
        raise FailedError(f"{error}; what was set aside is where it was") from None
    inbox = f", {again} in the database's inbox tried again" if again else ""
    # A server of another version may refuse what we would accept.
    loaded = found.accepted - sum(one.refused for one in handed)
    print(f"{_many(loaded, 'message')} loaded{inbox}, {found.left} still refused")
    return 1 if found.left else 0


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
        door.finish()
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
