"""Many requests share one append, and each hears how it went."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future

import pytest

from jobsight.ingest.convoy import Convoy
from jobsight.ingest.limit import BusyError


class Slow:
    """A store that answers when it is told to."""

    def __init__(self) -> None:
        self.appended: list[list[bytes]] = []
        self.done: list[Future[None]] = []

    def append(self, lines: Sequence[bytes]) -> "Future[None]":
        self.appended.append(list(lines))
        self.done.append(Future())
        return self.done[-1]


async def turn() -> None:
    """Let everything that is ready happen."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_lines_that_come_while_others_are_written_go_together_afterwards() -> None:
    async def story() -> None:
        store = Slow()
        convoy = Convoy(store.append)
        first = [convoy.join([b"a"]), convoy.join([b"b", b"c"])]
        await turn()
        later = [convoy.join([b"d"]), convoy.join([b"e"])]
        await turn()
        assert store.appended == [[b"a", b"b", b"c"]]
        store.done[0].set_result(None)
        await asyncio.gather(*first)
        await turn()
        assert store.appended == [[b"a", b"b", b"c"], [b"d", b"e"]]
        assert not any(done.done() for done in later), "acknowledged before it was durable"
        store.done[1].set_result(None)
        await asyncio.gather(*later)

    asyncio.run(story())


def test_an_append_that_fails_is_heard_by_each_and_the_next_goes_on() -> None:
    async def story() -> None:
        store = Slow()
        convoy = Convoy(store.append)
        both = [convoy.join([b"a"]), convoy.join([b"b"])]
        await turn()
        store.done[0].set_exception(OSError(28, "No space left on device"))
        for done in both:
            with pytest.raises(OSError, match="No space left"):
                await done
        again = convoy.join([b"a"])
        await turn()
        store.done[1].set_result(None)
        await again

    asyncio.run(story())


def test_a_store_that_refuses_at_once_is_heard_too() -> None:
    def busy(_: Sequence[bytes]) -> "Future[None]":
        raise BusyError("too much waits")

    async def story() -> None:
        convoy = Convoy(busy)
        for _ in range(2):
            with pytest.raises(BusyError, match="too much waits"):
                await convoy.join([b"a"])

    asyncio.run(story())


def test_a_request_that_was_broken_off_holds_up_nobody() -> None:
    async def story() -> None:
        store = Slow()
        convoy = Convoy(store.append)
        gone, stays = convoy.join([b"a"]), convoy.join([b"b"])
        await turn()
        gone.cancel()
        store.done[0].set_result(None)
        await stays
        assert store.appended == [[b"a", b"b"]]

    asyncio.run(story())
