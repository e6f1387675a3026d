"""Messages to Kafka, through a spool on disk: topic `[prefix.]<cluster>.<collector>`, keyed by node.

The value is one message as JSON, as it stands on a line elsewhere; one that is too large for brokers goes in parts. A
message leaves the spool when all replicas that are in step have it. Needs confluent-kafka, which is an extra.
"""

import re
import zlib
from typing import Any, NamedTuple

from jobsight import files
from jobsight.schema.message import Message
from jobsight.schema.units import Seconds
from jobsight.schema.wire import encode
from jobsight.ship.courier import Courier
from jobsight.ship.parcel import Parcel, pack
from jobsight.ship.producer import Producer, installed
from jobsight.ship.sink import Place, Sink

# What one hand-over takes from the spool, packed.
BATCH = 256 * 2**10
# Brokers judge how large a batch may be after it is packed; the client would judge before, and refuse what they take.
LARGEST = 64 * 2**20
# A topic's name: the letters Kafka allows, and how many of them.
FOREIGN = re.compile(r"[^a-zA-Z0-9._-]")
LONGEST = 249

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Options(NamedTuple):
    """Where to send, and how."""

    brokers: tuple[str, ...]
    prefix: str | None = None
    tls: bool | None = None
    """If not set: with a CA file or a username, which is never sent in the clear unless somebody insists."""
    ca_file: str | None = None
    username: str | None = None
    password_file: str | None = None
    mechanism: str = "SCRAM-SHA-512"
    window: Seconds = Seconds(10.0)
    timeout: Seconds = Seconds(30.0)


def check(options: Options) -> None:
    """ValueError for what cannot work: told when the settings are read, not when the first message is due."""
    if not installed():
        raise ValueError("the kafka sink needs confluent-kafka: pip install 'jobsight[kafka]'")
    wrong = [name for name in options.brokers if not re.fullmatch(r"[^\s,/]+", name)]
    if wrong or not options.brokers:
        raise ValueError(f"expected brokers such as [kafka.example:9092], got {wrong or 'none'}")
    if options.prefix is not None and topic(options.prefix) != options.prefix:
        raise ValueError(f"expected a prefix of letters, digits, '.', '_' and '-', got {options.prefix!r}")
    if (options.username is None) != (options.password_file is None):
        raise ValueError("username and password_file go together")
    if options.mechanism not in MECHANISMS:
        raise ValueError(f"expected a mechanism out of {', '.join(MECHANISMS)}, got {options.mechanism!r}")
    if options.tls is False and options.ca_file is not None:
        raise ValueError("a ca_file without tls")


class Kafka(Courier):
    def __init__(self, options: Options, place: Place, name: str = "kafka", *, divisible: bool = True) -> None:
        """`name` is that of the sink, which has its spool to itself; `divisible` if its readers know about parts.
        ValueError for what the client cannot use.
        """
        self._options = options
        made = config(options)
        self._producer = Producer(made, options.timeout, place.clock, self.hurried, divisible=divisible)
        # In any order they are the same brokers, and theirs is the spool.
        brokers = ",".join(sorted(options.brokers))
        whole = " ".join((brokers, options.prefix or ""))
        where = f"{name}-{zlib.crc32(whole.encode()):08x}"
        super().__init__(where, f"kafka {brokers}", self._producer.deliver, place, window=options.window, batch=BATCH)

    def send(self, message: Message) -> None:
        value = encode(message).removesuffix(b"\n")
        self.produce(message.origin.cluster, message.collector, message.origin.node, value)

    def produce(self, cluster: str, kind: str, node: str, value: bytes) -> None:
        """Take one value for the topic of this cluster and kind. OSError if it cannot be kept."""
        name = topic(self._options.prefix, cluster, kind)
        self.put(pack(Parcel(name, node.encode("utf-8", "backslashreplace"), value)))

    def close(self) -> None:
        super().close()
        self._producer.close()


def topic(*words: str | None) -> str:
    """A name Kafka allows. The message inside says who it is from, so two that become one do no harm."""
    return FOREIGN.sub("_", ".".join(word for word in words if word))[:LONGEST]


def config(options: Options) -> dict[str, Any]:
    """The client library's words for it."""
    tls = bool(options.ca_file or options.username) if options.tls is None else options.tls
    made = {
        "bootstrap.servers": ",".join(options.brokers),
        "client.id": "jobsight",
        "acks": "all",
        "enable.idempotence": True,
        # For ever: the spool says when a message is too old.
        "message.timeout.ms": 0,
        "message.max.bytes": LARGEST,
        # Nothing comes to go with it: see `producer`.
        "linger.ms": 0,
        "compression.type": "gzip",
        "compression.level": 1,
        # As Java's clients do it, so that a node's messages meet whoever sends them.
        "partitioner": "murmur2_random",
        # The courier says what is wrong, once.
        "log_level": 0,
        "security.protocol": ("SASL_" if options.username else "") + ("SSL" if tls else "PLAINTEXT"),
    }
    if tls:
        made["ssl.endpoint.identification.algorithm"] = "https"
    if options.ca_file:
        made["ssl.ca.location"] = options.ca_file
    if options.username and options.password_file:
        made["sasl.mechanism"] = options.mechanism
        made["sasl.username"] = options.username
        made["sasl.password"] = _password(options.password_file)
    return made


def _password(path: str) -> str:
    text = files.read_at(path, 0, 4096).decode("utf-8", "replace").strip()
    if not text:
        raise ValueError(f"expected a password in {path}, got nothing")
    return text


def open_sink(options: Options, place: Place) -> Sink:
    return Kafka(options, place)
