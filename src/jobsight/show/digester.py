"""What goes on in a server besides answering: what came in is loaded, counted, rolled up, looked at and dropped."""

import sys
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from jobsight.analyse import tending
from jobsight.analyse.watch import Look
from jobsight.metering import USUAL, Energy
from jobsight.serving import Lustre
from jobsight.store.protocol import Store
from jobsight.store.retention import Retention

DIGEST = 1.0
SETTLE = 30.0
TEND = 300.0
# What was left undone when the last server stopped is not left for long (seconds).
SOON = 2.0


class Work(NamedTuple):
    """How it is done: what settings say."""

    keeping: Retention
    energy: Energy = USUAL
    lustre: Lustre | None = None
    look: Look = lambda *_: 0
    """For findings."""


class Digester:
    """Loads what the log has, every second; counts what came late soon after; every few minutes moves what is over to
    files and drops what is too old.

    In threads of their own: what comes in does not wait while a day is sorted.
    """

    def __init__(self, store: Store, work: Work) -> None:
        self._store = store
        self._work = work
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=("digesting", store.digest, DIGEST, DIGEST), name="digest"),
            threading.Thread(target=self._repeat, args=("counting again", self._settle, SETTLE, SOON), name="settle"),
            threading.Thread(target=self._repeat, args=("compaction", self._tend, TEND, TEND), name="tend"),
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._store.digest()

    def _tend(self) -> None:
        now = time.time()
        self._store.compact(now)
        tending.retain(self._store, self._work.keeping, now)

    def _settle(self) -> None:
        tending.settle(self._store, time.time(), self._work.lustre, self._work.energy)
        self._work.look(self._store, time.time())

    def _repeat(self, name: str, act: Callable[[], object], every: float, first: float) -> None:
        wait = first
        while not self._stop.wait(wait):
            wait = every
            try:
                act()
            except Exception as error:  # noqa: BLE001
                # Whatever it was, what comes in must go on being loaded.
                print(f"jobsight: {name} failed and is tried again: {error}", file=sys.stderr, flush=True)
