"""Messages to a server, over HTTP or HTTPS, through a spool on disk.

The server answers when messages are durable; until then they are the courier's.
"""

import json
import os
import zlib
from contextlib import suppress
from typing import NamedTuple

from jobsight import files
from jobsight.formats import httpdate
from jobsight.schema.message import Message
from jobsight.schema.units import Bytes, Seconds
from jobsight.schema.wire import GZIP, compress, encode
from jobsight.ship.courier import Courier, Outcome, later, refused
from jobsight.ship.post import Answer, Poster, Tls, address
from jobsight.ship.proxy import chosen
from jobsight.ship.sink import Place, Sink
from jobsight.ship.spool import Frame

# Whose a message is stands at its beginning, within this many bytes even of the longest names.
HEAD = 4096
# Waiting does not help against these: somebody must mend a token, a proxy's password or an address. A 400 is a word
# about messages only if a server of ours says it; a gateway says it of an address.
CLOSED = (400, 401, 403, 404, 405, 407, 415)


class Options(NamedTuple):
    """Where to send, and how."""

    url: str
    token_file: str | None = None
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    proxy: str | None = None
    window: Seconds = Seconds(10.0)
    batch: Bytes = Bytes(2**20)
    timeout: Seconds = Seconds(30.0)


def check(options: Options) -> None:
    """ValueError for an address that is none: told when the settings are read, not when the first message is due."""
    chosen(address(options.url), options.proxy, os.environ)
    if options.key_file and not options.cert_file:
        raise ValueError("key_file is nothing without cert_file")


class Http(Courier):
    def __init__(self, options: Options, place: Place) -> None:
        to = address(options.url)
        tls = Tls(options.ca_file, options.cert_file, options.key_file)
        self._post = Poster(to, options.timeout, tls, chosen(to, options.proxy, os.environ))
        self._token_file = options.token_file
        self._clock = place.clock
        # How many go at once; None as long as none were too many.
        self._most: int | None = None
        # Cluster and node as they are now. What waits may be older.
        self._self: tuple[str, str] | None = None
        name = f"http-{zlib.crc32(options.url.encode()):08x}"
        super().__init__(name, options.url, self._deliver, place, window=options.window, batch=options.batch)

    def send(self, message: Message) -> None:
        self._self = (message.origin.cluster, message.origin.node)
        self.put(compress(encode(message)))

    def close(self) -> None:
        super().close()
        self._post.close()

    def interrupt(self) -> None:
        self._post.abort()

    def _deliver(self, frames: list[Frame]) -> Outcome:
        frames = frames[: self._most]
        answer = self._post.post(b"".join(frame.payload for frame in frames), self._headers())
        if answer.status in (200, 202, 204):
            if not ours(answer):
                # A login page, a notice of maintenance, another program: whoever it is has stored nothing.
                return later(
                    f"answered {answer.status}, but not as a jobsight server does: {said(answer)}", urgent=True
                )
            if self._most is not None:
                self._most += max(1, self._most // 8)
            count, reason = refusals(answer.body)
            return Outcome(len(frames), min(count, len(frames)), reason)
        final = answer.status == 413 or (answer.status in (400, 415) and b'"error"' in answer.body)
        if final and len(frames) > 1:
            # Too much at once, or one of them is damaged: half as many, until what cannot be taken is alone.
            self._most = len(frames) // 2
            return self._deliver(frames)
        if final:
            return refused(len(frames), f"answered {answer.status}: {said(answer)}")
        if answer.status == 403 and b'"path"' in answer.body:
            return self._denied(frames, said(answer))
        return later(
            f"answered {answer.status}: {said(answer)}".removesuffix(": "),
            after(answer.headers, self._clock.wall()),
            urgent=answer.status in CLOSED,
        )

    def _denied(self, frames: list[Frame], reason: str) -> Outcome:
        """Some of them are not for our token. Those of who we are now wait for the right one; those of who we were
        once would wait for ever, and all others behind them.
        """
        whose = [origin(frame.payload) for frame in frames]
        same = next((index for index, one in enumerate(whose) if one != whose[0]), len(frames))
        if same < len(frames):
            return self._deliver(frames[:same])
        if self._self is None or whose[0] in (None, self._self):
            return later(reason, urgent=True)
        return refused(len(frames), reason)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
        # Read each time: one that cannot be read is mended while messages wait, and must not keep an agent from
        # starting or from reloading.
        if token := _token(self._token_file):
            headers["Authorization"] = f"Bearer {token}"
        return headers


def ours(answer: Answer) -> bool:
    """Whether this can be a server of ours that says it has the messages. Of a body that a gateway has cut into
    chunks only the kind is known.
    """
    if answer.status == 204 or answer.headers.get("content-type", "").startswith("application/json"):
        return True
    try:
        return "accepted" in json.loads(answer.body)
    except (ValueError, TypeError, RecursionError):
        return False


def refusals(body: bytes) -> tuple[int, str]:
    """How many messages of a batch it took the server put in quarantine, and why: not to be sent again."""
    try:
        report = json.loads(body)
        return max(0, int(report["refused"])), str(report["reasons"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return 0, ""


def said(answer: Answer) -> str:
    """What a server says is wrong, as part of a line."""
    text = answer.body.decode("utf-8", "replace")
    with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
        found = json.loads(text)
        text = str(found.get("error") or found["detail"])
    return "".join(letter if letter.isprintable() else " " for letter in text[:200]).strip()


def after(headers: dict[str, str], now: float) -> float:
    """Seconds to wait, from Retry-After: a number or a date. A date is counted from the server's own clock."""
    text = headers.get("retry-after", "")
    try:
        if text.isdecimal():
            return float(text)
        date = headers.get("date")
        return max(0.0, httpdate.parse(text) - (httpdate.parse(date) if date else now))
    except ValueError:
        return 0.0


def origin(payload: bytes) -> tuple[str, str] | None:
    """Cluster and node of a message of ours, from its beginning; None if it is none."""
    try:
        head = zlib.decompressobj(GZIP).decompress(payload, HEAD).partition(b',"boot":')[0]
        found = json.loads(head + b"}")
        return str(found["cluster"]), str(found["node"])
    except (zlib.error, ValueError, KeyError, TypeError):
        return None


def _token(path: str | None) -> str:
    return files.read_at(path, 0, 4096).decode("ascii", "replace").strip() if path else ""


def open_sink(options: Options, place: Place) -> Sink:
    return Http(options, place)
