"""The Kafka sink against brokers in a process of their own, which can be stopped and continued."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from jobsight import settings
from jobsight.clock import SystemClock
from jobsight.collect.agent import Tally
from jobsight.schema.units import Bytes, Seconds
from jobsight.ship import courier, kafka
from jobsight.ship.sink import Place, Sink
from tests.conftest import free_port, wait_until
from tests.ship.contract import Deliver, SinkContract, message

# The client library has brokers inside: real sockets, messages in memory, topics made when first named.
BROKERS = """
import sys, confluent_kafka
held = confluent_kafka.Producer({"test.mock.num.brokers": 2, "log_level": 0})
print(",".join(f"{one.host}:{one.port}" for one in held.list_topics(timeout=30).brokers.values()), flush=True)
sys.stdin.read()
"""


class Brokers:
    """Brokers in a process of their own."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", BROKERS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout
        self.addresses = tuple(self.process.stdout.readline().strip().split(","))

    def sleep(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)
        tasks = Path(f"/proc/{self.process.pid}/task")
        wait_until(lambda: all(") T " in (task / "stat").read_text() for task in tasks.iterdir()), what="all sleep")

    def wake(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def close(self) -> None:
        self.wake()
        self.process.communicate(timeout=30)

    def records(self, topic: str) -> list[Any]:
        """All of a topic, partition after partition."""
        reader = Consumer(
            {"bootstrap.servers": ",".join(self.addresses), "group.id": "t", "enable.partition.eof": True}
        )
        try:
            known = reader.list_topics(timeout=30).topics
            parts = list(known[topic].partitions) if topic in known else []
            reader.assign([TopicPartition(topic, part, 0) for part in parts])
            found, ended = [], 0
            while ended < len(parts):
                got = reader.poll(30)
                assert got is not None, "no broker answers"
                if error := got.error():
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    ended += 1
                else:
                    found.append(got)
            return found
        finally:
            reader.close()

    def values(self, topic: str) -> list[dict[str, Any]]:
        return [json.loads(record.value()) for record in self.records(topic)]


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    made = Brokers()
    yield made
    made.close()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    spool = settings.Spool(str(tmp_path / "spool"), Bytes(10**7), Seconds(86400))
    return Place("n1", spool, SystemClock(), Tally())


def options(brokers: tuple[str, ...], tmp_path: Path, **changes: Any) -> kafka.Options:
    """Each test has topics of its own."""
    return kafka.Options(**{"brokers": brokers, "prefix": tmp_path.name, "window": Seconds(0.0), **changes})


def totals(values: list[dict[str, Any]]) -> list[int]:
    return [value["rows"]["total"][0] for value in values]


class TestKafka(SinkContract):
    @pytest.fixture
    def deliver(self, place: Place, brokers: Brokers, tmp_path: Path) -> Deliver:
        def run(act: Callable[[Sink], None]) -> list[dict[str, Any]]:
            sink = kafka.open_sink(options(brokers.addresses, tmp_path), place)
            act(sink)
            sink.close()
            return brokers.values(f"{tmp_path.name}.fox.memory")

        return run

    def test_a_topic_for_each_cluster_and_collector_and_the_node_as_key(
        self, place: Place, brokers: Brokers, tmp_path: Path
    ) -> None:
        sink = kafka.open_sink(options(brokers.addresses, tmp_path), place)
        for node in ("n1", "n2", "n1"):
            sink.send(message(1, node=node))
            sink.send(message(1, node=node, collector="load"))
        sink.close()
        for topic in ("memory", "load"):
            records = brokers.records(f"{tmp_path.name}.fox.{topic}")
            assert sorted(record.key() for record in records) == [b"n1", b"n1", b"n2"]
            assert len({record.partition() for record in records if record.key() == b"n1"}) == 1
            assert {json.loads(record.value())["collector"] for record in records} == {topic}
        assert (place.tally.sent, place.tally.dropped, place.tally.waiting) == (6, 0, 0)

    def test_brokers_that_stop_answering_get_everything_once_and_in_order_when_they_wake(
        self, place: Place, brokers: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(courier, "LONGEST_PAUSE", 0.1)
        sink = kafka.open_sink(options(brokers.addresses, tmp_path, timeout=Seconds(0.2)), place)
        sink.send(message(0))
        wait_until(lambda: place.tally.sent == 1)
        brokers.sleep()
        try:
            for number in range(1, 100):
                sink.send(message(number))
            wait_until(lambda: sink._troubled)  # type: ignore[attr-defined]
            assert place.tally.sent == 1
        finally:
            brokers.wake()
        wait_until(lambda: place.tally.sent == 100)
        sink.close()
        assert totals(brokers.values(f"{tmp_path.name}.fox.memory")) == list(range(100))
        assert (place.tally.dropped, place.tally.waiting) == (0, 0)

    def test_brokers_that_are_not_there_yet_are_waited_for(
        self, place: Place, brokers: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(courier, "LONGEST_PAUSE", 0.1)
        port = free_port()
        sink = kafka.open_sink(options((f"127.0.0.1:{port}",), tmp_path), place)
        for number in range(20):
            sink.send(message(number))
        wait_until(lambda: sink._troubled)  # type: ignore[attr-defined]
        with Door(port, brokers.addresses[0]):
            wait_until(lambda: place.tally.sent == 20)
            sink.close()
        assert totals(brokers.values(f"{tmp_path.name}.fox.memory")) == list(range(20))

    def test_what_was_under_way_at_the_end_of_one_life_is_delivered_in_the_next(
        self, place: Place, brokers: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(courier, "PATIENCE", 0.2)
        sink = kafka.open_sink(options(brokers.addresses, tmp_path), place)
        sink.send(message(0))
        wait_until(lambda: place.tally.sent == 1)
        brokers.sleep()
        try:
            for number in range(1, 10):
                sink.send(message(number))
            sink.close()
        finally:
            brokers.wake()
        assert place.tally.sent == 1
        monkeypatch.setattr(courier, "PATIENCE", 30.0)
        again = kafka.open_sink(options(brokers.addresses, tmp_path), place)
        again.send(message(10))
        again.close()
        arrived = totals(brokers.values(f"{tmp_path.name}.fox.memory"))
        # Some may have arrived in the first life, unheard of: those come twice, and a store keeps one.
        assert list(dict.fromkeys(arrived)) == list(range(11))
        assert arrived[-10:] == list(range(1, 11))

    def test_a_message_too_large_is_refused_and_its_neighbours_are_not(
        self, place: Place, brokers: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(kafka, "LARGEST", 5000)
        sink = kafka.open_sink(options(brokers.addresses, tmp_path), place)
        sink.send(message(0))
        sink.send(message(1)._replace(error="x" * 10_000))
        sink.send(message(2))
        sink.close()
        assert totals(brokers.values(f"{tmp_path.name}.fox.memory")) == [0, 2]
        assert (place.tally.sent, place.tally.dropped, place.tally.waiting) == (2, 1, 0)


class Door:
    """A port that leads to a broker: the first question is asked there, the answer names the broker's own address."""

    def __init__(self, port: int, to: str) -> None:
        host, _, number = to.rpartition(":")
        self._to = (host, int(number))
        self._listener = socket.create_server(("127.0.0.1", port))
        self._links: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            other = socket.create_connection(self._to)
            self._links += [link, other]
            for one, two in ((link, other), (other, link)):
                threading.Thread(target=self._carry, args=(one, two), daemon=True).start()

    def _carry(self, one: socket.socket, two: socket.socket) -> None:
        try:
            while piece := one.recv(65536):
                two.sendall(piece)
            two.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for one in [self._listener, *self._links]:
            one.close()


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ((None, "fox", "process"), "fox.process"),
        (("site", "fox", "process"), "site.fox.process"),
        (("", "fox", "load"), "fox.load"),
        ((None, "fox hunt/ø\n", "load"), "fox_hunt___.load"),
        ((None, "x" * 300, "load"), "x" * 249),
    ],
)
def test_a_topic_is_a_name_kafka_allows(words: tuple[str | None, ...], name: str) -> None:
    assert kafka.topic(*words) == name


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"brokers": []}, "expected brokers"),
        ({"brokers": ["kafka://b:9092"]}, "expected brokers"),
        ({"brokers": "b:9092"}, "expected a list"),
        ({"brokers": ["b"], "prefix": "a b"}, "expected a prefix"),
        ({"brokers": ["b"], "username": "me"}, "go together"),
        ({"brokers": ["b"], "mechanism": "GSSAPI"}, "expected a mechanism"),
        ({"brokers": ["b"], "tls": False, "ca_file": "ca.pem"}, "without tls"),
    ],
)
def test_settings_that_cannot_work_are_one_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(settings.SettingsError, match=f"kafka.*{sentence}"):
        settings.from_values({"sinks": [{"kafka": given}]})


def test_without_the_client_library_the_settings_say_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(settings.SettingsError, match=r"needs confluent-kafka: pip install 'jobsight\[kafka\]'"):
        settings.from_values({"sinks": [{"kafka": {"brokers": ["b:9092"]}}]})


def test_a_password_is_read_from_its_file_and_never_sent_in_the_clear_unasked(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\n")
    given = kafka.Options(("b:9093",), username="me", password_file=str(tmp_path / "password"))
    made = kafka.config(given)
    assert (made["security.protocol"], made["sasl.password"]) == ("SASL_SSL", "secret")
    assert made["ssl.endpoint.identification.algorithm"] == "https"
    assert kafka.config(given._replace(tls=False))["security.protocol"] == "SASL_PLAINTEXT"
    assert kafka.config(kafka.Options(("b:9093",), tls=True))["security.protocol"] == "SSL"
    assert kafka.config(kafka.Options(("b:9092",)))["security.protocol"] == "PLAINTEXT"
    with pytest.raises(ValueError, match=r"expected a password in .*nowhere, got nothing"):
        kafka.config(given._replace(password_file=str(tmp_path / "nowhere")))


def test_a_file_the_client_cannot_read_is_told_when_the_sink_is_opened(place: Place, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ssl\.ca\.location"):
        kafka.open_sink(kafka.Options(("b:9093",), ca_file=str(tmp_path / "nowhere.pem")), place)
