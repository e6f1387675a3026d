"""Which proxy is taken, and a real one in between."""

import base64
import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from jobsight.clock import SystemClock
from jobsight.collect.agent import Tally
from jobsight.schema.units import Bytes, Seconds
from jobsight.settings import Spool
from jobsight.ship import http
from jobsight.ship.post import Address, Answer, Poster, PostError, Tls, address
from jobsight.ship.proxy import Proxy, chosen, proxy
from jobsight.ship.sink import Place
from tests.conftest import wait_until
from tests.ship.authority import signed
from tests.ship.contract import message

FAR = address("https://monitor.example/ingest")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("http://proxy.example:8080", Proxy("proxy.example", 8080)),
        ("http://proxy.example/", Proxy("proxy.example", 3128)),
        ("proxy.example:80", Proxy("proxy.example", 80)),
        ("http://[fd00::1]:3128", Proxy("fd00::1", 3128)),
        ("http://me:p%40ss@proxy.example:1", Proxy("proxy.example", 1, "Basic bWU6cEBzcw==")),
    ],
)
def test_a_proxy_is_taken_apart(text: str, found: Proxy) -> None:
    assert proxy(text) == found


@pytest.mark.parametrize(
    "text", ["https://me:secret@proxy", "socks5://me:secret@proxy", "http://me:secret@/x", "http://me:secret@a/b"]
)
def test_one_that_cannot_be_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(ValueError, match="expected a proxy") as caught:
        proxy(text)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("to", "environment", "host"),
    [
        (FAR, {}, None),
        (FAR, {"https_proxy": "http://p:1"}, "p"),
        (FAR, {"HTTPS_PROXY": "http://p:1"}, "p"),
        (FAR, {"http_proxy": "http://p:1"}, None),
        (FAR._replace(secure=False), {"http_proxy": "http://p:1"}, "p"),
        (FAR, {"https_proxy": "http://p:1", "no_proxy": "other, .example"}, None),
        (FAR, {"https_proxy": "http://p:1", "no_proxy": "*.example"}, None),
        (FAR, {"https_proxy": "http://p:1", "no_proxy": "monitor.example:443"}, None),
        (FAR, {"https_proxy": "http://p:1", "no_proxy": "monitor.example:8443"}, "p"),
        (FAR, {"https_proxy": "http://p:1", "NO_PROXY": "MONITOR.example"}, None),
        (FAR, {"https_proxy": "http://p:1", "no_proxy": "tor.example"}, "p"),
        (FAR, {"https_proxy": "http://p:1", "no_proxy": "*"}, None),
        (FAR, {"https_proxy": "http://p:1", "no_proxy": ",. "}, "p"),
        (address("https://10.1.2.3/"), {"https_proxy": "http://p:1", "no_proxy": "10.0.0.0/8"}, None),
        (address("https://11.1.2.3/"), {"https_proxy": "http://p:1", "no_proxy": "10.0.0.0/8"}, "p"),
        (address("https://[fd00::7]/"), {"https_proxy": "http://p:1", "no_proxy": "[fd00::7]"}, None),
        (address("https://localhost:9020/"), {"https_proxy": "http://p:1"}, None),
        (address("https://127.0.0.1:9020/"), {"https_proxy": "http://p:1"}, None),
    ],
)
def test_the_environment_is_heeded(to: Address, environment: dict[str, str], host: str | None) -> None:
    found = chosen(to, None, environment)
    assert (found.host if found else None) == host


def test_a_setting_is_stronger_than_the_environment() -> None:
    environment = {"https_proxy": "http://p:1", "no_proxy": "*"}
    assert chosen(FAR, "http://q:2", environment) == Proxy("q", 2)
    assert chosen(FAR, "none", {"https_proxy": "http://p:1"}) is None


def test_a_wrong_proxy_in_the_environment_is_named_and_not_shown() -> None:
    with pytest.raises(ValueError, match="https_proxy in the environment") as caught:
        chosen(FAR, None, {"https_proxy": "socks5://me:secret@p"})
    assert "secret" not in str(caught.value)


def once(to: Address, body: bytes = b"x", headers: dict[str, str] | None = None, **ways: Any) -> Answer:
    poster = Poster(to, 10, **ways)
    try:
        return poster.post(body, headers or {})
    finally:
        poster.close()


class Between(BaseHTTPRequestHandler):
    """A forward proxy: passes on what it is told to, and remembers what it was asked."""

    protocol_version = "HTTP/1.1"
    asked: list[str]
    password: str | None

    def allowed(self) -> bool:
        self.asked.append(f"{self.command} {self.path}")
        want = self.password and "Basic " + base64.b64encode(self.password.encode()).decode()
        if want and self.headers.get("Proxy-Authorization") != want:
            self.send_response(407, "Proxy Authentication Required")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return False
        return True

    def do_CONNECT(self) -> None:
        if not self.allowed():
            return
        _, _, port = self.path.rpartition(":")
        # Whatever name it is asked for: everything is here.
        with socket.create_connection(("127.0.0.1", int(port))) as far:
            self.send_response(200, "Connection established")
            self.end_headers()
            near = self.connection
            while True:
                ready, _, _ = select.select([near, far], [], [], 30)
                for one in ready:
                    piece = one.recv(65536)
                    if not piece:
                        self.close_connection = True
                        return
                    (far if one is near else near).sendall(piece)

    def do_POST(self) -> None:
        if not self.allowed():
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        to = address(self.path)
        kept = {name: self.headers[name] for name in ("X-Test",) if name in self.headers}
        answer = once(to, body, kept)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers.get("content-type", ""))
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_: object) -> None:
        pass


class Far(BaseHTTPRequestHandler):
    """The server behind."""

    protocol_version = "HTTP/1.1"
    headers_seen: list[dict[str, str]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.headers_seen.append(dict(self.headers))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serving(handler: Any, context: ssl.SSLContext | None = None, **shared: Any) -> Iterator[ThreadingHTTPServer]:
    made = type("Own", (handler,), shared)
    server = ThreadingHTTPServer(("127.0.0.1", 0), made)
    server.daemon_threads = True
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_plain_requests_go_through_in_absolute_form() -> None:
    asked: list[str] = []
    seen: list[dict[str, str]] = []
    with serving(Far, headers_seen=seen) as far, serving(Between, asked=asked, password="me:p@ss") as between:
        to = Address(False, "127.0.0.1", far.server_port, "/ingest")
        through = proxy(f"http://me:p%40ss@127.0.0.1:{between.server_port}")
        poster = Poster(to, 10, proxy=through)
        for number in range(3):
            assert poster.post(b"%d" % number, {"X-Test": "1"}).body == b"%d" % number
        poster.close()
        assert asked == [f"POST http://127.0.0.1:{far.server_port}/ingest"] * 3
        assert all("Proxy-Authorization" not in headers for headers in seen)
        assert once(to, proxy=through._replace(authorization=None)).status == 407


def test_tls_goes_through_a_tunnel_that_is_kept_and_the_proxy_reads_nothing(tmp_path: Path) -> None:
    pair = signed(tmp_path, "monitor.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    asked: list[str] = []
    seen: list[dict[str, str]] = []
    with (
        serving(Far, context, headers_seen=seen) as far,
        serving(Between, asked=asked, password="me:p@ss") as between,
    ):
        to = Address(True, "monitor.example", far.server_port, "/ingest")
        through = proxy(f"http://me:p%40ss@127.0.0.1:{between.server_port}")
        poster = Poster(to, 10, Tls(str(pair.authority)), through)
        for number in range(5):
            assert poster.post(b"%d" % number, {}).body == b"%d" % number
        poster.close()
        assert asked == [f"CONNECT monitor.example:{far.server_port}"]
        assert all("Proxy-Authorization" not in headers for headers in seen)
        wrong = Poster(to, 10, Tls(str(pair.authority)), through._replace(authorization="Basic eHg="))
        with pytest.raises(PostError, match="the proxy answered '407"):
            wrong.post(b"x", {})
        # The system's authorities do not know ours, and another name is not right either.
        with pytest.raises(ssl.SSLCertVerificationError):
            once(to, proxy=through)
        with pytest.raises(ssl.SSLCertVerificationError):
            once(to._replace(host="other.example"), tls=Tls(str(pair.authority)), proxy=through)


def test_a_client_shows_its_certificate_and_one_without_is_refused(tmp_path: Path) -> None:
    pair = signed(tmp_path, "monitor.example", "localhost")
    mine = signed(tmp_path, "n1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    context.load_verify_locations(pair.authority)
    context.verify_mode = ssl.CERT_REQUIRED
    with serving(Far, context, headers_seen=[]) as far:
        to = Address(True, "localhost", far.server_port, "/")
        tls = Tls(str(pair.authority), str(mine.certificate), str(mine.key))
        assert once(to, tls=tls).status == 200
        with pytest.raises(OSError):  # noqa: PT011
            once(to, tls=Tls(str(pair.authority)))


def test_a_pinned_certificate_is_right_whatever_its_name_and_another_is_not(tmp_path: Path) -> None:
    pair, other = signed(tmp_path, "monitor.example"), signed(tmp_path, "other.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)

    def leaf(file: Path) -> str:
        first, end, _ = file.read_text().partition("-----END CERTIFICATE-----")
        return first + end

    with serving(Far, context, headers_seen=[]) as far:
        to = Address(True, "127.0.0.1", far.server_port, "/")
        assert once(to, tls=Tls(pinned=leaf(pair.certificate))).status == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            once(to, tls=Tls(pinned=leaf(other.certificate)))


def test_a_sink_sends_through_the_proxy_of_its_settings(tmp_path: Path) -> None:
    asked: list[str] = []
    seen: list[dict[str, str]] = []
    with serving(Far, headers_seen=seen) as far, serving(Between, asked=asked, password="me:p@ss") as between:
        spool = Spool(path=str(tmp_path / "spool"), size=Bytes(10**6), age=Seconds(86400))
        place = Place("n1", spool, SystemClock(), Tally())
        url = f"http://127.0.0.1:{far.server_port}/ingest"
        through = f"http://me:p%40ss@127.0.0.1:{between.server_port}"
        sink = http.open_sink(http.Options(url, proxy=through, window=Seconds(0.0)), place)
        sink.send(message(1))
        wait_until(lambda: place.tally.sent == 1)
        sink.close()
        assert asked == [f"POST {url}"]
        assert len(seen) == 1
