"""Documents as Sonar writes them, to what reads Sonar: a tree of files, a receiver over HTTP, or Kafka's brokers.

Names of files, addresses and topics are Sonar's own, so a Jobanalyzer or slurm-monitor that is there already need
not know who sends. Over HTTP and to brokers a document waits in the spool until somebody has it.
"""

import json
import os
import time
import zlib
from binascii import b2a_base64
from typing import NamedTuple, Protocol

from jobsight import files
from jobsight.compat.sonar import Document, Translator, encode
from jobsight.schema.message import Message
from jobsight.schema.units import Seconds
from jobsight.schema.wire import GZIP, compress
from jobsight.ship import kafka
from jobsight.ship.courier import Courier, Outcome, later, refused
from jobsight.ship.post import Poster, address
from jobsight.ship.sink import Place, Sink
from jobsight.ship.spool import Frame

# What one hand-over takes from the spool, packed.
BATCH = 256 * 2**10
# The receiver has looked at it and never will take it.
NEVER = (400, 413, 415, 422)


class Options(NamedTuple):
    """Where to: one of path, url and brokers; and how."""

    path: str | None = None
    url: str | None = None
    """The address to which `/sample` and `/sysinfo` are added."""
    brokers: tuple[str, ...] = ()
    prefix: str | None = None
    username: str | None = None
    """Over HTTP the cluster's name, if not set."""
    password_file: str | None = None
    tls: bool | None = None
    ca_file: str | None = None
    mechanism: str = "PLAIN"
    window: Seconds = Seconds(10.0)
    timeout: Seconds = Seconds(30.0)


SENDING = ("window", "timeout", "prefix", "username", "password_file")
# What each destination can be told besides where it is.
UNDERSTOOD = {"path": (), "url": SENDING, "brokers": (*SENDING, "tls", "ca_file", "mechanism")}


def check(options: Options) -> None:
    """ValueError for what cannot work, and for what would not be looked at: a CA file that nobody reads is a trap."""
    chosen = [name for name in UNDERSTOOD if getattr(options, name)]
    if len(chosen) != 1:
        raise ValueError(f"expected one of path, url and brokers, got {' and '.join(chosen) or 'none'}")
    for name, default in Options._field_defaults.items():
        if name not in (*chosen, *UNDERSTOOD[chosen[0]]) and getattr(options, name) != default:
            raise ValueError(f"{name} means nothing together with {chosen[0]}")
    if options.url:
        address(options.url)
        if options.username and not options.password_file:
            raise ValueError("username needs a password_file")
        if options.prefix and kafka.topic(options.prefix) != options.prefix:
            raise ValueError(f"expected a prefix of letters, digits, '.', '_' and '-', got {options.prefix!r}")
    if options.brokers:
        kafka.check(_for_kafka(options))


class Carrier(Protocol):
    """What takes documents to one kind of place. OSError means that one is lost here."""

    def take(self, document: Document) -> None: ...

    def close(self) -> None: ...


class Sonar:
    def __init__(self, translator: Translator, carrier: Carrier) -> None:
        self._translator = translator
        self._carrier = carrier

    def send(self, message: Message) -> None:
        for document in self._translator.documents(message):
            self._carrier.take(document)

    def close(self) -> None:
        self._carrier.close()


class Tree:
    """`<path>/yyyy/mm/dd/0+sample-<node>.json`, appended, UTC days."""

    def __init__(self, path: str, place: Place) -> None:
        self._path = path
        self._tally = place.tally
        self._day = ""

    def take(self, document: Document) -> None:
        day = time.strftime("%Y/%m/%d", time.gmtime(document.time))
        folder = os.path.join(self._path, day)
        if day != self._day:
            files.make_directory(folder)
            self._day = day
        files.append(os.path.join(folder, file_name(document)), encode(document))
        self._tally.sent += 1

    def close(self) -> None:
        """Every document is in its file already."""


def file_name(document: Document) -> str:
    """A node's name cannot leave the folder."""
    node = document.node.replace("/", "_").replace("\0", "_")
    return f"0+{document.kind}-{node}.json"


class Receiver(Courier):
    """A server that takes one document a request, at an address for each kind."""

    def __init__(self, options: Options, url: str, place: Place) -> None:
        self._options = options
        self._address = address(url)
        self._open: tuple[str, Poster] | None = None
        name = f"sonar-{zlib.crc32(' '.join((url, options.prefix or '')).encode()):08x}"
        super().__init__(name, url, self._deliver, place, window=options.window, batch=BATCH)

    def take(self, document: Document) -> None:
        head = json.dumps([document.kind, document.cluster]).encode()
        self.put(compress(head + b"\n" + encode(document)))

    def close(self) -> None:
        super().close()
        if self._open is not None:
            self._open[1].close()

    def interrupt(self) -> None:
        if (opened := self._open) is not None:
            opened[1].abort()

    def _deliver(self, frames: list[Frame]) -> Outcome:
        """One by one, as far as it goes: what was taken must not be sent again because of what follows."""
        done, never, reason = 0, 0, ""
        for frame in frames:
            try:
                one = self._hand_over(frame)
            except (OSError, ValueError) as error:
                one = later(str(error))
            if not one.done:
                return Outcome(done, never, reason) if done else one
            done, never, reason = done + 1, never + one.refused, reason or one.reason
            if self.hurried():
                break
        return Outcome(done, never, reason)

    def _hand_over(self, frame: Frame) -> Outcome:
        try:
            head, _, body = zlib.decompress(frame.payload, GZIP).partition(b"\n")
            kind, cluster = json.loads(head)
        except (zlib.error, ValueError) as error:
            return refused(1, f"not a document: {error}")
        answer = self._post(kind).post(body, self._headers(cluster))
        if 200 <= answer.status < 300:
            return Outcome(1)
        if answer.status in NEVER:
            return refused(1, f"answered {answer.status} {answer.body[:200]!r}")
        after = answer.headers.get("retry-after", "")
        return later(f"answered {answer.status}", float(after) if after.isdecimal() else 0.0)

    def _post(self, kind: str) -> Poster:
        """One connection at a time: another kind comes once an hour, and an idle one would only grow stale."""
        if self._open is not None:
            known, post = self._open
            if known == kind:
                return post
            post.close()
        path = f"{self._address.path.rstrip('/')}/{'.'.join(filter(None, (self._options.prefix, kind)))}"
        post = Poster(self._address._replace(path=path), self._options.timeout)
        self._open = (kind, post)
        return post

    def _headers(self, cluster: str) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if self._options.password_file:
            # Read each time: after a 401 people put the right one there, and what waits goes out.
            password = files.read_at(self._options.password_file, 0, 4096).strip()
            pair = (self._options.username or cluster).encode() + b":" + password
            headers["Authorization"] = f"Basic {b2a_base64(pair, newline=False).decode('ascii')}"
        return headers


class Topics:
    """Kafka's brokers: topic `[prefix.]<cluster>.<kind>`, keyed by node."""

    def __init__(self, options: Options, place: Place) -> None:
        self._kafka = kafka.Kafka(_for_kafka(options), place, "sonar", divisible=False)

    def take(self, document: Document) -> None:
        self._kafka.produce(document.cluster, document.kind, document.node, encode(document))

    def close(self) -> None:
        self._kafka.close()


def _for_kafka(options: Options) -> kafka.Options:
    return kafka.Options(**{name: getattr(options, name) for name in kafka.Options._fields})


def open_sink(options: Options, place: Place) -> Sink:
    carrier: Carrier
    if options.path:
        carrier = Tree(options.path, place)
    elif options.url:
        carrier = Receiver(options, options.url, place)
    else:
        carrier = Topics(options, place)
    return Sonar(Translator(), carrier)
