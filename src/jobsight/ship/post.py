"""One HTTP POST over a kept connection, with the standard library's sockets alone.

Not http.client: importing it brings the e-mail parser and ssl, 6 MiB of resident memory, a third of the agent.
TLS is imported only for https addresses.
"""

import contextlib
import socket
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ssl

    from jobsight.ship.proxy import Proxy

HEAD_LIMIT = 65536


class PostError(OSError):
    """The other side does not speak HTTP as we know it."""


class Address(NamedTuple):
    """A URL taken apart."""

    secure: bool
    host: str
    port: int
    path: str

    @property
    def place(self) -> str:
        """Host and port, as they stand in a request."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Answer(NamedTuple):
    """What the server said."""

    status: int
    headers: dict[str, str]
    body: bytes


class Tls(NamedTuple):
    """Whom to trust, and who we are. Files are read at every connection: a new certificate needs no restart."""

    ca_file: str | None = None
    """In place of the authorities the system trusts."""
    cert_file: str | None = None
    key_file: str | None = None
    pinned: str | None = None
    """The one certificate that is right, as PEM, whatever name it carries."""


USUAL = Tls()


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


def context(tls: Tls) -> "ssl.SSLContext":
    """What a connection is checked by. OSError for files that cannot be read or hold something else."""
    import ssl

    if tls.pinned is None:
        made = ssl.create_default_context(cafile=tls.ca_file)
    else:
        made = ssl.create_default_context(cadata=tls.pinned)
        made.check_hostname = False
        made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if tls.cert_file:
        made.load_cert_chain(tls.cert_file, tls.key_file)
    return made


class Poster:
    """A kept connection to one address."""

    def __init__(self, to: Address, timeout: float, tls: Tls = USUAL, proxy: "Proxy | None" = None) -> None:
        self._to = to
        self._timeout = timeout
        self._tls = tls
        self._proxy = proxy
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
            # A proxy is told the whole address, unless it only passes on what it cannot read.
            through = self._proxy is not None and not self._to.secure
            where = f"http://{self._to.place}{self._to.path}" if through else self._to.path
            lines = [f"POST {where} HTTP/1.1", f"Host: {self._to.place}"]
            lines += self._login() if through else []
            lines += [f"{name}: {value}" for name, value in headers.items()]
            lines += [f"Content-Length: {len(body)}", "", ""]
            return self._asked(link, "\r\n".join(lines).encode("latin-1") + body)
        except OSError:
            self.close()
            raise

    def _asked(self, link: socket.socket, request: bytes) -> Answer:
        try:
            link.sendall(request)
        except TimeoutError:
            raise
        except OSError as error:
            # A server that does not want it answers before it has all and hangs up. Its answer says why; that we
            # could not write does not.
            try:
                answer = self._answer(link)
            except OSError:
                raise error from None
            self.close()
            return answer
        return self._answer(link)

    def _login(self) -> list[str]:
        secret = self._proxy.authorization if self._proxy else None
        return [f"Proxy-Authorization: {secret}"] if secret else []

    def _connect(self) -> socket.socket:
        first = (self._proxy.host, self._proxy.port) if self._proxy else (self._to.host, self._to.port)
        link = socket.create_connection(first, self._timeout)
        try:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not self._to.secure:
                return link
            if self._proxy:
                self._tunnel(link)
            return context(self._tls).wrap_socket(link, server_hostname=self._to.host)
        except BaseException:
            link.close()
            raise

    def _tunnel(self, link: socket.socket) -> None:
        """Have the proxy connect us, and say nothing more to it."""
        lines = [f"CONNECT {self._to.place} HTTP/1.1", f"Host: {self._to.place}", *self._login(), "", ""]
        link.sendall("\r\n".join(lines).encode("latin-1"))
        head, _ = _head(link)
        status, first, _ = _parse(head)
        if not 200 <= status < 300:
            raise PostError(f"the proxy answered {first.partition(' ')[2][:60]!r}")

    def _answer(self, link: socket.socket) -> Answer:
        head, body = _head(link)
        status, _, headers = _parse(head)
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) <= HEAD_LIMIT:
            while len(body) < int(length):
                piece = link.recv(HEAD_LIMIT)
                if not piece:
                    raise PostError("the connection ended in the middle of an answer")
                body += piece
        elif status != 204:
            self.close()  # a body of unknown length: the status is all we need
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Answer(status, headers, body)


def _parse(head: bytes) -> tuple[int, str, dict[str, str]]:
    """Status, first line and headers of an answer."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(None, 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdecimal():
        raise PostError(f"expected an HTTP answer, got {first[:60]!r}")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(words[1]), first, headers


def _head(link: socket.socket) -> tuple[bytes, bytes]:
    """What stands before the empty line, and what has come after it."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = link.recv(HEAD_LIMIT)
        if not piece or len(data) > HEAD_LIMIT:
            raise PostError("the connection ended before an answer" if not piece else "an endless answer")
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    return head, body
