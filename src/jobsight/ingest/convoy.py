"""Lines of many requests go to the store together: to wait for each request's by themselves costs more than to check
them. While one convoy is on its way the next gathers.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future

# Makes lines durable; see `store.protocol.Store.append`. With too much waiting it says BusyError, see there.
Append = Callable[[Sequence[bytes]], "Future[None]"]


class Convoy:
    """For one event loop."""

    def __init__(self, append: Append) -> None:
        self._append = append
        self._lines: list[bytes] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._under_way = False

    def join(self, lines: Sequence[bytes]) -> "asyncio.Future[None]":
        """Done when the lines are durable; OSError if they are not."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._lines += lines
        self._waiting.append(done)
        if not self._under_way:
            self._under_way = True
            # Whoever is ready to send at this moment comes along.
            loop.call_soon(self._leave, loop)
        return done

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        lines, waiting = self._lines, self._waiting
        self._lines, self._waiting = [], []
        self._under_way = bool(waiting)
        if not waiting:
            return
        try:
            stored = self._append(lines)
        except OSError as error:
            self._arrive(loop, waiting, error)
            return
        stored.add_done_callback(
            lambda stored: loop.call_soon_threadsafe(self._arrive, loop, waiting, stored.exception())
        )

    def _arrive(
        self, loop: asyncio.AbstractEventLoop, waiting: "list[asyncio.Future[None]]", error: BaseException | None
    ) -> None:
        for done in waiting:
            # A request that was broken off waits no more.
            if done.cancelled():
                continue
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)
        self._leave(loop)
