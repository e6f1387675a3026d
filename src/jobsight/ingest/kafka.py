"""Messages from Kafka into the store: one member of a consumer group, in a thread of the server.

The brokers are told of a position only when the store has all that stands before it. Whoever is killed in between,
the brokers send those messages again, to us or to another member, and the store keeps one of each. What came in parts
counts as not read until all of them are here.
"""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from jobsight.ingest.accept import Refused, accept
from jobsight.ingest.assembly import Assembly, Record
from jobsight.ingest.convoy import Append
from jobsight.ingest.quarantine import Quarantine
from jobsight.ingest.subscription import Client, config, confluent, pattern
from jobsight.serving import Kafka
from jobsight.ship.part import HEADER
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
# The client library's own number for "a connection broke".
TRANSPORT = -195


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
        self._assembly = Assembly()
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
                self._assembly.confine(self._ours())
                if (records or self._assembly.overdue(time.monotonic())) and self._keep(records):
                    self._tell(records)
            except KafkaException as error:
                self._on_error(error.args[0])
                self._past_use = True
            except Exception as error:  # noqa: BLE001
                # Nobody foresaw it. A thread that ends here would leave a server that looks well and reads nothing.
                say(f"reading from Kafka failed and is tried again: {error}")
                self._past_use = True
            if self._past_use:
                self._replace()
        self._client.close()

    def _replace(self) -> None:
        """Another client, which begins where the brokers know us to be."""
        self._client.close()
        self._held, self._paused, self._assembly = [], False, Assembly()
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
        return Record(got.topic(), got.partition(), got.offset(), got.value() or b"", part_header(got))

    def _keep(self, records: Sequence[Record]) -> bool:
        """Have the store take them, however long that lasts; False if we were stopped before."""
        now = time.monotonic()
        wholes = [self._assembly.take(record, now) for record in records]
        judged = [judge(found) if isinstance(found, Record) else found for found in wholes]
        good = [found for found in judged if isinstance(found, bytes)]
        bad = [found for found in judged if isinstance(found, Refused)] + self._assembly.given_up(now)
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

        for (topic, partition), offset in self._assembly.reached(records).items():
            # A partition that is no longer ours: its new owner has read these again.
            with suppress(KafkaException):
                self._client.store_offsets(offsets=[TopicPartition(topic, partition, offset)])

    def _ours(self) -> set[tuple[str, int]]:
        """The partitions we read."""
        return {(part.topic, part.partition) for part in self._client.assignment()}

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
            # While nobody could send, nobody could send the rest.
            self._assembly.renew(time.monotonic())
            self._said = {key for key in self._said if key[1]}


def part_header(got: Any) -> bytes | None:
    """What a record says of the whole it is a part of. Of headers the client library cannot read none is ours."""
    try:
        found = dict(got.headers() or ()).get(HEADER)
    except (ValueError, TypeError, SystemError):
        return None
    return found if isinstance(found, bytes) else None


def say(text: str) -> None:
    print(f"jobsight: {text}", file=sys.stderr, flush=True)


def judge(record: Record) -> bytes | Refused:
    """A record's message as it is kept, or why not, and where it stood."""
    try:
        found = accept(record.value)
    except (RecursionError, OverflowError, ValueError) as error:
        # Nobody foresaw it, and the partition must go on.
        found = Refused(record.value, "$", str(error))
    return record.placed(found) if isinstance(found, Refused) else found.line
