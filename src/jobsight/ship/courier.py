"""A spool in front of a destination, and the thread that empties it.

A payload is in the spool before anything else happens. A thread hands the oldest first, many at a time, at the
node's own place in the sending window, to the destination's `deliver`, and forgets those that are off our hands. A
destination that is away, busy or full is tried again with growing pauses; nothing is lost but what the spool's bounds
push out.
"""

import os
import sys
import threading
from collections.abc import Callable
from typing import NamedTuple

from jobsight.agent.schedule import next_multiple, share
from jobsight.ship.sink import Place
from jobsight.ship.spool import Frame, Spool

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
# However long a destination wants to be left alone: a number it got wrong must not silence a node.
LONGEST_AFTER = 3600.0
# How long a closing courier goes on handing over a backlog.
PATIENCE = 5.0
# And then for the answer it waits for.
GRACE = 1.0

# Two destinations may count into one tally, each from a thread of its own.
_counting = threading.Lock()


class Outcome(NamedTuple):
    """What became of the frames a destination was handed, oldest first.

    Some may be done and the rest not: the courier then comes again with the rest at once. Nothing done means later.
    """

    done: int
    """How many of them, counted from the oldest, are off our hands."""
    refused: int = 0
    """How many of those will never be taken, which is counted and said."""
    reason: str = ""
    """Why they were refused; with nothing done, why it must wait."""
    after: float = 0.0
    """Seconds the destination wants to be left alone, if it said so."""
    urgent: bool = False
    """Whether waiting alone will not help: people must do something, so they hear of it whatever was said before."""


def later(reason: str, after: float = 0.0, *, urgent: bool = False) -> Outcome:
    """Not now: they wait in the spool."""
    return Outcome(0, 0, reason, after, urgent)


def refused(count: int, reason: str) -> Outcome:
    """The destination has looked at them and never will take them."""
    return Outcome(count, count, reason)


# Handed the oldest frames, at least one. OSError and ValueError mean later, too.
Deliver = Callable[[list[Frame]], Outcome]


class Courier:
    """One destination's spool and its thread."""

    def __init__(self, name: str, to: str, deliver: Deliver, place: Place, *, window: float, batch: int) -> None:
        """`name` is that of the spool's folder: it must be found again after a restart. `to` is what people read.

        `deliver` may be called before this returns: make first what it needs.
        """
        self._to = to
        self._hand = deliver
        self._window = window
        self._batch = batch
        self._place = place
        bounds = place.spool
        self._spool = Spool(os.path.join(bounds.path, name), bounds.size, bounds.age, place.clock.wall())
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._waiting = 0
        self._lost = (0, 0)
        self._closing = False
        self._patience = 0.0
        self._troubled = False
        self._trouble_said = ""
        self._refusal = ""
        place.tally.spools.append(self._backlog)
        self._thread = threading.Thread(target=self._work, name="send", daemon=True)
        self._thread.start()

    def put(self, payload: bytes) -> None:
        """Take one payload: after this it is on disk. OSError if it cannot be."""
        with self._lock:
            self._spool.append(payload, self._place.clock.wall())
            self._count(0, 0)
        self._wake.set()

    def close(self) -> None:
        """Hand over what is there if the destination takes it soon; the rest stays in the spool."""
        self._patience = self._place.clock.steady() + PATIENCE
        self._closing = True
        self._wake.set()
        self._thread.join(PATIENCE + GRACE)
        if self._thread.is_alive():
            self.interrupt()
        self._thread.join()
        if self._backlog in self._place.tally.spools:
            self._place.tally.spools.remove(self._backlog)

    def interrupt(self) -> None:
        """Make a `deliver` that waits for an answer give up; called from another thread."""

    def hurried(self) -> bool:
        """Whether the time to finish is over: a `deliver` that waits should give up."""
        return self._closing and self._place.clock.steady() > self._patience

    def _work(self) -> None:
        pause = 0.0
        while not self._closing:
            self._wake.wait()
            self._wait(pause or self._until_my_turn())
            pause = self._empty(pause)
        if not self.hurried():
            self._empty(0.0)

    def _until_my_turn(self) -> float:
        window = self._window
        if not window:
            return 0.0
        now = self._place.clock.wall()
        return next_multiple(window, now - share(self._place.node) * window) + share(self._place.node) * window - now

    def _wait(self, seconds: float) -> None:
        if seconds > 0 and not self._closing:
            self._wake.clear()
            end = self._place.clock.steady() + seconds
            while not self._closing and (left := end - self._place.clock.steady()) > 0:
                self._wake.wait(left)
                self._wake.clear()

    def _empty(self, pause: float) -> float:
        """Hand over until the spool is empty; the pause before the next try if the destination would not take it."""
        longer = min(LONGEST_PAUSE, max(FIRST_PAUSE, pause * 2)) * _jitter()
        while True:
            try:
                with self._lock:
                    frames = self._spool.oldest(self._batch)
                if not frames:
                    self._rest()
                    return 0.0
                outcome = self._hand(frames)
                self._settle(outcome, frames)
            except (OSError, ValueError) as error:
                # ValueError: a name or a secret that cannot be put into a request. People mend it while we wait.
                outcome = later(str(error))
            if not outcome.done:
                self._trouble(outcome)
                self._wake.set()
                # Never sooner than it asked for, and not all nodes at the same moment.
                return max(longer, min(outcome.after, LONGEST_AFTER) * (0.5 + _jitter()))
            if self.hurried():
                return 0.0

    def _rest(self) -> None:
        """Nothing to do until something comes, which may be between the look and the clearing."""
        self._wake.clear()
        with self._lock:
            if self._spool.waiting:
                self._wake.set()

    def _settle(self, outcome: Outcome, frames: list[Frame]) -> None:
        """Forget what is off our hands and say what was refused."""
        if not outcome.done:
            return
        with self._lock:
            self._spool.acknowledge(frames[outcome.done - 1])
            self._count(outcome.done - outcome.refused, outcome.refused)
        # Said when it is news: one message too large comes again at every sample.
        if outcome.refused and outcome.reason != self._refusal:
            self._say(f"{self._to}: refused {outcome.refused} of {outcome.done} messages: {outcome.reason}")
            self._refusal = outcome.reason
        if self._troubled and outcome.refused < outcome.done:
            self._say(f"{self._to} takes messages again")
            self._troubled = False

    def _count(self, sent: int, refused: int) -> None:
        tally = self._place.tally
        dropped, torn = self._lost
        with _counting:
            tally.sent += sent
            tally.dropped += refused + self._spool.dropped - dropped
            tally.torn += self._spool.torn - torn
            tally.waiting += self._spool.waiting - self._waiting
        self._waiting = self._spool.waiting
        self._lost = (self._spool.dropped, self._spool.torn)

    def _backlog(self) -> tuple[int, float | None]:
        """Messages in the spool, and how long the oldest has waited at most."""
        with self._lock:
            messages, _, since, _, _ = self._spool.backlog()
        return messages, None if since is None else max(0.0, self._place.clock.wall() - since)

    def _trouble(self, outcome: Outcome) -> None:
        # Said once when it begins, not at every try.
        if not self._troubled or (outcome.urgent and outcome.reason != self._trouble_said):
            self._say(f"{self._to}: {outcome.reason}; messages wait in the spool")
            self._trouble_said = outcome.reason
        self._troubled = True

    def _say(self, text: str) -> None:
        print(f"jobsight: {text}", file=sys.stderr, flush=True)


def _jitter() -> float:
    """Between a half and one. Not from `random`: importing it costs the agent half a megabyte."""
    return 0.5 + os.urandom(1)[0] / 510
