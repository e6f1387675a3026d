"""Wall and monotonic time as arguments, so that a test can turn the hands."""

import time
from typing import Protocol


class Clock(Protocol):
    """What the agent knows about time."""

    def wall(self) -> float:
        """Seconds since 1970, UTC. May be stepped by an administrator."""

    def steady(self) -> float:
        """Seconds that only go forward."""


class SystemClock:
    """The machine's clock."""

    def wall(self) -> float:
        return time.time()

    def steady(self) -> float:
        return time.monotonic()
