"""Sources with a past, read in windows: since the last good run and a little before it, in slices after an outage.

What was sent lately is known by its digest, so that an overlap costs nothing on the wire. Digests live with the
agent: after a restart some rows are sent again, and the latest row of a job counts anyway.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from jobsight.clock import Clock, SystemClock
from jobsight.command import CommandError
from jobsight.drivers.notebook import Notebook
from jobsight.host import Host

# Rows that do not change, such as those of a job that runs for weeks, are sent again after this.
REFRESH = 3600.0
SHORTEST = 60.0
# A run of so many times its limit for calls may be late; the agent waits for twice the limit.
LATE = 1.7
# A single run without a notebook.
GLANCE = 3600.0
# What was missed longer ago is not caught up with: it would take hours, and few would look.
LONGEST_GAP = 31 * 86400.0
# What changes by itself while a job waits or runs.
MOVING = ("elapsed", "priority", "expected")
# What tells one job, step or part of a job from another.
NAMING = ("job", "step", "entry", "submit", "array_index", "part", "nodes")

_clock = SystemClock()


class Span(Protocol):
    """The options that say how far a window reaches."""

    @property
    def limit(self) -> float: ...
    @property
    def overlap(self) -> float: ...
    @property
    def slice(self) -> float: ...
    @property
    def history(self) -> float: ...


class Sent(NamedTuple):
    """What was last sent of a thing, and when."""

    digest: int
    time: float


class Progress:
    """How far one collector has come."""

    def __init__(self) -> None:
        self.until: float | None = None
        self.slice: float | None = None
        self.sent: dict[int, Sent] = {}
        """By what names a row: the digest of what was last sent of it."""


class Progresses:
    """By collector; lives with a host."""

    def __init__(self) -> None:
        self.known: dict[str, Progress] = {}


def fresh(
    host: Host, name: str, options: Span, ask: Callable[[float, float], Iterator[Any]], clock: Clock = _clock
) -> Iterator[Any]:
    """The rows of the next window that were not sent lately. How far it got is noted when all were taken."""
    book = host.keep(Notebook)
    began = clock.steady()
    progress = progress_of(host, name)
    now = clock.wall()
    if progress.until is None:
        progress.until = book.until(name)
    since, until = bounds(progress, options, now, glance=book.folder is None)
    try:
        rows = list(ask(since, until))
    except CommandError:
        # Too much at once, perhaps: less the next time.
        progress.slice = max(SHORTEST, (until - since) / 2)
        raise
    sent = yield from unsent(progress, rows, now)
    if clock.steady() - began > LATE * options.limit:
        # The agent may have given this run up, and its rows with it: they are sent again, less at a time.
        progress.slice = max(SHORTEST, (until - since) / 2)
        return
    progress.sent = sent
    progress.slice = None if progress.slice is None else min(2 * progress.slice, options.slice)
    progress.until = until
    if host.live:
        # A full disk costs a restarted agent its place, and nobody a row.
        with suppress(OSError):
            book.write(name, until)


def bounds(progress: Progress, options: Span, now: float, *, glance: bool) -> tuple[float, float]:
    """From when to when to ask. A clock set back does not turn the window around."""
    oldest = now - (GLANCE if glance else options.history)
    since = min(oldest if progress.until is None else progress.until - options.overlap, now - SHORTEST)
    since = max(since, now - max(LONGEST_GAP, options.history))
    longest = min(progress.slice or options.slice, options.slice) + options.overlap
    return since, min(now, since + longest)


def unsent(progress: Progress, rows: list[Any], now: float) -> Generator[Any, None, dict[int, Sent]]:
    """The rows that are new, have changed, or were last sent long ago; in the end all that were sent lately."""
    sent = {key: last for key, last in progress.sent.items() if 0 <= now - last.time < REFRESH}
    if not rows:
        return sent
    names = [field.name for field in rows[0].fields]
    lasting = itemgetter(*(place for place, name in enumerate(names) if name not in MOVING))
    naming = itemgetter(*(place for place, name in enumerate(names) if name in NAMING), 0)
    for row in rows:
        key, digest = hash(naming(row)), hash(lasting(row))
        if key not in sent or sent[key].digest != digest:
            yield row
            sent[key] = Sent(digest, now)
    return sent


def progress_of(host: Host, name: str) -> Progress:
    """How far a collector has come on a host. A copy of a machine is one instant: all of it, every time."""
    return host.keep(Progresses).known.setdefault(name, Progress()) if host.live else Progress()


def now() -> float:
    return _clock.wall()
