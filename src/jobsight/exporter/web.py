"""The exporter's web side: HTTP/1.1 over sockets, a thread for each connection. `page` says what is answered.

By hand, like the request: `http.server` and what it needs take several megabytes. Only requests without a body are
answered, and only one at a time on a connection.
"""

import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from jobsight.collector import ParseError
from jobsight.exporter.request import END, LONGEST, Request, parse

if TYPE_CHECKING:
    from jobsight.exporter.webconfig import Watched

# Seconds for a client to say all of a request, and to come again on the same connection.
PATIENCE, IDLE = 30.0, 150.0
# Connections beyond those whose scrapes are answered: they are told to come again. For a further one the one that
# says or takes nothing for the longest is hung up on: else a few that say nothing keep everybody out.
SPARE = 16
# Seconds until its place is free.
LEAVES = 1.0
REASONS = {
    200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed",
    431: "Request Header Fields Too Large", 503: "Service Unavailable",
}  # fmt: skip
PLAIN = "text/plain; charset=utf-8"
HIGHEST = 65535


class Answer(NamedTuple):
    """What is sent back."""

    status: int
    kind: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class Stopped(BaseException):
    """Told to stop: raised by a signal's handler, wherever the main thread is."""


class Server:
    """Listens until it is told to stop."""

    def __init__(
        self, link: socket.socket, answer: Callable[[Request], Answer], most: int, watched: "Watched | None" = None
    ) -> None:
        self.link = link
        self._answer, self._watched = answer, watched
        self._places = threading.BoundedSemaphore(most)
        # Connections whose client we wait for, since the longest first.
        self._waiting: dict[int, Any] = {}
        self._turn = threading.Lock()
        self._stopping = False

    def serve(self) -> None:
        """Until `stop`, or until `Stopped` is raised."""
        while not self._stopping:
            try:
                link, _ = self.link.accept()
            except OSError as error:
                if self._stopping:
                    return
                # Too many files are open, or the client is gone already: no reason to end.
                print(f"jobsight: cannot accept a connection: {error}", file=sys.stderr, flush=True)
                time.sleep(1.0)
                continue
            if not self._place():
                link.close()
                continue
            try:
                threading.Thread(target=self._attend, args=(link,), daemon=True).start()
            except RuntimeError:  # no thread could be had
                self._places.release()
                link.close()

    def stop(self) -> None:
        """From another thread."""
        self._stopping = True
        self.link.shutdown(socket.SHUT_RDWR)

    def _place(self) -> bool:
        if self._places.acquire(blocking=False):
            return True
        with self._turn:
            longest = next(iter(self._waiting.values()), None)
            if longest is None:
                return False
            del self._waiting[id(longest)]
            with suppress(OSError):  # it may be leaving already
                # Not by TLS, which may be in use just now.
                socket.socket.shutdown(longest, socket.SHUT_RDWR)
        return self._places.acquire(timeout=LEAVES)

    def _wait(self, link: Any, *, begin: bool) -> None:
        with self._turn:
            self._waiting.pop(id(link), None)
            if begin:
                self._waiting[id(link)] = link

    def _attend(self, link: Any) -> None:
        try:
            link.settimeout(PATIENCE)
            if self._watched is not None and self._watched.secure:
                # Here, not where connections are accepted: nobody waits for a slow handshake.
                context = self._watched.context()
                link = context.wrap_socket(link, server_side=True, do_handshake_on_connect=False)
                self._wait(link, begin=True)
                link.do_handshake()
            self._converse(link)
        except (OSError, ValueError):
            pass  # one who speaks no HTTPS, shows no certificate or goes away is no event
        finally:
            self._wait(link, begin=False)
            link.close()
            self._places.release()

    def _converse(self, link: Any) -> None:
        left = b""
        while True:
            self._wait(link, begin=True)
            head, left = _head(link, left)
            if not head:
                return
            self._wait(link, begin=False)
            request = None
            try:
                if not head.endswith(END):
                    answer = Answer(431, PLAIN, b"expected a request with shorter headers\n")
                else:
                    request = parse(head)
                    answer = self._answer(request)
            except ParseError as error:
                answer = Answer(400, PLAIN, f"{error}\n".encode("utf-8", "backslashreplace"))
            lasting = request is not None and request.lasting
            link.settimeout(PATIENCE)
            self._wait(link, begin=True)
            link.sendall(self._written(answer, lasting=lasting, whole=request is None or request.method != "HEAD"))
            if not lasting:
                return
            link.settimeout(IDLE)

    def _written(self, answer: Answer, *, lasting: bool, whole: bool) -> bytes:
        more = self._watched.config().headers if self._watched else ()
        lines = [
            f"HTTP/1.1 {answer.status} {REASONS[answer.status]}",
            time.strftime("Date: %a, %d %b %Y %H:%M:%S GMT", time.gmtime()),
            *(f"{name}: {value}" for name, value in (*answer.headers, *more)),
            f"Content-Type: {answer.kind}",
            f"Content-Length: {len(answer.body)}",
            f"Connection: {'keep-alive' if lasting else 'close'}",
        ]
        head = "\r\n".join(lines).encode("latin-1", "replace") + END
        return head + answer.body if whole else head


def _head(link: Any, left: bytes) -> tuple[bytes, bytes]:
    """The next request's head and what came after it; nothing where the client is done. What is longer than it may be
    comes back without its end.
    """
    began = None
    while END not in left:
        if len(left) > LONGEST:
            return left, b""
        if began is not None:
            rest = began + PATIENCE - time.monotonic()
            if rest <= 0:
                return b"", b""
            link.settimeout(rest)
        piece = link.recv(LONGEST)
        if not piece:
            return b"", b""
        began = began or time.monotonic()
        left += piece
    head, _, left = left.partition(END)
    return head + END, left


def listen(address: str) -> socket.socket:
    """`127.0.0.1:9010`, `[::1]:9010`. OSError or OverflowError if nobody may listen there."""
    host, _, port = address.rpartition(":")
    if int(port) > HIGHEST:
        # The resolver would take what is left of it, and listen there.
        raise OverflowError(f"there is no port {port}")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    family, _, _, _, place = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    link = socket.socket(family, socket.SOCK_STREAM)
    try:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        link.bind(place)
        link.listen(64)
    except BaseException:
        link.close()
        raise
    return link


def inherited(variables: dict[str, str], pid: int) -> socket.socket | None:
    """The socket that systemd opened for us, see sd_listen_fds(3); None if it opened none."""
    if variables.get("LISTEN_PID") != str(pid) or not variables.get("LISTEN_FDS", "").isdecimal():
        return None
    return socket.socket(fileno=3) if int(variables["LISTEN_FDS"]) > 0 else None
