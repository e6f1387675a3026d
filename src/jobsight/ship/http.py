"""Messages to a server, over HTTP or HTTPS, through a spool on disk.

A message is in the spool before anything else happens. A thread sends the oldest first, many at a time, at the
node's own place in the sending window, and forgets them when the server says they are durable. A server that is
away, busy or full is tried again with growing pauses; nothing is lost but what the spool's bounds push out.
"""

import json
import os
import sys
import threading
import zlib
from typing import NamedTuple

from jobsight import files
from jobsight.agent.schedule import next_multiple, share
from jobsight.schema.message import Message
from jobsight.schema.units import Bytes, Seconds
from jobsight.schema.wire import compress, encode
from jobsight.ship.post import Answer, Poster, address
from jobsight.ship.sink import Place, Sink
from jobsight.ship.spool import Frame, Spool

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
# How long a closing sink goes on sending a backlog.
PATIENCE = 5.0


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


class Http:
    def __init__(self, options: Options, place: Place) -> None:
        self._options = options
        self._place = place
        self._post = Poster(address(options.url), options.timeout)
        # One spool for each destination, named by its address: it must be found again after a restart.
        name = f"http-{zlib.crc32(options.url.encode()):08x}"
        bounds = place.spool
        self._spool = Spool(os.path.join(bounds.path, name), bounds.size, bounds.age, place.clock.wall())
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = False
        self._patience = 0.0
        self._troubled = False
        self._token = _token(options.token_file)
        self._thread = threading.Thread(target=self._work, name="send", daemon=True)
        self._thread.start()

    def send(self, message: Message) -> None:
        packed = compress(encode(message))
        with self._lock:
            self._spool.append(packed, self._place.clock.wall())
            self._count()
        self._wake.set()

    def close(self) -> None:
        """Send what is there if the server takes it soon; the rest stays in the spool."""
        self._patience = self._place.clock.steady() + PATIENCE
        self._closing = True
        self._wake.set()
        self._thread.join()
        self._post.close()

    def _work(self) -> None:
        pause = 0.0
        while not self._closing:
            self._wake.wait()
            self._wait(pause or self._until_my_turn())
            pause = self._deliver(pause)
        self._deliver(0.0)

    def _until_my_turn(self) -> float:
        window = self._options.window
        if not window:
            return 0.0
        now = self._place.clock.wall()
        return next_multiple(window, now - share(self._place.node) * window) + share(self._place.node) * window - now

    def _wait(self, seconds: float) -> None:
        if seconds > 0 and not self._closing:
            self._wake.clear()
            end = self._place.clock.steady() + seconds
            while not self._closing and (left := end - self._place.clock.steady()) > 0:
                self._wake.wait(left)
                self._wake.clear()

    def _deliver(self, pause: float) -> float:
        """Send until the spool is empty; the pause before the next try if the server would not take it."""
        longer = min(LONGEST_PAUSE, max(FIRST_PAUSE, pause * 2)) * _jitter()
        while True:
            try:
                with self._lock:
                    frames = self._spool.oldest(self._options.batch)
                if not frames:
                    self._rest()
                    return 0.0
                answer = self._send(frames)
                taken = self._settle(answer, frames)
            except (OSError, ValueError) as error:
                # ValueError: a name or a token that cannot be put into a request. People mend it while we wait.
                self._trouble(f"{self._options.url}: {error}")
                self._wake.set()
                return longer
            if not taken:
                self._trouble(f"{self._options.url}: answered {answer.status}")
                self._wake.set()
                after = answer.headers.get("retry-after", "")
                return max(longer, float(after)) if after.isdecimal() else longer
            if self._closing and self._place.clock.steady() > self._patience:
                return 0.0

    def _send(self, frames: list[Frame]) -> Answer:
        return self._post.post(b"".join(frame.payload for frame in frames), self._headers())

    def _rest(self) -> None:
        """Nothing to do until something comes, which may be between the look and the clearing."""
        self._wake.clear()
        with self._lock:
            if self._spool.waiting:
                self._wake.set()

    def _settle(self, answer: Answer, frames: list[Frame]) -> bool:
        """Whether the batch is off our hands."""
        if answer.status in (200, 202, 204):
            self._forget(frames[-1], len(frames))
            self._recovered()
            self._read_refusals(answer.body)
            return True
        if answer.status == 413 and len(frames) > 1:
            # Too much at once: one at a time until the next batch.
            return all(self._settle(self._send([frame]), [frame]) for frame in frames)
        if answer.status in (400, 413, 415):
            # The server has looked at it and never will take it.
            self._place.tally.dropped += len(frames)
            self._trouble(f"{self._options.url}: refused {len(frames)} messages: {answer.body[:200]!r}")
            self._forget(frames[-1], 0)
            return True
        return False

    def _read_refusals(self, body: bytes) -> None:
        """The server took the batch and put some messages in quarantine: ours to say, not to send again."""
        try:
            report = json.loads(body)
            refused, reasons = int(report["refused"]), report["reasons"]
        except (ValueError, KeyError, TypeError):
            return
        if refused:
            self._place.tally.dropped += refused
            print(f"jobsight: {self._options.url} refused {refused}: {reasons}", file=sys.stderr, flush=True)

    def _forget(self, last: Frame, sent: int) -> None:
        with self._lock:
            self._spool.acknowledge(last)
            self._place.tally.sent += sent
            self._count()

    def _count(self) -> None:
        self._place.tally.waiting = self._spool.waiting
        self._place.tally.dropped += self._spool.dropped
        self._spool.dropped = 0

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        return headers

    def _trouble(self, text: str) -> None:
        # Said once when it begins, not at every try.
        if not self._troubled:
            print(f"jobsight: {text}; messages wait in the spool", file=sys.stderr, flush=True)
        self._troubled = True

    def _recovered(self) -> None:
        if self._troubled:
            print(f"jobsight: {self._options.url} takes messages again", file=sys.stderr, flush=True)
        self._troubled = False


def _jitter() -> float:
    """Between a half and one. Not from `random`: importing it costs the agent half a megabyte."""
    return 0.5 + os.urandom(1)[0] / 510


def _token(path: str | None) -> str:
    return files.read_at(path, 0, 4096).decode("ascii", "replace").strip() if path else ""


def open_sink(options: Options, place: Place) -> Sink:
    return Http(options, place)
