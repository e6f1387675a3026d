"""What was there when a target was last read: it tells an entry that is new from one that was overlooked.

A new entry counted from zero after the last good scan, and what it counted until now must not be lost. But not all
that was not there last time is new: servers before 2.16 may leave an entry out of one reading, a reading may have
failed or ended in the middle, the agent may just have begun. A zero where there was none would make a whole old
counter look like work of two minutes, so where in doubt there is none.
"""

from json.encoder import encode_basestring_ascii as quoted
from math import floor
from typing import Any, NamedTuple

from jobsight.formats.lustreid import to_bytes, to_text

# Lustre's own, where nobody could read it.
INTERVAL = 600.0
# Whoever comes back later than this is new in any case, where nothing expires by itself.
FORGOTTEN = 3600.0
# Seconds by which the two clocks may part before one must have been set.
SET = 5.0


class Moment(NamedTuple):
    """One instant on both clocks."""

    wall: float
    steady: float


class Life:
    """One entry, from its beginning to its end."""

    __slots__ = ("absent_at", "malformed", "mark", "quiet", "start", "told", "turn")

    def __init__(self) -> None:
        self.mark = 0
        """Of its text as it was last told."""
        self.told = 0
        """How often it was told since it changed."""
        self.quiet = 0.0
        """Since when it has held still, by the steady clock."""
        self.start: float | None = None
        self.absent_at: float | None = None
        self.turn = 0
        """The scan that saw it last."""
        self.malformed = False


class Past:
    """Of one target."""

    def __init__(self) -> None:
        self.entries: dict[bytes, Life] = {}
        self.scanned: Moment | None = None
        """The last good scan; the time may be that of a boot or of a look that found no such target."""
        self.turn = 0
        self._good = 0
        self._now = Moment(0.0, 0.0)
        self._interval = INTERVAL

    def begin(self, now: Moment, interval: float | None) -> None:
        """A scan begins."""
        self.turn += 1
        self._now = now
        self._interval = INTERVAL if interval is None else interval
        if self.scanned is not None:
            elapsed = now.steady - self.scanned.steady
            if abs(now.wall - self.scanned.wall - elapsed) > SET:
                # The wall clock was set in between: the last scan was when today's clock says it was.
                self.scanned = Moment(now.wall - elapsed, self.scanned.steady)

    def meet(self, raw: bytes, start: float | None, snapshot: float | None) -> Life:
        """The life of an entry that was read, and is not as it was told."""
        life = self.entries.get(raw)
        if life is None:
            life = self.entries[raw] = Life()
            life.absent_at = self._absent(start, snapshot)
        elif None not in (start, life.start) and start != life.start:
            life.absent_at = self._absent(start, snapshot)
        life.start = start
        return life

    def changed(self, life: Life, mark: int, snapshot: float | None) -> None:
        """It is not as it was: since when, at most."""
        if life.mark == mark:
            return
        life.mark, life.told = mark, 0
        ago = 0.0 if snapshot is None else max(0.0, self._now.wall - snapshot)
        if self.scanned is not None:
            # It changed after the last scan, whatever the clocks say.
            ago = min(ago, self._now.steady - self.scanned.steady)
        life.quiet = self._now.steady - ago

    def finish(self) -> None:
        """The scan came to a good end: what it did not see is not there, or was left out this once."""
        self._good, self.scanned = self.turn, self._now
        gone = [raw for raw, life in self.entries.items() if life.turn != self.turn and self._over(life)]
        for raw in gone:
            del self.entries[raw]

    def leave(self, now: Moment) -> None:
        """The target is not on this server now, so neither are its entries; on another they are others."""
        self.entries.clear()
        self.scanned = now

    def _expired(self, life: Life) -> bool:
        """Whether it was old enough to go when it was last looked for."""
        return self.scanned is not None and 0 < self._interval <= self.scanned.steady - life.quiet

    def _over(self, life: Life) -> bool:
        return self._expired(life) or self._now.steady - life.quiet > max(FORGOTTEN, self._interval)

    def _absent(self, start: float | None, snapshot: float | None) -> float | None:
        """When a new entry was surely not there; None if nobody looked."""
        if self.scanned is None:
            return None
        if start is not None and start <= self._now.wall:
            return start
        before = self.scanned.wall
        if snapshot is not None and snapshot < floor(before):
            # Used before the last scan and not since: it was there and was left out.
            return None
        return before if before < self._now.wall else None

    def to_state(self, now: Moment) -> str:
        """What must outlive the agent, as JSON. Texts are not remembered: all is told anew at the start."""
        gap, good = now.wall - now.steady, self._good
        lives = [
            f"{quoted(to_text(raw))}:[{life.quiet + gap:.3f},{_number(life.start)},{_number(life.absent_at)},"
            f"{'true' if life.turn >= good else 'false'}]"
            for raw, life in self.entries.items()
        ]
        return f'{{"scanned":{_number(self.scanned and self.scanned.wall)},"entries":{{{",".join(lives)}}}}}'


def _number(value: float | None) -> str:
    return "null" if value is None else repr(value)


def from_state(state: Any, now: Moment, booted: float | None) -> Past:
    """The way back; ValueError, KeyError, TypeError or AttributeError for what is no state. A server that has booted
    since then, at `booted`, has looked and found nothing.
    """
    past = Past()
    scanned = state["scanned"]
    if scanned is None or not 0 < float(scanned) <= now.wall:
        return past
    if booted is not None:
        past.scanned = _at(max(float(scanned), min(booted, now.wall)), now)
        return past
    past.scanned, past.turn, past._good = _at(float(scanned), now), 1, 1  # noqa: SLF001
    for text, (quiet, start, absent_at, seen) in state["entries"].items():
        life = Life()
        life.quiet = min(now.steady, _at(float(quiet), now).steady)
        life.start = None if start is None else float(start)
        life.absent_at = None if absent_at is None else float(absent_at)
        life.turn = 1 if seen is True else 0
        past.entries[to_bytes(text)] = life
    return past


def _at(wall: float, now: Moment) -> Moment:
    return Moment(wall, now.steady - (now.wall - wall))
