"""Messages from Kafka into the store: one member of a consumer group, in a thread of the server.

The brokers are told of a position only when the store has all that stands before it. Whoever is killed in between,
the brokers send those messages again, to us or to another member, and the store keeps one of each.
"""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from jobsight import catalogue
from jobsight.ingest.accept import Refused, accept
from jobsight.ingest.http import Append
from jobsight.ingest.quarantine import Quarantine
from jobsight.settings import Kafka
from jobsight.ship import kafka as ship
from jobsight.ship.producer import ALL_DOWN

# What comes within so many seconds of the first goes to the store together, up to so many bytes.
LINGER = 0.25
GROUP = 4 * 2**20
# What a held record costs besides its bytes.
OVERHEAD = 256
# How long one look for records takes at most: a server that stops does not wait longer for us to notice.
LOOK = 0.5
# Pauses while the store takes nothing, or after a client that is past use.
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
# Milliseconds: a member that was killed holds its partitions for this long.
SESSION = 10_000
# Milliseconds: topics of a new cluster or collector are found after this long.
REFRESH = 10_000
# Kilobytes the client fetches ahead.
AHEAD = 16 * 2**10
# The client library's own number for "a connection broke".
TRANSPORT = -195

# The settings a client that reads has in common with one that writes.
SHARED = ("bootstrap.", "client.", "security.", "ssl.", "sasl.")


class Record(NamedTuple):
    """One message of ours, and where it stands."""

    topic: str
    partition: int
    offset: int
    value: bytes


class Client(Protocol):
    """The part of the client library that is used."""

    def subscribe(self, topics: list[str], *, on_assign: Callable[[Any, list[Any]], None]) -> None: ...

    def poll(self, timeout: float) -> Any: ...

    def assignment(self) -> list[Any]: ...

    def incremental_assign(self, partitions: list[Any]) -> None: ...

    def pause(self, partitions: list[Any]) -> None: ...

    def resume(self, partitions: list[Any]) -> None: ...

    def store_offsets(self, *, offsets: list[Any]) -> None: ...

    def close(self) -> None: ...


class Consumer:
    """A client, the thread that reads with it, and what it said of trouble."""

    def __init__(
        self,
        options: Kafka,
        append: Append,
        quarantine: Quarantine,
        connect: Callable[[dict[str, Any]], Client] | None = None,
    ) -> None:
        """ValueError if the client library cannot work with such options."""
        self._config = {**config(options), "error_cb": self._on_error}
        self._pattern = pattern(options)
        self._append = append
        self._quarantine = quarantine
        self._connect = connect or confluent
        self._stopping = threading.Event()
        self._paused = False
        self._past_use = False
        self._held: list[Record] = []
        self._said: set[tuple[int, str]] = set()
        self._reason = ""
        self.accepted = 0
        self.refused = 0
        self._client = self._open()
        self._thread = threading.Thread(target=self._work, name="kafka", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish what is in hand, tell the brokers how far we got, and leave the group."""
        self._stopping.set()
        self._thread.join()

    def _open(self) -> Client:
        client = self._connect(self._config)
        client.subscribe([self._pattern], on_assign=self._on_assign)
        return client

    def _work(self) -> None:
        from confluent_kafka import KafkaException

        while not self._stopping.is_set():
            try:
                records = self._gather()
                if records and self._keep(records):
                    self._tell(records)
            except KafkaException as error:
                self._on_error(error.args[0])
                self._past_use = True
            if self._past_use:
                self._replace()
        self._client.close()

    def _replace(self) -> None:
        """Another client, which begins where the brokers know us to be."""
        self._client.close()
        self._held, self._paused = [], False
        while self._past_use and not self._stopping.wait(FIRST_PAUSE):
            # A file the settings name may be away for a moment.
            with suppress(ValueError):
                self._client = self._open()
                self._past_use = False

    def _gather(self) -> list[Record]:
        """The next records, in the order of each partition."""
        records, self._held = self._held, []
        size, end = 0, time.monotonic() + (LINGER if records else LOOK)
        while size < GROUP and (left := end - time.monotonic()) > 0 and not self._stopping.is_set():
            record = self._take(left)
            if record is None:
                continue
            if not records:
                end = time.monotonic() + LINGER
            records.append(record)
            size += len(record.value) + OVERHEAD
        return records

    def _take(self, timeout: float) -> Record | None:
        got = self._client.poll(timeout)
        if got is None:
            return None
        if error := got.error():
            self._on_error(error, got.topic() or "")
            return None
        self._well()
        return Record(got.topic(), got.partition(), got.offset(), got.value() or b"")

    def _keep(self, records: Sequence[Record]) -> bool:
        """Have the store take them, however long that lasts; False if we were stopped before."""
        judged = [judge(record) for record in records]
        good = [found for found in judged if isinstance(found, bytes)]
        bad = [found for found in judged if isinstance(found, Refused)]
        if not self._insist(lambda: self._append(good).exception() if good else None):
            return False
        self.accepted += len(good)
        if not self._insist(lambda: self._set_aside(bad)):
            return False
        self.refused += len(bad)
        return True

    def _set_aside(self, bad: list[Refused]) -> OSError | None:
        try:
            if bad:
                self._quarantine.keep(bad)
        except OSError as error:
            return error
        return None

    def _insist(self, act: Callable[[], BaseException | None]) -> bool:
        """Act until there is no error. Meanwhile nothing is fetched, but we stay in the group."""
        pause = FIRST_PAUSE
        while (error := act()) is not None:
            if not self._paused:
                say(f"the store takes nothing, so messages wait in Kafka: {error}")
                self._paused = True
                self._client.pause(self._client.assignment())
            end = time.monotonic() + pause
            while (left := end - time.monotonic()) > 0 and not self._stopping.is_set():
                # A record that was on its way is not lost: it comes first when this is over.
                if record := self._take(min(left, LOOK)):
                    self._held.append(record)
            if self._stopping.is_set():
                return False
            pause = min(2 * pause, LONGEST_PAUSE)
        if self._paused:
            say("the store takes messages from Kafka again")
            self._paused = False
            self._client.resume(self._client.assignment())
        return True

    def _tell(self, records: Sequence[Record]) -> None:
        """What the client library may commit; it does so every second, and when a partition is taken from us."""
        from confluent_kafka import KafkaException, TopicPartition

        reached = {(record.topic, record.partition): record.offset + 1 for record in records}
        for (topic, partition), offset in reached.items():
            # A partition that is no longer ours: its new owner has read these again.
            with suppress(KafkaException):
                self._client.store_offsets(offsets=[TopicPartition(topic, partition, offset)])

    def _on_assign(self, client: Client, partitions: list[Any]) -> None:
        """What the client library calls, within `poll`, before it begins to fetch."""
        self._well()
        if self._paused:
            client.incremental_assign(partitions)
            client.pause(partitions)

    def _on_error(self, error: Any, topic: str = "") -> None:
        """What the client library calls, within `poll`; each kind of trouble is said once until it is over."""
        self._past_use = self._past_use or error.fatal()
        key = (error.code(), topic)
        if error.code() == TRANSPORT:
            # One connection of several, which the client makes anew: trouble only when no broker is left.
            self._reason = error.str()
        elif key not in self._said:
            self._said.add(key)
            reason = f" ({self._reason})" if error.code() == ALL_DOWN and self._reason else ""
            say(f"reading from Kafka: {error.str()}{reason}")

    def _well(self) -> None:
        """The brokers answer. What is wrong with one topic stays so while others are read."""
        self._reason = ""
        if any(not topic for _, topic in self._said):
            say("reading from Kafka again")
            self._said = {key for key in self._said if key[1]}


def say(text: str) -> None:
    print(f"jobsight: {text}", file=sys.stderr, flush=True)


def judge(record: Record) -> bytes | Refused:
    """A record's message as it is kept, or why not, and where it stood."""
    try:
        found = accept(record.value)
    except (RecursionError, OverflowError, ValueError) as error:
        # Nobody foresaw it, and the partition must go on.
        found = Refused(record.value, "$", str(error))
    if isinstance(found, Refused):
        where = f"{record.topic}, partition {record.partition}, offset {record.offset}"
        return Refused(found.line, found.path, f"{found.reason} ({where})")
    return found.line


def pattern(options: Kafka) -> str:
    """The topics we read, as a POSIX regular expression. Those of collectors unknown here wait for a newer server."""
    words = [ship.topic(options.prefix)] if options.prefix else []
    words.append("|".join(ship.topic(name) for name in options.clusters))
    words.append("|".join(catalogue.collector_names()))
    return "^" + "[.]".join(f"({word.replace('.', '[.]') or '.+'})" for word in words) + "$"


def config(options: Kafka) -> dict[str, Any]:
    """The client library's words for it. ValueError if there is no password where one should be."""
    access = {key: value for key, value in options._asdict().items() if key in ship.Options._fields}
    return {
        **{key: value for key, value in ship.config(ship.Options(**access)).items() if key.startswith(SHARED)},
        "group.id": options.group,
        # A group that is new here starts with the oldest message there is.
        "auto.offset.reset": "earliest",
        # Committed every second: what `_tell` says, and not what was merely read.
        "enable.auto.commit": True,
        "auto.commit.interval.ms": 1000,
        "enable.auto.offset.store": False,
        # A member that comes or goes leaves the others' partitions with them.
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": SESSION,
        "topic.metadata.refresh.interval.ms": REFRESH,
        "queued.max.messages.kbytes": AHEAD,
        # Trouble is said by us, once.
        "log_level": 0,
    }


def confluent(config: dict[str, Any]) -> Client:
    """The real client."""
    from confluent_kafka import Consumer as Real
    from confluent_kafka import KafkaException

    try:
        client: Client = Real(config)
    except KafkaException as error:
        raise ValueError(error.args[0].str()) from None
    return client
