"""Collectors that wait for somebody else, a node's controller or a web server: they run in threads of their own, each
at its own time, and a scrape shows what they found last. Nobody waits for them, but for a moment at the very first.
"""

import threading
from collections.abc import Callable

from jobsight.clock import Clock
from jobsight.schema.message import Message
from jobsight.settings import Plan

# Those of all collectors.
NAMES = ("ipmi", "emissionfactor")
# Seconds the first scrape may wait for the first answers, of all together.
FIRST = 2.0
# What was not renewed for so many intervals is not shown any more.
OLD = 3.0
# Seconds between looks at a source that was not there: it may be set up later.
LEAST = 1.0


class Aside:
    """One such collector."""

    def __init__(self, plan: Plan, run: Callable[[], Message], clock: Clock) -> None:
        self._plan, self._run, self._clock = plan, run, clock
        self._last: tuple[float, Message] | None = None
        self._first = threading.Event()
        self._leaving = threading.Event()
        # A daemon: what hangs must not keep the exporter from stopping.
        threading.Thread(target=self._work, name=plan.name, daemon=True).start()

    def last(self, patience: float = FIRST) -> tuple[Message, float] | None:
        """The last run's message and how long ago that began; None if there is none, or none that still counts."""
        self._first.wait(max(0.0, patience))
        # Later scrapes do not wait again, whatever became of the first.
        self._first.set()
        if self._last is None:
            return None
        at, message = self._last
        age = self._clock.steady() - at
        return (message, age) if age <= OLD * max(self._plan.every, LEAST) + self._plan.deadline else None

    def close(self) -> None:
        self._leaving.set()

    def _work(self) -> None:
        while not self._leaving.is_set():
            began = self._clock.steady()
            self._last = (began, self._run())
            self._first.set()
            self._leaving.wait(max(LEAST, self._plan.every - (self._clock.steady() - began)))


def aged(message: Message, age: float) -> Message:
    """A message as it is shown later: a column `age` counts on."""
    if "age" not in message.rows:
        return message
    return message._replace(rows={**message.rows, "age": tuple(value + age for value in message.rows["age"])})
