"""What is read from Kafka, and how: the topics, the group, the client library's words for it."""

from collections.abc import Callable
from typing import Any, Protocol

from jobsight import catalogue
from jobsight.serving import Kafka
from jobsight.ship import kafka as ship

# Milliseconds: a member that was killed holds its partitions for this long.
SESSION = 10_000
# Milliseconds: topics of a new cluster or collector are found after this long.
REFRESH = 10_000
# Kilobytes the client fetches ahead.
AHEAD = 16 * 2**10
# The settings a client that reads has in common with one that writes.
SHARED = ("bootstrap.", "client.", "security.", "ssl.", "sasl.")


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
