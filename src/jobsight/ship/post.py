"""One HTTP POST over a kept connection, with the standard library's sockets alone.

Not http.client: importing it brings the e-mail parser and ssl, 6 MiB of resident memory, a third of the agent.
TLS is imported only for https addresses.
"""

import contextlib
import socket
from typing import NamedTuple

HEAD_LIMIT = 65536


class PostError(OSError):
    """The other side does not speak HTTP as we know it."""


class Address(NamedTuple):
    """A URL taken apart."""

    secure: bool
    host: str
    port: int
    path: str


class Answer(NamedTuple):
    """What the server said."""

    status: int
    headers: dict[str, str]
    body: bytes


def address(url: str) -> Address:
    """ValueError if it is none of ours."""
    scheme, mark, rest = url.partition("://")
    if scheme not in ("http", "https") or not mark:
        raise ValueError(f"expected an address such as https://monitor.example/ingest, got {url!r}")
    place, slash, path = rest.partition("/")
    host, colon, port = place.rpartition(":")
    if not colon or place.endswith("]"):
        host, port = place, ""
    if "@" in place:
        # Not the address itself: there may be a password in it.
        raise ValueError("expected an address without a user's name: secrets belong into a file")
    if not host or (port and not port.isdecimal()):
        raise ValueError(f"expected a host and perhaps a port, got {place!r} in {url!r}")
    number = int(port) if port else (443 if scheme == "https" else 80)
    return Address(scheme == "https", host.strip("[]"), number, slash + path or "/")


class Poster:
    """A kept connection to one address."""

    def __init__(self, to: Address, timeout: float) -> None:
        self._to = to
        self._timeout = timeout
        self._socket: socket.socket | None = None
        self._aborted = False

    def post(self, body: bytes, headers: dict[str, str]) -> Answer:
        """Send and wait for the answer. OSError if it did not come; a stale kept connection is tried anew once."""
        if self._aborted:
            raise PostError("given up")
        kept = self._socket is not None
        try:
            return self._exchange(body, headers)
        except OSError:
            self.close()
            if not kept or self._aborted:
                raise
            return self._exchange(body, headers)

    def abort(self) -> None:
        """From another thread: who waits for an answer gets none, and nothing is sent any more."""
        self._aborted = True
        if (link := self._socket) is not None:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
            self._socket = None

    def _exchange(self, body: bytes, headers: dict[str, str]) -> Answer:
        try:
            link = self._socket = self._socket or self._connect()
            name = f"[{self._to.host}]" if ":" in self._to.host else self._to.host
            lines = [f"POST {self._to.path} HTTP/1.1", f"Host: {name}:{self._to.port}"]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            lines += [f"Content-Length: {len(body)}", "", ""]
            link.sendall("\r\n".join(lines).encode("latin-1") + body)
            return self._answer(link)
        except OSError:
            self.close()
            raise

    def _connect(self) -> socket.socket:
        link = socket.create_connection((self._to.host, self._to.port), self._timeout)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not self._to.secure:
            return link
        import ssl

        return ssl.create_default_context().wrap_socket(link, server_hostname=self._to.host)

    def _answer(self, link: socket.socket) -> Answer:
        head, body = self._head(link)
        first, *lines = head.decode("latin-1").split("\r\n")
        words = first.split(None, 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdecimal():
            raise PostError(f"expected an HTTP answer, got {first[:60]!r}")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) <= HEAD_LIMIT:
            while len(body) < int(length):
                piece = link.recv(HEAD_LIMIT)
                if not piece:
                    raise PostError("the connection ended in the middle of an answer")
                body += piece
        elif words[1] != "204":
            self.close()  # a body of unknown length: the status is all we need
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Answer(int(words[1]), headers, body)

    def _head(self, link: socket.socket) -> tuple[bytes, bytes]:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = link.recv(HEAD_LIMIT)
            if not piece or len(data) > HEAD_LIMIT:
                raise PostError("the connection ended before an answer" if not piece else "an endless answer")
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        return head, body
