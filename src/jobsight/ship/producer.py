"""Parcels to Kafka's brokers, each followed until a broker says that it has it.

A parcel that is under way stays under way: the client library goes on trying for as long as we live, so nothing
overtakes anything and nothing is sent twice while a broker is away. Whoever asks again about the same frames is told
what has become of them meanwhile. Only a new life sends again what the last one had no report of.
"""

import zlib
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, Protocol

from jobsight.clock import Clock
from jobsight.schema.units import Seconds
from jobsight.schema.wire import GZIP, compress
from jobsight.ship.courier import Outcome, later
from jobsight.ship.spool import Frame

# How long one look for reports takes at most: an agent that stops does not wait longer for us to notice.
LOOK = 0.5

SILENCE = "no broker has said yet that it has them"

# The protocol's numbers for "never": too large, no such name for a topic, batch too large, refused by validation.
NEVER = frozenset({10, 17, 18, 87})
# The client library's own number for "all brokers are down".
ALL_DOWN = -187


class Parcel(NamedTuple):
    """What Kafka calls a record: those with one topic and one key stay in order."""

    topic: str
    key: bytes
    value: bytes


def pack(parcel: Parcel) -> bytes:
    """As it waits in the spool."""
    return compress(b"%s %d\n%s%s" % (parcel.topic.encode("ascii"), len(parcel.key), parcel.key, parcel.value))


def unpack(payload: bytes) -> Parcel:
    """ValueError if it is none of ours."""
    try:
        head, _, rest = zlib.decompress(payload, GZIP).partition(b"\n")
    except zlib.error as error:
        raise ValueError(f"expected a packed parcel, got {payload[:20]!r}: {error}") from None
    words = head.split(b" ")
    if len(words) != 2 or not words[1].isdigit():
        raise ValueError(f"expected a topic and the length of a key, got {head[:60]!r}")
    length = int(words[1])
    return Parcel(words[0].decode("ascii"), rest[:length], rest[length:])


class Client(Protocol):
    """The part of the client library that is used."""

    def produce(self, topic: str, value: bytes, key: bytes, *, on_delivery: Callable[[Any, Any], None]) -> None: ...

    def poll(self, timeout: float) -> int: ...

    def purge(self) -> None: ...

    def flush(self, timeout: float) -> int: ...


class State(Enum):
    AIR = 0
    """Under way."""
    LANDED = 1
    """On the brokers, on as many as the topic asks for."""
    FAILED = 2
    """Not this time."""
    REFUSED = 3
    """Never."""


class Flight:
    """One parcel under way."""

    __slots__ = ("alone", "reason", "state")

    def __init__(self, *, alone: bool) -> None:
        self.alone = alone
        self.state = State.AIR
        self.reason = ""

    def report(self, error: Any, _parcel: Any = None) -> None:
        """What the client library calls when it knows."""
        if error is None:
            self.state = State.LANDED
            return
        self.state = State.REFUSED if error.code() in NEVER else State.FAILED
        self.reason = error.str()


Mark = tuple[int, int]


def mark(frame: Frame) -> Mark:
    """Where the spool stands after a frame: what tells it from all others, in their order."""
    return frame.segment, frame.end


class Producer:
    """A client, and the parcels it has not reported on."""

    def __init__(
        self,
        config: dict[str, Any],
        timeout: Seconds,
        clock: Clock,
        hurried: Callable[[], bool],
        connect: Callable[[dict[str, Any]], Client] | None = None,
    ) -> None:
        """ValueError if the client library cannot work with such a configuration."""
        self._config = {**config, "error_cb": self._on_error}
        self._timeout = timeout
        self._clock = clock
        self._hurried = hurried
        self._connect = connect or confluent
        self._flights: dict[Mark, Flight] = {}
        self._fatal = False
        self._down = False
        self._error = ""
        self._client: Client | None = self._connect(self._config)

    def deliver(self, frames: list[Frame]) -> Outcome:
        """For a courier: how many of these are on the brokers by now."""
        self._forget_before(mark(frames[0]))
        self._fly(frames)
        first = self._flights.get(mark(frames[0]))
        if first and first.state is State.REFUSED and not first.alone:
            # Brokers refuse all that came in one batch because of one.
            del self._flights[mark(frames[0])]
            self._fly(frames[:1])
        outcome = self._outcome(frames)
        if self._fatal:
            self.close()
        return outcome

    def close(self) -> None:
        """Call back what is under way; what a broker took all the same is sent again in the next life."""
        if self._client is not None:
            self._client.purge()
            self._client.flush(LOOK)
        self._client = None
        self._flights = {key: flight for key, flight in self._flights.items() if flight.state is State.LANDED}

    def _forget_before(self, first: Mark) -> None:
        gone = [self._flights.pop(key) for key in sorted(self._flights) if key < first]
        if any(flight.state is State.AIR for flight in gone):
            # The spool has dropped what is under way. The client must not hold what the spool has no room for.
            self.close()

    def _fly(self, frames: list[Frame]) -> None:
        """Send what is not under way yet, and wait for reports."""
        if self._client is None:
            self._client = self._connect(self._config)
            self._fatal = False
        # What happened while nobody looked is known first: brokers that were down may be back.
        self._client.poll(0)
        self._down = False
        for frame in frames:
            if mark(frame) not in self._flights and not self._launch(self._client, frame, alone=len(frames) == 1):
                break
        end = self._clock.steady() + self._timeout
        while self._in_the_air(frames) and not (self._down or self._fatal or self._hurried()):
            if self._clock.steady() > end:
                break
            self._client.poll(LOOK)

    def _launch(self, client: Client, frame: Frame, *, alone: bool) -> bool:
        """False if the client has no room for more just now."""
        from confluent_kafka import KafkaException

        flight = self._flights[mark(frame)] = Flight(alone=alone)
        try:
            parcel = unpack(frame.payload)
            client.produce(parcel.topic, parcel.value, parcel.key, on_delivery=flight.report)
        except BufferError:
            del self._flights[mark(frame)]
            return False
        except ValueError as error:
            flight.alone, flight.state, flight.reason = True, State.REFUSED, str(error)
        except KafkaException as error:
            # The client's own word is about this one alone.
            flight.alone = True
            flight.report(error.args[0])
            self._fatal = self._fatal or error.args[0].fatal()
        return True

    def _in_the_air(self, frames: list[Frame]) -> bool:
        flights = (self._flights.get(mark(frame)) for frame in frames)
        return any(flight.state is State.AIR for flight in flights if flight)

    def _outcome(self, frames: list[Frame]) -> Outcome:
        done, never, reason = 0, 0, ""
        for frame in frames:
            flight = self._flights.get(mark(frame))
            if flight is None or not (
                flight.state is State.LANDED or (flight.state is State.REFUSED and flight.alone)
            ):
                break
            done += 1
            if flight.state is State.REFUSED:
                never, reason = never + 1, reason or flight.reason
        if done:
            self._error = ""
        # What failed is tried again; what landed behind it is not.
        failed = [key for key, flight in self._flights.items() if flight.state is State.FAILED]
        why = self._flights.pop(failed[0]).reason if failed else ""
        for key in failed[1:]:
            del self._flights[key]
        return Outcome(done, never, reason) if done else later(why or self._error or SILENCE)

    def _on_error(self, error: Any) -> None:
        """What the client library calls, within `poll`, when something happened to a connection."""
        self._fatal = self._fatal or error.fatal()
        if error.code() == ALL_DOWN:
            self._down = True
            self._error = self._error or error.str()
        else:
            self._error = error.str()


def installed() -> bool:
    """Whether there is a client library."""
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        return False
    return True


def confluent(config: dict[str, Any]) -> Client:
    """The real client. Imported here: 13 MiB that only those pay who send to Kafka."""
    from confluent_kafka import KafkaException
    from confluent_kafka import Producer as Real

    try:
        client: Client = Real(config)
    except KafkaException as error:
        raise ValueError(error.args[0].str()) from None
    return client
