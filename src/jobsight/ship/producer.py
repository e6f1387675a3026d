"""Parcels to Kafka's brokers, each followed until a broker says that it has it.

Of each topic one parcel is under way at a time: brokers that come back refuse some for a moment, and what was sent
behind those would overtake them. A parcel that is under way stays under way: the client library goes on trying for as
long as we live. Whoever asks again about the same frames is told what has become of them meanwhile. Only a new life
sends again what the last one had no report of.

A parcel that is too large for the brokers goes in parts, one after the other: see `part`.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

from jobsight.clock import Clock
from jobsight.schema.units import Seconds
from jobsight.ship.courier import Outcome, later
from jobsight.ship.parcel import opened, unpack
from jobsight.ship.part import HEADER, Part, cut
from jobsight.ship.spool import Frame

# How long one look for reports takes at most: an agent that stops does not wait longer for us to notice.
LOOK = 0.5

SILENCE = "no broker has said yet that it has them"

# The protocol's numbers for "too large", of a message and of a batch, which is the same here.
TOO_LARGE = frozenset({10, 18})
# And for "never": no such name for a topic, refused by validation.
NEVER = frozenset({17, 87})
# What is larger, packed, goes in parts: brokers take 1 MiB unless they are told otherwise. Brokers that take less say
# so, and parts get smaller; below the least there is no use in trying.
LARGEST = 900 * 2**10
LEAST = 2**10
# The client library's own number for "all brokers are down".
ALL_DOWN = -187


class Client(Protocol):
    """The part of the client library that is used."""

    def produce(
        self,
        topic: str,
        value: bytes,
        key: bytes,
        *,
        on_delivery: Callable[[Any, Any], None],
        headers: list[Any],
    ) -> None: ...

    def poll(self, timeout: float) -> int: ...

    def purge(self) -> None: ...

    def flush(self, timeout: float) -> int: ...


class State(Enum):
    READY = 0
    """Waits to be sent, or its next part does."""
    AIR = 1
    """Under way."""
    LANDED = 2
    """On the brokers, on as many as the topic asks for."""
    FAILED = 3
    """Not this time."""
    LARGE = 4
    """Not in one piece."""
    REFUSED = 5
    """Never."""


class Flight:
    """One parcel under way, whole or the first of its parts."""

    __slots__ = ("parts", "reason", "state")

    def __init__(self) -> None:
        self.state = State.READY
        self.reason = ""
        self.parts: list[Part] = []
        """Those that have not landed."""

    def report(self, error: Any, _parcel: Any = None) -> None:
        """What the client library calls when it knows."""
        if error is None:
            del self.parts[:1]
            self.state = State.READY if self.parts else State.LANDED
        elif error.code() in TOO_LARGE:
            self.state, self.reason = State.LARGE, error.str()
        elif error.code() in NEVER:
            self.refuse(error.str())
        else:
            self.state, self.reason = State.FAILED, error.str()

    def refuse(self, reason: str) -> None:
        self.state, self.reason = State.REFUSED, reason


Mark = tuple[int, int]


def mark(frame: Frame) -> Mark:
    """Where the spool stands after a frame: what tells it from all others, in their order."""
    return frame.segment, frame.end


def by_topic(frames: list[Frame]) -> list[list[Frame]]:
    """Each topic's frames, the oldest last."""
    lanes: dict[bytes, list[Frame]] = {}
    for frame in frames:
        lanes.setdefault(frame.payload.partition(b" ")[0], []).append(frame)
    return [lane[::-1] for lane in lanes.values()]


class Producer:
    """A client, and the parcels it has not reported on."""

    def __init__(
        self,
        config: dict[str, Any],
        timeout: Seconds,
        clock: Clock,
        hurried: Callable[[], bool],
        connect: Callable[[dict[str, Any]], Client] | None = None,
        *,
        divisible: bool = True,
    ) -> None:
        """`divisible` if those who read know about parts. ValueError if the client library cannot work with such a
        configuration.
        """
        self._config = {**config, "error_cb": self._on_error}
        self._timeout = timeout
        self._clock = clock
        self._hurried = hurried
        self._connect = connect or confluent
        self._flights: dict[Mark, Flight] = {}
        self._divisible = divisible
        self._largest = LARGEST
        self._fatal = False
        self._down = False
        self._error = ""
        self._client: Client | None = self._connect(self._config)

    def deliver(self, frames: list[Frame]) -> Outcome:
        """For a courier: how many of these are on the brokers by now."""
        self._forget_before(mark(frames[0]))
        self._fly(frames)
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
        lanes = by_topic(frames)
        end = self._clock.steady() + self._timeout
        while lanes := [lane for lane in lanes if self._advance(self._client, lane)]:
            if self._down or self._fatal or self._hurried() or self._clock.steady() > end:
                return
            self._client.poll(LOOK)

    def _advance(self, client: Client, lane: list[Frame]) -> bool:
        """Launch a topic's next parcel when the one before has landed; False if there is none to wait for."""
        while lane:
            flight = self._flights.get(mark(lane[-1])) or self._entered(lane[-1])
            if flight.state is State.LARGE:
                self._divide(flight, lane[-1])
            if flight.state is State.READY:
                self._launch(client, flight, lane[-1])
            if flight.state is State.AIR:
                return True
            if flight.state is State.FAILED:
                return False
            if flight.state in (State.LANDED, State.REFUSED):
                lane.pop()
        return False

    def _entered(self, frame: Frame) -> Flight:
        flight = self._flights[mark(frame)] = Flight()
        try:
            packed = opened(frame.payload).value
        except ValueError as error:
            flight.refuse(str(error))
        else:
            if self._divisible and len(packed) > self._largest:
                flight.parts = list(cut(packed, self._largest))
        return flight

    def _divide(self, flight: Flight, frame: Frame) -> None:
        """Smaller parts of what has not landed; what comes later is cut like this from the beginning."""
        packed = opened(frame.payload).value
        start, size = (flight.parts[0].start, len(flight.parts[0].content)) if flight.parts else (0, len(packed))
        if not self._divisible or size <= LEAST:
            flight.refuse(flight.reason)
            return
        self._largest = max(LEAST, min(self._largest, size // 2))
        flight.parts = [part for part in cut(packed, self._largest) if part.end > start]
        flight.state = State.READY

    def _launch(self, client: Client, flight: Flight, frame: Frame) -> None:
        from confluent_kafka import KafkaException

        flight.state = State.AIR
        part = flight.parts[0] if flight.parts else None
        try:
            parcel = opened(frame.payload)._replace(value=part.content) if part else unpack(frame.payload)
            headers = [(HEADER, part.header())] if part else []
            client.produce(parcel.topic, parcel.value, parcel.key, on_delivery=flight.report, headers=headers)
        except BufferError as error:
            flight.state, flight.reason = State.FAILED, str(error)
        except ValueError as error:
            flight.refuse(str(error))
        except KafkaException as error:
            flight.report(error.args[0])
            self._fatal = self._fatal or error.args[0].fatal()

    def _outcome(self, frames: list[Frame]) -> Outcome:
        done, never, reason = 0, 0, ""
        for frame in frames:
            flight = self._flights.get(mark(frame))
            if flight is None or flight.state not in (State.LANDED, State.REFUSED):
                break
            done += 1
            if flight.state is State.REFUSED:
                never, reason = never + 1, reason or flight.reason
        # What failed is tried again; what landed behind it, in other topics, is not.
        failed = [key for key, flight in self._flights.items() if flight.state is State.FAILED]
        why = [self._flights.pop(key).reason for key in failed]
        if done:
            self._error = ""
            return Outcome(done, never, reason)
        return later(why[0] if why else self._error or SILENCE)

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
