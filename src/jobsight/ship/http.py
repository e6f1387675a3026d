"""Messages to a server, over HTTP or HTTPS, through a spool on disk.

The server answers when messages are durable; until then they are the courier's.
"""

import json
import zlib
from typing import NamedTuple

from jobsight import files
from jobsight.schema.message import Message
from jobsight.schema.units import Bytes, Seconds
from jobsight.schema.wire import compress, encode
from jobsight.ship.courier import Courier, Outcome, later, refused
from jobsight.ship.post import Poster, address
from jobsight.ship.sink import Place, Sink
from jobsight.ship.spool import Frame


class Options(NamedTuple):
    """Where to send, and how."""

    url: str
    token_file: str | None = None
    window: Seconds = Seconds(10.0)
    batch: Bytes = Bytes(2**20)
    timeout: Seconds = Seconds(30.0)


def check(options: Options) -> None:
    """ValueError for an address that is none: told when the settings are read, not when the first message is due."""
    address(options.url)


class Http(Courier):
    def __init__(self, options: Options, place: Place) -> None:
        self._post = Poster(address(options.url), options.timeout)
        self._token_file = options.token_file
        name = f"http-{zlib.crc32(options.url.encode()):08x}"
        super().__init__(name, options.url, self._deliver, place, window=options.window, batch=options.batch)

    def send(self, message: Message) -> None:
        self.put(compress(encode(message)))

    def close(self) -> None:
        super().close()
        self._post.close()

    def interrupt(self) -> None:
        self._post.abort()

    def _deliver(self, frames: list[Frame]) -> Outcome:
        answer = self._post.post(b"".join(frame.payload for frame in frames), self._headers())
        if answer.status in (200, 202, 204):
            count, reason = refusals(answer.body)
            return Outcome(len(frames), min(count, len(frames)), reason)
        if answer.status == 413 and len(frames) > 1:
            return self._one_by_one(frames)
        if answer.status in (400, 413, 415):
            return refused(len(frames), f"{answer.body[:200]!r}")
        after = answer.headers.get("retry-after", "")
        return later(f"answered {answer.status}", float(after) if after.isdecimal() else 0.0)

    def _one_by_one(self, frames: list[Frame]) -> Outcome:
        """Too much at once. As far as it goes: what was taken must not be sent again because of what follows."""
        done, never, reason = 0, 0, ""
        for frame in frames:
            try:
                one = self._deliver([frame])
            except OSError as error:
                one = later(str(error))
            if not one.done:
                return Outcome(done, never, reason) if done else one
            done, never, reason = done + 1, never + one.refused, reason or one.reason
        return Outcome(done, never, reason)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
        # Read each time: one that cannot be read is mended while messages wait, and must not keep an agent from
        # starting or from reloading.
        if token := _token(self._token_file):
            headers["Authorization"] = f"Bearer {token}"
        return headers


def refusals(body: bytes) -> tuple[int, str]:
    """How many messages of a batch it took the server put in quarantine, and why: not to be sent again."""
    try:
        report = json.loads(body)
        return max(0, int(report["refused"])), str(report["reasons"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return 0, ""


def _token(path: str | None) -> str:
    return files.read_at(path, 0, 4096).decode("ascii", "replace").strip() if path else ""


def open_sink(options: Options, place: Place) -> Sink:
    return Http(options, place)
