"""Addresses taken apart, and answers that are not as they should be."""

import socket
import threading

import pytest

from jobsight.ship.post import Address, Poster, PostError, address


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("http://monitor/ingest", (False, "monitor", 80, "/ingest")),
        ("https://monitor.example/ingest", (True, "monitor.example", 443, "/ingest")),
        ("http://127.0.0.1:9020/ingest", (False, "127.0.0.1", 9020, "/ingest")),
        ("http://[::1]:9020/ingest", (False, "::1", 9020, "/ingest")),
        ("http://[::1]", (False, "::1", 80, "/")),
    ],
)
def test_an_address_is_taken_apart(url: str, parts: tuple[bool, str, int, str]) -> None:
    assert address(url) == Address(*parts)


@pytest.mark.parametrize("url", ["monitor/ingest", "ftp://monitor/", "http://", "http://host:port/"])
def test_what_is_no_address_is_refused_with_a_sentence(url: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        address(url)


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort"]
)
def test_an_answer_that_is_none_is_an_error(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            link, _ = listener.accept()
            link.recv(65536)
            link.sendall(answer)
            link.close()

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(PostError):
            Poster(Address(False, "127.0.0.1", listener.getsockname()[1], "/"), 5).post(b"x", {})
        thread.join()


def test_a_server_that_answers_before_it_has_all_and_hangs_up_is_heard() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            link, _ = listener.accept()
            link.recv(1024)
            link.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
            # With unread bytes behind it the kernel resets the connection.
            link.close()

        thread = threading.Thread(target=serve)
        thread.start()
        poster = Poster(Address(False, "127.0.0.1", listener.getsockname()[1], "/"), 5)
        answer = poster.post(bytes(30 * 2**20), {})
        thread.join()
        assert (answer.status, answer.body) == (413, b"no")
        assert poster._socket is None
