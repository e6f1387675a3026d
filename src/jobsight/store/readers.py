"""Who is reading: a file that is no longer wanted goes when the last query that may know it has ended."""

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress


class Readers:
    """Queries under way, in the order they began, and files that wait for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = 0
        self._under_way: set[int] = set()
        self._unwanted: list[tuple[int, str]] = []

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._lock:
            self._number += 1
            number = self._number
            self._under_way.add(number)
        try:
            yield
        finally:
            with self._lock:
                self._under_way.discard(number)
            self._sweep()

    def unlink(self, paths: Iterable[str]) -> None:
        """Remove files that no later query will ask for, as soon as no earlier one can."""
        with self._lock:
            self._unwanted += [(self._number, path) for path in paths]
        self._sweep()

    def _sweep(self) -> None:
        with self._lock:
            if not self._unwanted:
                return
            oldest = min(self._under_way, default=self._number + 1)
            ready = [path for number, path in self._unwanted if number < oldest]
            self._unwanted = [item for item in self._unwanted if item[0] >= oldest]
        for path in ready:
            # One that cannot be removed now is removed when the store is opened: nothing refers to it.
            with suppress(OSError):
                os.unlink(path)
