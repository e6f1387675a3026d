"""When collectors run and when a node sends.

Runs are aligned to the wall clock: every node samples a 30 s collector at :00 and :30, so that a job's nodes can
be added up at one instant. Sending is spread: a node's place in the window follows from its name alone, so ten
thousand nodes restarted together still come one after the other.
"""

import zlib
from math import floor


class Entry:
    """One thing that recurs."""

    def __init__(self, name: str, every: float, due: float) -> None:
        self.name = name
        self.every = every
        self.due = due


def next_multiple(every: float, now: float) -> float:
    """The first multiple of `every` after `now`."""
    return (floor(now / every) + 1) * every


class Schedule:
    """What is due when. Everything is due at once at the start, then on its multiples."""

    def __init__(self, every: dict[str, float], now: float) -> None:
        self._entries = [Entry(name, seconds, now) for name, seconds in every.items()]

    def due(self, now: float) -> list[str]:
        """The names due by now, each moved on to its next multiple: runs missed while asleep are not made up for."""
        names = []
        for entry in self._entries:
            # A clock set back would leave an entry waiting for hours: never wait longer than one interval.
            if entry.due <= now or entry.due > now + entry.every:
                names.append(entry.name)
                entry.due = next_multiple(entry.every, now)
        return names

    def wait(self, now: float) -> float:
        """Seconds until something is due."""
        if not self._entries:
            return 3600.0
        # Never longer than an interval: the clock may be set back while we wait.
        return max(0.0, min(min(entry.due - now, entry.every) for entry in self._entries))


def share(node: str) -> float:
    """A node's place in the sending window, from 0 to 1."""
    return zlib.crc32(node.encode()) / 2**32
