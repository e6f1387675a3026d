"""Every sink keeps the contract; each has its own habits besides."""

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from jobsight.clock import SystemClock
from jobsight.collect.agent import Tally
from jobsight.schema.units import Bytes, Seconds
from jobsight.settings import Spool
from jobsight.ship import directory, http, stdout
from jobsight.ship.sink import Place, Sink
from tests.conftest import wait_until
from tests.ship.contract import Deliver, SinkContract, message


@pytest.fixture
def place(tmp_path: Path) -> Place:
    spool = Spool(path=str(tmp_path / "spool"), size=Bytes(10**6), age=Seconds(86400))
    return Place("n1", spool, SystemClock(), Tally())


class TestStdout(SinkContract):
    @pytest.fixture
    def deliver(self, place: Place, capfdbinary: Any) -> Deliver:
        def run(act: Callable[[Sink], None]) -> list[dict[str, Any]]:
            sink = stdout.open_sink(stdout.Options(), place)
            act(sink)
            sink.close()
            return [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]

        return run


class TestDirectory(SinkContract):
    @pytest.fixture
    def deliver(self, place: Place, tmp_path: Path) -> Deliver:
        def run(act: Callable[[Sink], None]) -> list[dict[str, Any]]:
            sink = directory.open_sink(directory.Options(str(tmp_path / "tree")), place)
            act(sink)
            sink.close()
            files = sorted((tmp_path / "tree").rglob("*.jsonl"))
            return [json.loads(line) for file in files for line in file.read_text().splitlines()]

        return run

    def test_the_tree_has_a_folder_a_day_and_a_file_for_each_collector_and_node(
        self, place: Place, tmp_path: Path
    ) -> None:
        sink = directory.open_sink(directory.Options(str(tmp_path / "tree")), place)
        sink.send(message(0))
        sink.send(message(86400))
        found = sorted(str(file.relative_to(tmp_path / "tree")) for file in (tmp_path / "tree").rglob("*.jsonl"))
        assert found == ["2026/11/15/memory-n1.jsonl", "2026/11/16/memory-n1.jsonl"]


class Receiver:
    """A server that answers what it is told to and remembers what it took."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.requests: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append(dict(self.headers))
                status, headers = outer.answers.pop(0) if outer.answers else (200, {})
                if status == 200:
                    outer.taken += [json.loads(line) for line in gzip.decompress(body).splitlines()]
                said = {200: b'{"accepted": 1}', 400: b'{"error": "no"}'}.get(status, b"")
                self.send_response(status)
                for name, value in {"Content-Length": str(len(said)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/ingest"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


def options(url: str, **changes: Any) -> http.Options:
    return http.Options(**{"url": url, "window": Seconds(0.0), "timeout": Seconds(5.0), **changes})


class TestHttp(SinkContract):
    @pytest.fixture
    def deliver(self, place: Place, receiver: Receiver) -> Deliver:
        def run(act: Callable[[Sink], None]) -> list[dict[str, Any]]:
            sink = http.open_sink(options(receiver.url), place)
            act(sink)
            sink.close()
            return receiver.taken

        return run

    def test_a_busy_server_is_tried_again_and_nothing_is_lost(self, place: Place, receiver: Receiver) -> None:
        receiver.answers = [(503, {"Retry-After": "1"}), (429, {}), (500, {})]
        sink = http.open_sink(options(receiver.url), place)
        for number in range(5):
            sink.send(message(number))
        wait_until(lambda: len(receiver.taken) == 5)
        sink.close()
        assert [item["rows"]["total"] for item in receiver.taken] == [[n] for n in range(5)]
        assert (place.tally.sent, place.tally.dropped, place.tally.waiting) == (5, 0, 0)

    def test_what_a_server_never_takes_is_counted_and_does_not_block_the_rest(
        self, place: Place, receiver: Receiver
    ) -> None:
        receiver.answers = [(400, {})]
        sink = http.open_sink(options(receiver.url), place)
        sink.send(message(1))
        wait_until(lambda: place.tally.dropped == 1)
        sink.send(message(2))
        sink.close()
        assert [item["rows"]["total"] for item in receiver.taken] == [[2]]

    def test_a_batch_that_is_too_large_goes_one_by_one(self, place: Place, receiver: Receiver) -> None:
        sink = http.open_sink(options(receiver.url, window=Seconds(1.0)), place)
        receiver.answers = [(413, {})]
        for number in range(5):
            sink.send(message(number))
        sink.close()
        assert [item["rows"]["total"] for item in receiver.taken] == [[n] for n in range(5)]

    def test_an_absent_server_leaves_all_in_the_spool_for_the_next_life(
        self, place: Place, receiver: Receiver
    ) -> None:
        url = receiver.url
        away = http.open_sink(options(url.replace("/ingest", "/ingest")), place)
        receiver.answers = [(503, {})] * 100
        for number in range(5):
            away.send(message(number))
        away.close()
        receiver.answers = []
        back = http.open_sink(options(url), place)
        back.send(message(5))
        back.close()
        assert [item["rows"]["total"] for item in receiver.taken] == [[n] for n in range(6)]

    def test_connections_are_kept_and_the_token_is_sent(
        self, place: Place, receiver: Receiver, tmp_path: Path
    ) -> None:
        (tmp_path / "token").write_text("secret\n")
        sink = http.open_sink(options(receiver.url, token_file=str(tmp_path / "token")), place)
        sink.send(message(1))
        wait_until(lambda: receiver.taken)
        sink.close()
        assert receiver.requests[0]["Authorization"] == "Bearer secret"
        assert receiver.requests[0]["Content-Encoding"] == "gzip"

    def test_a_token_nobody_can_send_is_waited_for_and_the_sender_lives(
        self, place: Place, receiver: Receiver, tmp_path: Path
    ) -> None:
        token = tmp_path / "token"
        token.write_text("\u2019")
        sink = http.Http(options(receiver.url)._replace(token_file=str(token)), place)
        sink.send(message(1))
        wait_until(lambda: sink._troubled)
        token.write_text("good")
        wait_until(lambda: len(receiver.taken) == 1)
        sink.close()
        assert receiver.requests[-1]["Authorization"] == "Bearer good"

    def test_a_mark_that_cannot_be_written_stops_nobody(
        self, place: Place, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("jobsight.files.replace", full)
        sink = http.open_sink(options(receiver.url), place)
        for number in range(3):
            sink.send(message(number))
            wait_until(lambda number=number: len(receiver.taken) > number)  # type: ignore[misc]
        sink.close()
