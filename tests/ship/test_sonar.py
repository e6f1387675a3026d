"""The sink `sonar`: files, addresses and topics as Sonar has them, and nothing lost on the way."""

import json
import re
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from jobsight.clock import SystemClock
from jobsight.collect.agent import Tally
from jobsight.schema.message import Message, Origin
from jobsight.schema.units import Bytes, Seconds
from jobsight.settings import Spool
from jobsight.ship import sonar
from jobsight.ship.sink import Place, Sink
from tests.compat import rules
from tests.compat.messages import message, processes
from tests.conftest import wait_until
from tests.ship.test_kafka import Brokers

HARDWARE = {"model": "Xeon", "cpus": 8, "cores": 4, "sockets": 2, "memory": 2**30, "system": "Debian", "kernel": "6"}
Deliver = Callable[[Callable[[Sink], None]], list[Any]]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    spool = Spool(path=str(tmp_path / "spool"), size=Bytes(10**6), age=Seconds(86400))
    return Place("n1", spool, SystemClock(), Tally())


def round_of(number: int, node: str = "n1") -> list[Message]:
    """Hardware and processes; the pid says which round it is."""
    after = 30.0 * number
    rows = [message("hardware", [HARDWARE], after), processes({"pid": number + 1}, after=after)]
    return [row._replace(origin=Origin("fox", node, "b1")) for row in rows]


def send(sink: Sink, *numbers: int, node: str = "n1") -> None:
    for number in numbers:
        for one in round_of(number, node):
            sink.send(one)


def pids(documents: list[Any]) -> list[int]:
    """Of the samples, in the order they came."""
    samples = [item["data"]["attributes"] for item in documents if item["data"]["type"] == "sample"]
    found: list[int] = [sample["jobs"][0]["processes"][0]["pid"] for sample in samples]
    return found


class SonarContract:
    """What holds wherever the documents go. Subclass with a fixture `deliver`, as for `SinkContract`."""

    def test_documents_arrive_whole_and_in_order(self, deliver: Deliver) -> None:
        arrived = deliver(lambda sink: send(sink, *range(20)))
        assert pids(arrived) == list(range(1, 21))
        assert len(arrived) == 40
        for item in arrived:
            rules.check(item, item["data"]["type"])

    def test_closing_without_a_message_is_fine(self, deliver: Deliver) -> None:
        assert deliver(lambda _: None) == []

    def test_names_that_could_break_a_path_or_a_line_do_not(self, deliver: Deliver) -> None:
        names = ["../../etc/passwd", "a\nb", "sub/dir"]

        def act(sink: Sink) -> None:
            for name in names:
                send(sink, 0, node=name)

        arrived = deliver(act)
        assert sorted({item["data"]["attributes"]["node"] for item in arrived}) == sorted(names)


class TestTree(SonarContract):
    @pytest.fixture
    def deliver(self, place: Place, tmp_path: Path) -> Deliver:
        def run(act: Callable[[Sink], None]) -> list[Any]:
            sink = sonar.open_sink(sonar.Options(path=str(tmp_path / "tree")), place)
            act(sink)
            sink.close()
            found = sorted((tmp_path / "tree").rglob("*.json"))
            assert sorted(tmp_path.rglob("*.json")) == found
            return [json.loads(line) for file in found for line in file.read_text().splitlines()]

        return run

    def test_the_tree_is_sonars(self, place: Place, tmp_path: Path) -> None:
        sink = sonar.open_sink(sonar.Options(path=str(tmp_path / "tree")), place)
        send(sink, 0, 2880)
        found = sorted(str(file.relative_to(tmp_path / "tree")) for file in (tmp_path / "tree").rglob("*.json"))
        assert found == [
            "2026/11/15/0+sample-n1.json",
            "2026/11/15/0+sysinfo-n1.json",
            "2026/11/16/0+sample-n1.json",
            "2026/11/16/0+sysinfo-n1.json",
        ]
        assert place.tally.sent == 4


class Server:
    """Answers what it is told to and remembers what it took, and where."""

    def __init__(self) -> None:
        self.taken: list[Any] = []
        self.answers: list[int] = []
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.password: str | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((self.path, dict(self.headers)))
                status = outer.answers.pop(0) if outer.answers else outer.verdict(self.headers.get("Authorization"))
                if status < 300:
                    assert body.endswith(b"\n")
                    outer.taken.append(json.loads(body))
                answer = b"any answer"
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/api/v1/insert"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def verdict(self, authorization: str | None) -> int:
        if self.password is None:
            return 200
        given = b64decode((authorization or "").removeprefix("Basic ")).decode()
        return 200 if given == f"fox:{self.password}" else 401

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def receiver(server: Server, place: Place, **changes: Any) -> Sink:
    options = sonar.Options(url=server.url, window=Seconds(0.0), timeout=Seconds(5.0), **changes)
    sonar.check(options)
    return sonar.open_sink(options, place)


class TestReceiver(SonarContract):
    @pytest.fixture
    def deliver(self, place: Place, server: Server) -> Deliver:
        def run(act: Callable[[Sink], None]) -> list[Any]:
            sink = receiver(server, place)
            act(sink)
            sink.close()
            return server.taken

        return run

    def test_each_kind_has_its_address_and_a_document_is_a_request(self, place: Place, server: Server) -> None:
        sink = receiver(server, place)
        send(sink, 0, 1)
        sink.close()
        assert [path.rpartition("/")[2] for path, _ in server.requests] == ["sysinfo", "sample"] * 2
        assert {path.rpartition("/")[0] for path, _ in server.requests} == {"/api/v1/insert"}
        assert {headers["Content-Type"] for _, headers in server.requests} == {"application/json"}
        assert not any("Authorization" in headers for _, headers in server.requests)
        assert (place.tally.sent, place.tally.waiting, place.tally.dropped) == (4, 0, 0)

    def test_a_prefix_stands_before_the_kind(self, place: Place, server: Server) -> None:
        sink = receiver(server, place, prefix="test")
        send(sink, 0)
        sink.close()
        assert server.requests[0][0] == "/api/v1/insert/test.sysinfo"

    def test_a_wrong_password_keeps_all_until_the_right_one_is_there(
        self, place: Place, server: Server, tmp_path: Path
    ) -> None:
        server.password = "right"
        (tmp_path / "password").write_text("wrong\n")
        sink = receiver(server, place, password_file=str(tmp_path / "password"))
        send(sink, 0, 1)
        wait_until(lambda: server.requests)
        assert server.taken == []
        assert place.tally.waiting > 0
        (tmp_path / "password").write_text("right\n")
        wait_until(lambda: len(server.taken) == 4)
        sink.close()
        assert pids(server.taken) == [1, 2]
        assert (place.tally.sent, place.tally.waiting, place.tally.dropped) == (4, 0, 0)

    def test_what_was_taken_is_not_sent_again_because_of_what_was_not(self, place: Place, server: Server) -> None:
        server.answers = [200, 503]
        sink = receiver(server, place)
        send(sink, 0, 1, 2)
        wait_until(lambda: len(server.taken) == 6)
        sink.close()
        assert pids(server.taken) == [1, 2, 3]
        assert len(server.requests) == 7

    def test_what_a_server_never_takes_is_counted_and_does_not_block_the_rest(
        self, place: Place, server: Server
    ) -> None:
        server.answers = [200, 400]
        sink = receiver(server, place)
        send(sink, 0, 1)
        sink.close()
        assert pids(server.taken) == [2]
        assert (place.tally.sent, place.tally.dropped) == (3, 1)

    def test_a_server_that_is_away_leaves_all_in_the_spool_for_the_next_life(
        self, place: Place, server: Server
    ) -> None:
        server.answers = [503] * 100
        away = receiver(server, place)
        send(away, 0, 1)
        away.close()
        assert server.taken == []
        server.answers = []
        back = receiver(server, place)
        send(back, 2)
        back.close()
        assert pids(server.taken) == [1, 2, 3]

    def test_a_spool_that_holds_something_else_does_not_stop_the_sender(self, place: Place, server: Server) -> None:
        sink = receiver(server, place)
        sink._carrier.put(b"something else")  # type: ignore[attr-defined]
        send(sink, 0)
        sink.close()
        assert pids(server.taken) == [1]
        assert place.tally.dropped == 1


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    made = Brokers()
    yield made
    made.close()


class TestTopics:
    def test_topics_keys_and_values_are_sonars(self, place: Place, brokers: Brokers) -> None:
        options = sonar.Options(brokers=brokers.addresses, prefix="test", window=Seconds(0.0))
        sonar.check(options)
        sink = sonar.open_sink(options, place)
        send(sink, *range(5))
        wait_until(lambda: place.tally.sent == 10)
        sink.close()
        samples, sysinfos = brokers.records("test.fox.sample"), brokers.records("test.fox.sysinfo")
        assert {record.key() for record in samples + sysinfos} == {b"n1"}
        assert all(record.value().endswith(b"}\n") for record in samples + sysinfos)
        assert pids([json.loads(record.value()) for record in samples]) == [1, 2, 3, 4, 5]
        for record in sysinfos:
            rules.check(json.loads(record.value()), "sysinfo")
        assert len(sysinfos) == 5


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "expected one of path, url and brokers, got none"),
        ({"path": "/tmp", "url": "http://h/"}, "expected one of path, url and brokers, got path and url"),
        ({"url": "ftp://h/"}, "expected an address such as https://"),
        ({"url": "http://h/", "username": "me"}, "username needs a password_file"),
        ({"url": "http://h/", "ca_file": "/ca"}, "ca_file means nothing together with url"),
        ({"url": "http://h/", "prefix": "a b"}, "expected a prefix of letters"),
        ({"path": "/tmp", "prefix": "test"}, "prefix means nothing together with path"),
        ({"brokers": ("a b",)}, "expected brokers such as"),
        ({"brokers": ("h:9092",), "password_file": "/p"}, "username and password_file go together"),
    ],
)
def test_settings_that_cannot_be_are_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        sonar.check(sonar.Options(**options))
