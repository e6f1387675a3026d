"""What becomes of parcels, told by a client that does as it is told."""

import secrets
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from jobsight.clock import SystemClock
from jobsight.schema.units import Seconds
from jobsight.schema.wire import GZIP
from jobsight.ship import part
from jobsight.ship.courier import Outcome
from jobsight.ship.parcel import Parcel, pack, unpack
from jobsight.ship.producer import SILENCE, Producer
from jobsight.ship.spool import Frame

TOO_LARGE = 10
UNKNOWN_TOPIC = 3


class Client:
    """Reports on parcels when polled: what `judge` says of all that are under way together."""

    def __init__(self, judge: Callable[[list[bytes]], dict[bytes, int]], room: int = 1000) -> None:
        self.judge = judge
        self.room = room
        self.silent = False
        self.under_way: list[tuple[bytes, Callable[[Any, Any], None]]] = []
        self.launched: list[bytes] = []
        self.headers: list[bytes] = []
        self.landed: list[bytes] = []
        self.purged = False

    def produce(
        self,
        topic: str,
        value: bytes,
        key: bytes,
        *,
        on_delivery: Callable[[Any, Any], None],
        headers: list[tuple[str, bytes]],
    ) -> None:
        assert topic in ("t", "other")
        assert key == b"n1"
        if len(self.under_way) >= self.room:
            raise BufferError
        self.launched.append(value)
        self.headers += [text for name, text in headers if name == part.HEADER]
        self.under_way.append((value, on_delivery))

    def poll(self, timeout: float) -> int:
        if self.silent or not timeout:
            return 0
        codes = self.judge([value for value, _ in self.under_way])
        for value, report in self.under_way:
            report(KafkaError(codes[value]) if value in codes else None, None)
            self.landed += [value] * (value not in codes)
        self.under_way = []
        return 1

    def purge(self) -> None:
        self.purged = True

    def flush(self, timeout: float) -> int:
        return 0 if timeout > 0 else len(self.under_way)


def frames(*values: bytes) -> list[Frame]:
    return [Frame(pack(Parcel("t", b"n1", value)), 1, 10 * n) for n, value in enumerate(values, 1)]


def producer(client: Client, *more: Client) -> Producer:
    clients = iter([client, *more])
    return Producer({}, Seconds(0.05), SystemClock(), lambda: False, lambda _: next(clients))


def takes_all(_: list[bytes]) -> dict[bytes, int]:
    return {}


@pytest.mark.parametrize("key", [b"n1", b"", b"a\nb c", "ø".encode()])
def test_a_parcel_comes_out_of_the_spool_as_it_went_in(key: bytes) -> None:
    parcel = Parcel("fox.load", key, b'{"a":\n 1}')
    assert unpack(pack(parcel)) == parcel


def test_what_is_under_way_is_not_sent_again_and_is_done_when_it_landed() -> None:
    client = Client(takes_all)
    client.silent = True
    sender = producer(client)
    first = sender.deliver(frames(b"a", b"b"))
    assert (first.done, first.reason) == (0, SILENCE)
    client.silent = False
    assert sender.deliver(frames(b"a", b"b", b"c")) == Outcome(3)
    assert client.launched == [b"a", b"b", b"c"]


def test_one_too_large_is_refused_and_its_neighbours_are_not() -> None:
    sender = producer(Client(lambda _: {b"large": TOO_LARGE}))
    outcome = sender.deliver(frames(b"a", b"large", b"b"))
    assert (outcome.done, outcome.refused) == (3, 1)
    assert "too large" in outcome.reason


def noise(size: int) -> bytes:
    """Text that does not shrink to less than half of it, packed."""
    return secrets.token_hex(size // 2).encode()


def too_large_above(size: int) -> Callable[[list[bytes]], dict[bytes, int]]:
    return lambda values: {value: TOO_LARGE for value in values if len(value) > size}


def joined(client: Client) -> bytes:
    """What a reader makes of the parts that landed."""
    told = dict(zip(client.launched[-len(client.headers) :], client.headers, strict=True))
    whole = part.join([part.parse(told[value], value) for value in client.landed if value in told])
    assert whole
    return zlib.decompress(whole, GZIP)


def test_one_too_large_goes_in_parts_that_get_smaller_until_brokers_take_them() -> None:
    client, large = Client(too_large_above(20_000)), noise(200_000)
    sender = producer(client)
    assert sender.deliver(frames(large)) == Outcome(1)
    assert joined(client) == large
    assert max(map(len, client.landed)) <= 20_000
    # What brokers take is known by now: the next is cut before it is sent.
    refused = len(client.launched) - len(client.landed)
    assert sender.deliver([Frame(pack(Parcel("t", b"n1", noise(100_000))), 2, 10)]) == Outcome(1)
    assert len(client.launched) - len(client.landed) == refused


def test_parts_follow_each_other_and_nothing_comes_between() -> None:
    client, large = Client(too_large_above(20_000)), noise(80_000)
    sender = producer(client)
    assert sender.deliver(frames(b"a", large, b"b")) == Outcome(3)
    assert (client.landed[0], client.landed[-1]) == (b"a", b"b")
    starts = [part.parse(header, b"x").start for header in client.headers[-(len(client.landed) - 2) :]]
    assert starts == sorted(starts)


def test_a_part_that_failed_for_a_moment_is_sent_again() -> None:
    client, large = Client(too_large_above(20_000)), noise(80_000)
    sender = producer(client)
    sender.deliver(frames(large))
    seen: list[bytes] = []

    def fails_once(values: list[bytes]) -> dict[bytes, int]:
        seen.extend(values)
        return dict.fromkeys(values, UNKNOWN_TOPIC) if len(seen) == 2 else {}

    client.judge, again = fails_once, [Frame(pack(Parcel("t", b"n1", noise(80_000))), 2, 10)]
    client.landed, client.launched, client.headers = [], [], []
    assert sender.deliver(again).done == 0
    assert sender.deliver(again) == Outcome(1)
    assert joined(client) == unpack(again[0].payload).value


def test_what_others_read_is_not_divided() -> None:
    client = Client(too_large_above(20_000))
    sender = Producer({}, Seconds(0.05), SystemClock(), lambda: False, lambda _: client, divisible=False)
    outcome = sender.deliver(frames(b"a", noise(80_000), b"b"))
    assert (outcome.done, outcome.refused) == (3, 1)
    assert client.headers == []


def test_brokers_that_take_nothing_at_all_end_in_a_refusal() -> None:
    client = Client(too_large_above(100))
    outcome = producer(client).deliver(frames(noise(8_000)))
    assert (outcome.done, outcome.refused) == (1, 1)


def test_nothing_overtakes_what_failed_for_a_moment() -> None:
    """As brokers do that come back: one is refused, and the next would be taken."""
    codes = {b"b": UNKNOWN_TOPIC}
    client = Client(lambda _: codes)
    sender = producer(client)
    waiting = frames(b"a", b"b", b"c", b"d")
    assert sender.deliver(waiting) == Outcome(1)
    assert sender.deliver(waiting[1:]).done == 0
    codes.clear()
    assert sender.deliver(waiting[1:]) == Outcome(3)
    assert client.landed == [b"a", b"b", b"c", b"d"]


def test_topics_do_not_wait_for_each_other() -> None:
    client = Client(takes_all)
    client.silent = True
    sender = producer(client)
    sender.deliver([*frames(b"a", b"b"), Frame(pack(Parcel("other", b"n1", b"c")), 2, 10)])
    assert client.launched == [b"a", b"c"]


def test_what_failed_is_sent_again_and_what_landed_in_other_topics_is_not() -> None:
    codes = {b"a": UNKNOWN_TOPIC}
    client = Client(lambda _: codes)
    sender = producer(client)
    waiting = [*frames(b"a"), Frame(pack(Parcel("other", b"n1", b"b")), 2, 10)]
    first = sender.deliver(waiting)
    assert first.done == 0
    assert "nknown topic" in first.reason
    codes.clear()
    assert sender.deliver(waiting) == Outcome(2)
    assert client.launched == [b"a", b"b", b"a"]


def test_what_the_spool_dropped_meanwhile_is_called_back_and_the_rest_goes_on() -> None:
    client, fresh = Client(takes_all), Client(takes_all)
    client.silent = True
    sender = producer(client, fresh)
    sender.deliver(frames(b"a", b"b"))
    assert client.launched == [b"a"]
    assert sender.deliver(frames(b"a", b"b", b"c")[1:]) == Outcome(2)
    assert client.purged
    assert fresh.launched == [b"b", b"c"]


def test_what_was_done_is_no_reason_to_begin_anew() -> None:
    client = Client(takes_all)
    sender = producer(client)
    for number in range(3):
        assert sender.deliver([frames(b"a", b"b", b"c")[number]]) == Outcome(1)
    assert len(sender._flights) == 1


def test_a_client_with_no_room_takes_the_rest_next_time() -> None:
    client = Client(takes_all, room=1)
    sender = producer(client)
    waiting = [*frames(b"a"), Frame(pack(Parcel("other", b"n1", b"b")), 2, 10)]
    assert sender.deliver(waiting) == Outcome(1)
    assert sender.deliver(waiting[1:]) == Outcome(1)
    assert client.launched == [b"a", b"b"]


def test_a_client_that_can_go_no_further_is_replaced() -> None:
    class Broken(Client):
        def produce(self, *_: Any, **__: Any) -> None:
            raise KafkaException(KafkaError(KafkaError._FATAL, "out of step", fatal=True))

    broken, fresh = Broken(takes_all), Client(takes_all)
    sender = producer(broken, fresh)
    first = sender.deliver(frames(b"a"))
    assert (first.done, first.reason) == (0, "out of step")
    assert broken.purged
    assert sender.deliver(frames(b"a")) == Outcome(1)


def test_a_frame_that_is_no_parcel_is_refused_and_blocks_nobody() -> None:
    sender = producer(Client(takes_all))
    outcome = sender.deliver([Frame(b"nonsense", 1, 5), *frames(b"a")])
    assert (outcome.done, outcome.refused) == (2, 1)
    assert "expected a topic and the length of a key" in outcome.reason
