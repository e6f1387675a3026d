"""The exporter's web side, whoever comes."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from typing import Any

import pytest

from jobsight.exporter import web
from jobsight.exporter.request import LONGEST, Request
from jobsight.exporter.web import Answer, Server, inherited, listen
from tests.conftest import wait_until

MOST = 8


def echo(request: Request) -> Answer:
    return Answer(200, "text/plain", request.path.encode(), (("X-Method", request.method),))


@pytest.fixture
def serve() -> Iterator[Callable[[], int]]:
    started: list[tuple[Server, threading.Thread]] = []

    def begin() -> int:
        server = Server(listen("127.0.0.1:0"), echo, MOST)
        thread = threading.Thread(target=server.serve)
        thread.start()
        started.append((server, thread))
        port: int = server.link.getsockname()[1]
        return port

    yield begin
    for server, thread in started:
        server.stop()
        thread.join()
        server.link.close()


def ask(link: HTTPConnection, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, Any]:
    link.request(method, path, headers=headers)
    answer = link.getresponse()
    return answer.status, answer.read(), answer.headers


def talk(port: int, content: bytes) -> bytes:
    """What comes back until the other side is done."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as link:
        link.sendall(content)
        parts = [link.recv(65536)]
        while parts[-1]:
            parts.append(link.recv(65536))
    return b"".join(parts)


def test_one_connection_serves_many_requests(serve: Callable[[], int]) -> None:
    link = HTTPConnection("127.0.0.1", serve(), timeout=10)
    link.connect()
    held: Any = link.sock
    for number in range(3):
        assert ask(link, f"/{number}")[:2] == (200, f"/{number}".encode())
    assert link.sock is held
    link.close()


def test_two_requests_sent_at_once_are_answered_in_order(serve: Callable[[], int]) -> None:
    said = talk(serve(), b"GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert said.count(b"HTTP/1.1 200 OK") == 2
    assert said.index(b"\r\n\r\n/1") < said.index(b"\r\n\r\n/2")


def test_a_head_has_the_length_and_no_body(serve: Callable[[], int]) -> None:
    link = HTTPConnection("127.0.0.1", serve(), timeout=10)
    status, body, headers = ask(link, "/abc", "HEAD")
    assert (status, body, headers["Content-Length"], headers["X-Method"]) == (200, b"", "4", "HEAD")
    assert headers["Date"].endswith(" GMT")
    link.close()


def test_what_is_no_request_is_refused_and_hung_up_on(serve: Callable[[], int]) -> None:
    port = serve()
    said = talk(port, b"\x16\x03\x01nonsense\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"Connection: close" in said
    assert talk(port, b"GET / HTTP/1.1\r\nX: " + b"x" * LONGEST).startswith(b"HTTP/1.1 431 ")


def test_a_body_is_not_taken_for_a_request(serve: Callable[[], int]) -> None:
    smuggled = b"GET /inner HTTP/1.1\r\n\r\n"
    said = talk(serve(), b"GET /outer HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(smuggled), smuggled))
    assert said.count(b"HTTP/1.1 ") == 1
    assert said.endswith(b"/outer")


def test_a_client_that_speaks_too_slowly_is_hung_up_on(
    serve: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "PATIENCE", 0.2)
    with socket.create_connection(("127.0.0.1", serve()), timeout=10) as link:
        link.sendall(b"GET / HT")
        assert link.recv(1) == b""


def test_clients_that_say_nothing_take_no_more_threads_than_there_are_places(serve: Callable[[], int]) -> None:
    port = serve()
    before = threading.active_count()
    links = [socket.create_connection(("127.0.0.1", port)) for _ in range(MOST + 20)]
    try:
        # For those beyond the first ones are hung up on: they are told by an end.
        for link in links[:20]:
            link.settimeout(10)
            assert link.recv(1) == b""
        assert threading.active_count() - before <= MOST
    finally:
        for link in links:
            link.close()
    wait_until(lambda: threading.active_count() <= before)
    for _ in range(2 * MOST):  # a place is given back each time
        assert talk(port, b"GET /again HTTP/1.0\r\n\r\n").endswith(b"/again")


def test_those_who_say_nothing_keep_nobody_out(serve: Callable[[], int]) -> None:
    port = serve()
    asked = HTTPConnection("127.0.0.1", port, timeout=10)
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(MOST - 1)]
    try:
        assert ask(asked, "/kept")[:2] == (200, b"/kept")
        silent.append(socket.create_connection(("127.0.0.1", port)))
        for turn in range(MOST):
            assert talk(port, b"GET /%d HTTP/1.0\r\n\r\n" % turn).endswith(b"/%d" % turn)
            silent.append(socket.create_connection(("127.0.0.1", port)))
    finally:
        asked.close()
        for link in silent:
            link.close()


def test_an_address_of_the_newer_kind_is_understood() -> None:
    try:
        link = listen("[::1]:0")
    except OSError:
        assert os.environ.get("CI") != "true", "no IPv6"
        pytest.skip("NO IPV6 ON THIS MACHINE, so an address in brackets goes unchecked")
    with link:
        assert link.getsockname()[0] == "::1"


def test_a_port_that_is_none_is_refused() -> None:
    with pytest.raises(OverflowError, match="there is no port 99999"):
        listen("127.0.0.1:99999")


def test_a_socket_of_systemd_is_taken_only_if_it_is_meant_for_us() -> None:
    assert inherited({}, 7) is None
    assert inherited({"LISTEN_PID": "8", "LISTEN_FDS": "1"}, 7) is None
    assert inherited({"LISTEN_PID": "7", "LISTEN_FDS": "0"}, 7) is None
