"""Requests as they come over the wire."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobsight.collector import ParseError
from jobsight.exporter.request import accepts, parse

PROMETHEUS = (
    b"GET /metrics?collect%5B%5D=memory&collect=a+b&empty HTTP/1.1\r\nHost: n1:9010\r\n"
    b"User-Agent: Prometheus/2.42.0\r\nAccept: text/plain;q=0.5\r\naccept: */*;q=0.1\r\nAccept-Encoding: gzip\r\n\r\n"
)
# As Prometheus 2.42 likes it.
SCRAPE = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)


def test_a_scrape_of_prometheus_is_understood() -> None:
    found = parse(PROMETHEUS)
    assert (found.method, found.path, found.lasting) == ("GET", "/metrics", True)
    assert found.values("collect", "collect[]") == ["memory", "a b"]
    assert found.headers["accept"] == "text/plain;q=0.5, */*;q=0.1"
    assert parse(b"GET / HTTP/1.1\r\nA:\t b" + b" " * 15000 + b"c \r\n\r\n").headers["a"][:2] == "b "


@pytest.mark.parametrize(
    ("line", "headers", "lasting"),
    [
        (b"GET / HTTP/1.1", b"", True),
        (b"GET / HTTP/1.1", b"Connection: Close\r\n", False),
        (b"GET / HTTP/1.0", b"", False),
        (b"GET / HTTP/1.0", b"Connection: keep-alive\r\n", True),
        # A body would be taken for the next request.
        (b"GET / HTTP/1.1", b"Content-Length: 4\r\n", False),
        (b"GET / HTTP/1.1", b"Transfer-Encoding: chunked\r\n", False),
        (b"GET / HTTP/1.1", b"Content-Length: 0\r\nContent-Length: 4\r\n", False),
    ],
)
def test_a_connection_goes_on_where_both_want_it(line: bytes, headers: bytes, lasting: bool) -> None:
    assert parse(line + b"\r\n" + headers + b"\r\n").lasting is lasting


def test_the_address_as_proxies_send_it_has_the_same_path() -> None:
    assert parse(b"GET http://n1:9010/a%20b?x=1 HTTP/1.1\r\n\r\n").path == "/a b"
    assert parse(b"GET http://n1:9010 HTTP/1.1\r\n\r\n").path == "/"


@pytest.mark.parametrize(
    "head",
    [
        b"\r\n\r\n",
        b"GET /\r\n\r\n",
        b"get / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/2.0\r\n\r\n",
        b"GET /a b HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nno header\r\n\r\n",
        b"GET / HTTP/1.1\r\n folded: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nBad Name: x\r\n\r\n",
        # Of blanks and a lone line feed a pattern may be made to think for hours.
        b"GET / HTTP/1.1\r\nA:" + b" " * 15000 + b"\n\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: b\0c\r\n\r\n",
        b"\x16\x03\x01\x02\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused(head: bytes) -> None:
    with pytest.raises(ParseError, match="expected a"):
        parse(head)


@given(st.integers(0, len(PROMETHEUS) - 1), st.binary(max_size=8), st.integers(0, 20))
def test_a_request_with_other_bytes_in_it_is_understood_or_refused(at: int, other: bytes, cut: int) -> None:
    head = PROMETHEUS[:at] + other + PROMETHEUS[at + cut :]
    with suppress(ParseError):
        parse(head)


@pytest.mark.parametrize(
    ("header", "liked"),
    [
        (SCRAPE, "application/openmetrics-text"),
        ("text/plain", "text/plain"),
        ("text/plain, application/openmetrics-text", "text/plain"),
        ("application/openmetrics-text;q=0", None),
        ("", None),
        ("*/*", None),
        ("application/openmetrics-text;q=x", None),
    ],
)
def test_the_format_that_is_liked_best_is_chosen(header: str, liked: str | None) -> None:
    assert accepts(header, "text/plain", "application/openmetrics-text") == liked
