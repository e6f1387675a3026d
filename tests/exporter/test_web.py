"""The exporter's web side, whoever comes."""

import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest

from jobsight.exporter.web import MOST, server
from tests.conftest import wait_until


class Scraper:
    """Says the same every time."""

    def scrape(self, _: list[str]) -> str:
        return "one 1\n"


@pytest.fixture
def served() -> Iterator[Any]:
    scraper: Any = Scraper()
    made = server("127.0.0.1", 0, scraper)
    thread = threading.Thread(target=made.serve_forever, args=(0.05,))
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def test_clients_that_say_nothing_take_no_more_threads_than_there_are_places(served: Any) -> None:
    before = threading.active_count()
    links = [socket.create_connection(served.server_address) for _ in range(MOST + 20)]
    try:
        # Those beyond are hung up on: they are told by an end.
        for link in links[MOST:]:
            link.settimeout(10)
            assert link.recv(1) == b""
        assert threading.active_count() - before <= MOST
    finally:
        for link in links:
            link.close()
    wait_until(lambda: threading.active_count() <= before)
    for _ in range(2 * MOST):  # a place is given back each time
        with urlopen(f"http://127.0.0.1:{served.server_port}/metrics", timeout=10) as answer:
            assert answer.read() == b"one 1\n"
