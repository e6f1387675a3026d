"""What takes long to make is shown again for a while: however many look, the server has time for what comes in."""

import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

# Seconds from which on making something is long. Small sites never come that far, and see everything at once.
LONG = 0.5
# For how many times as long it is shown.
TIMES = 5.0
# So many are remembered.
MOST = 100


class _Made(Generic[T]):
    """One thing, and until when it may be shown."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.value: T | None = None
        self.until = 0.0


class Lately(Generic[T]):
    """Things by what they depend on. Thread-safe; who asks for what is being made waits for that."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._made: dict[Hashable, _Made[T]] = {}

    def made(self, key: Hashable, make: Callable[[], T]) -> T:
        """What was made lately, or what `make` makes now."""
        with self._lock:
            if key not in self._made and len(self._made) >= MOST:
                self._made.clear()
            found = self._made.setdefault(key, _Made())
        with found.lock:
            began = self._clock()
            if found.value is not None and began < found.until:
                return found.value
            found.value = None
            value = make()
            now = self._clock()
            if now - began >= LONG:
                found.value, found.until = value, now + TIMES * (now - began)
            return value
