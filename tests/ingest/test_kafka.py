"""Reading from Kafka, with a client that does as it is told; tests/integration/test_kafka.py has a real broker."""

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from jobsight.ingest import assembly, kafka, subscription
from jobsight.ingest.assembly import Record
from jobsight.ingest.kafka import Consumer
from jobsight.ingest.quarantine import Quarantine
from jobsight.schema.wire import compress
from jobsight.serving import Kafka
from jobsight.settings import SettingsError, parse
from jobsight.ship.part import HEADER, cut
from tests.conftest import wait_until
from tests.store.contract import BOOT, load_line

OPTIONS = Kafka(("kafka.example:9092",))


class Given:
    """A record or an error, as the client library hands it out."""

    def __init__(
        self, value: bytes | None, offset: int = 0, error: KafkaError | None = None, part: bytes | None = None
    ) -> None:
        self._value, self._offset, self._error, self._part = value, offset, error, part

    def error(self) -> KafkaError | None:
        return self._error

    def value(self) -> bytes | None:
        return self._value

    def headers(self) -> list[tuple[str, bytes]] | None:
        return [("other", b"x"), (HEADER, self._part)] if self._part else None

    def topic(self) -> str:
        return "fox.load"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return self._offset


class Library:
    """A client of one partition that hands out what it is given and remembers what it is told."""

    def __init__(self, *values: bytes | None) -> None:
        self.waiting: list[Given | Exception] = [Given(value, number) for number, value in enumerate(values)]
        self.strays: list[Given] = []
        """Handed out although they were asked to wait."""
        self.told: list[int] = []
        self.calls: list[str] = []
        self.polls = 0
        self.taken_away = False
        self.given: dict[str, Any] = {}
        self.topics: list[str] = []
        self.assigned = [TopicPartition("fox.load", 3)]
        self.paused: set[TopicPartition] = set()
        self.on_assign: Callable[[Any, list[Any]], None] = lambda *_: None

    def connect(self, config: dict[str, Any]) -> "Library":
        self.given = config
        self.calls.append("connect")
        if self.calls.count("connect") == 2:
            raise ValueError("a file is away for a moment")
        return self

    def subscribe(self, topics: list[str], *, on_assign: Callable[[Any, list[Any]], None]) -> None:
        self.topics, self.on_assign = topics, on_assign

    def poll(self, timeout: float) -> Given | None:
        self.polls += 1
        if self.paused and self.strays:
            return self.strays.pop(0)
        if self.paused or not self.waiting:
            threading.Event().wait(min(timeout, 0.01))
            return None
        got = self.waiting.pop(0)
        if isinstance(got, Exception):
            raise got
        return got

    def assignment(self) -> list[Any]:
        return list(self.assigned)

    def incremental_assign(self, partitions: list[Any]) -> None:
        self.assigned += partitions

    def pause(self, partitions: list[Any]) -> None:
        self.paused |= set(partitions)

    def resume(self, partitions: list[Any]) -> None:
        self.paused -= set(partitions)

    def store_offsets(self, *, offsets: list[Any]) -> None:
        if self.taken_away:
            raise KafkaException(KafkaError(KafkaError._STATE))
        self.told += [part.offset for part in offsets]

    def close(self) -> None:
        self.calls.append("close")


class Store:
    """Takes lines when the test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[bytes], Future[None]]] = []
        self.error: Exception | None = None
        self.prompt = True

    def append(self, lines: Sequence[bytes]) -> "Future[None]":
        done: Future[None] = Future()
        self.asked.append((list(lines), done))
        if self.error:
            done.set_exception(self.error)
        elif self.prompt:
            done.set_result(None)
        return done

    def times(self) -> list[float]:
        """Of the messages it has."""
        had = [line for lines, done in self.asked if done.done() and not done.exception() for line in lines]
        return [json.loads(line)["uptime"] for line in had]


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def quarantine(tmp_path: Path) -> Quarantine:
    return Quarantine(str(tmp_path / "quarantine"))


@pytest.fixture
def read(store: Store, quarantine: Quarantine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Consumer]]:
    """Starts to read; whatever the test leaves running is stopped."""
    monkeypatch.setattr(kafka, "LINGER", 0.02)
    monkeypatch.setattr(kafka, "FIRST_PAUSE", 0.02)
    started: list[Consumer] = []

    def begin(library: Library) -> Consumer:
        started.append(Consumer(OPTIONS, store.append, quarantine, library.connect))
        return started[-1]

    yield begin
    for consumer in started:
        consumer.stop()


def lines(count: int) -> list[bytes]:
    return [load_line(BOOT + number) for number in range(count)]


def refusals(tmp_path: Path) -> list[dict[str, str]]:
    files = sorted((tmp_path / "quarantine").iterdir())
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_many_records_go_to_the_store_together_and_in_order(store: Store, read: Callable[..., Consumer]) -> None:
    library = Library(*lines(100))
    consumer = read(library)
    wait_until(lambda: library.told and library.told[-1] == 100)
    assert library.topics == [subscription.pattern(OPTIONS)]
    assert store.times() == list(range(100))
    assert len(store.asked) < 20
    assert (consumer.accepted, consumer.refused) == (100, 0)


def test_large_records_go_in_several_groups(
    store: Store, read: Callable[..., Consumer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "GROUP", 3000)
    library = Library(*lines(40))
    read(library)
    wait_until(lambda: library.told and library.told[-1] == 40)
    assert store.times() == list(range(40))
    assert max(sum(len(line) for line in group) for group, _ in store.asked) <= 3000


def test_brokers_are_told_of_nothing_that_the_store_does_not_have(
    store: Store, read: Callable[..., Consumer]
) -> None:
    store.prompt = False
    library = Library(*lines(3))
    read(library)
    wait_until(lambda: store.asked)
    assert not threading.Event().wait(0.1)
    assert library.told == []
    store.prompt = True
    store.asked[0][1].set_result(None)
    wait_until(lambda: library.told and library.told[-1] == 3)


def test_a_store_that_fails_is_asked_again_while_nothing_is_fetched_and_it_is_said_once(
    store: Store, read: Callable[..., Consumer], capsys: pytest.CaptureFixture[str]
) -> None:
    store.error = OSError(28, "No space left on device")
    library = Library(*lines(3))
    read(library)
    wait_until(lambda: len(store.asked) > 3)
    assert (library.paused, library.told) == ({TopicPartition("fox.load", 3)}, [])
    polls = library.polls
    wait_until(lambda: library.polls > polls, what="it stays in the group")
    # A partition that comes to us now must wait like the others.
    library.on_assign(library, [TopicPartition("fox.load", 4)])
    assert library.paused == {TopicPartition("fox.load", 3), TopicPartition("fox.load", 4)}
    store.error = None
    wait_until(lambda: library.told and library.told[-1] == 3)
    assert library.paused == set()
    assert store.times() == [0, 1, 2]
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "jobsight: the store takes nothing, so messages wait in Kafka: [Errno 28] No space left on device",
        "jobsight: the store takes messages from Kafka again",
    ]


def test_a_record_that_was_on_its_way_when_the_store_failed_comes_next(
    store: Store, read: Callable[..., Consumer]
) -> None:
    store.error = OSError(28, "No space left on device")
    library = Library(*lines(2))
    library.strays.append(Given(load_line(BOOT + 2), 2))
    read(library)
    wait_until(lambda: library.paused and not library.strays)
    library.waiting.append(Given(load_line(BOOT + 3), 3))
    store.error = None
    wait_until(lambda: library.told and library.told[-1] == 4)
    assert store.times() == [0, 1, 2, 3]


def test_stopping_while_the_store_fails_tells_the_brokers_nothing(
    store: Store, read: Callable[..., Consumer]
) -> None:
    store.error = OSError(28, "No space left on device")
    library = Library(*lines(3))
    consumer = read(library)
    wait_until(lambda: store.asked)
    consumer.stop()
    assert library.told == []
    assert library.calls[-1] == "close"


def test_records_that_are_no_messages_are_set_aside_with_their_place(
    store: Store, read: Callable[..., Consumer], tmp_path: Path
) -> None:
    deep = lines(1)[0].replace(b'"rows": {', b'"rows": {"x":' + b"[" * 50_000)
    library = Library(lines(1)[0], b"poison", None, deep, load_line(BOOT + 1))
    consumer = read(library)
    wait_until(lambda: library.told and library.told[-1] == 5)
    assert store.times() == [0, 1]
    assert (consumer.accepted, consumer.refused) == (2, 3)
    kept = refusals(tmp_path)
    places = [entry["reason"].rpartition(" (")[2] for entry in kept]
    assert places == [f"fox.load, partition 3, offset {number})" for number in (1, 2, 3)]
    assert kept[0]["message"] == "poison"


def test_a_quarantine_that_cannot_write_is_waited_for_too(
    store: Store, quarantine: Quarantine, read: Callable[..., Consumer], monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    def keep(refused: list[Any]) -> None:
        tries.append(refused)
        if len(tries) < 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(quarantine, "keep", keep)
    library = Library(lines(1)[0], b"poison")
    read(library)
    wait_until(lambda: library.told and library.told[-1] == 2)
    assert len(tries) == 3
    assert store.times() == [0]


def test_a_partition_that_was_taken_from_us_stops_nothing(store: Store, read: Callable[..., Consumer]) -> None:
    library = Library(*lines(2))
    library.taken_away = True
    read(library)
    wait_until(lambda: store.times() == [0, 1])
    library.taken_away = False
    library.waiting.append(Given(load_line(BOOT + 2), 2))
    wait_until(lambda: library.told == [3])


def test_trouble_with_brokers_is_said_once_and_its_end_too(
    store: Store, read: Callable[..., Consumer], capsys: pytest.CaptureFixture[str]
) -> None:
    library = Library()
    read(library)
    for _ in range(2):
        library.given["error_cb"](KafkaError(KafkaError._TRANSPORT, "connection refused"))
        library.given["error_cb"](KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    library.waiting.append(Given(lines(1)[0], 0))
    wait_until(lambda: library.told == [1])
    assert capsys.readouterr().err.splitlines() == [
        "jobsight: reading from Kafka: 1/1 brokers are down (connection refused)",
        "jobsight: reading from Kafka again",
    ]


def test_a_topic_that_may_not_be_read_is_said_once_while_others_are_read(
    store: Store, read: Callable[..., Consumer], capsys: pytest.CaptureFixture[str]
) -> None:
    closed = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "no access to owl.load")
    library = Library()
    for number in range(3):
        library.waiting += [Given(None, error=closed), Given(load_line(BOOT + number), number)]
    read(library)
    wait_until(lambda: library.told and library.told[-1] == 3)
    assert store.times() == [0, 1, 2]
    assert capsys.readouterr().err == "jobsight: reading from Kafka: no access to owl.load\n"


def test_a_client_that_is_past_use_is_replaced(store: Store, read: Callable[..., Consumer]) -> None:
    library = Library()
    library.waiting += [KafkaException(KafkaError(KafkaError._FATAL)), Given(lines(1)[0], 7)]
    read(library)
    wait_until(lambda: library.told == [8])
    assert library.calls == ["connect", "close", "connect", "connect"]


def in_parts(line: bytes, offset: int, size: int = 60) -> list[Given | KafkaException]:
    parts = enumerate(cut(compress(line), size), offset)
    return [Given(part.content, number, part=part.header()) for number, part in parts]


def test_trouble_nobody_foresaw_is_said_and_reading_goes_on(
    store: Store, read: Callable[..., Consumer], capsys: pytest.CaptureFixture[str]
) -> None:
    library = Library()
    library.waiting += [RuntimeError("a bug"), Given(lines(2)[1], 7)]
    read(library)
    wait_until(lambda: library.told == [8])
    assert library.calls == ["connect", "close", "connect", "connect"]
    assert store.times() == [1.0]
    assert "reading from Kafka failed and is tried again: a bug" in capsys.readouterr().err


def test_headers_that_cannot_be_read_do_not_stop_the_partition(
    store: Store, read: Callable[..., Consumer], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(*lines(2))
    monkeypatch.setattr(library.waiting[0], "headers", b"\xff".decode)
    read(library)
    wait_until(lambda: library.told[-1:] == [2])
    assert library.calls == ["connect"]
    assert store.times() == [0.0, 1.0]


def test_parts_are_a_message_when_all_are_there_and_brokers_hear_no_sooner(
    store: Store, read: Callable[..., Consumer]
) -> None:
    large, *others = lines(4)
    parts = in_parts(large, 1)
    assert len(parts) > 2
    library = Library(others[0])
    library.waiting += parts[:-1]
    # Of another node in the same partition: stored at once, but brokers must not hear of it yet.
    library.waiting.append(Given(others[1], 50))
    consumer = read(library)
    wait_until(lambda: store.times() == [1, 2])
    wait_until(lambda: library.told == [1])
    library.waiting.append(parts[-1])
    wait_until(lambda: library.told[-1] > 50 or library.told[-1] == len(parts) + 1)
    assert store.times() == [1, 2, 0]
    assert (consumer.accepted, consumer.refused) == (3, 0)


def test_the_next_life_begins_with_the_first_part_and_misses_nothing(
    store: Store, read: Callable[..., Consumer]
) -> None:
    parts = in_parts(lines(1)[0], 7)
    first = Library()
    first.waiting += parts[:2]
    consumer = read(first)
    wait_until(lambda: first.told == [7])
    consumer.stop()
    second = Library()
    # The agent may be another by then, and cut another way.
    second.waiting += parts[:2] + in_parts(lines(1)[0], 9, 80)
    read(second)
    wait_until(lambda: store.times() == [0])
    wait_until(lambda: second.told[-1] == second_end(parts))


def second_end(parts: list[Any]) -> int:
    return 9 + len(in_parts(lines(1)[0], 0, 80))


def test_parts_whose_rest_does_not_come_are_set_aside_and_the_partition_goes_on(
    store: Store, read: Callable[..., Consumer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly.Assembly.__init__, "__defaults__", (0.3, 10**6))
    parts = in_parts(lines(1)[0], 0)
    library = Library()
    library.waiting += [parts[0], parts[1], Given(load_line(BOOT + 5), 2)]
    consumer = read(library)
    wait_until(lambda: library.told[:1] == [0])
    wait_until(lambda: library.told[-1] == 3)
    assert (consumer.accepted, consumer.refused) == (1, 2)
    kept = refusals(tmp_path)
    assert [entry["path"] for entry in kept] == ["$", "$"]
    assert "of which no more came: 120 of" in kept[0]["reason"]
    assert kept[0]["reason"].endswith("(fox.load, partition 3, offset 0)")


def test_a_partition_that_went_to_another_takes_its_parts_with_it(
    store: Store, read: Callable[..., Consumer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly.Assembly.__init__, "__defaults__", (0.3, 10**6))
    library = Library()
    library.waiting += in_parts(lines(1)[0], 0)[:2]
    consumer = read(library)
    wait_until(lambda: library.told == [0])
    library.assigned = [TopicPartition("fox.load", 4)]
    assert not threading.Event().wait(1.0)
    assert (consumer.refused, refusals(tmp_path)) == (0, [])


@pytest.mark.parametrize(
    ("options", "matching", "others"),
    [
        (OPTIONS, ("fox.load", "fox.example.process", "a-b.cpu"), ("load", "fox.sample", "fox.loads", "fox.load.x")),
        (OPTIONS._replace(clusters=("fox.example", "o x")), ("fox.example.load", "o_x.load"), ("fox-example.load",)),
        (
            OPTIONS._replace(prefix="site.a"),
            ("site.a.fox.load",),
            ("fox.load", "site-a.fox.load", "xsite.a.fox.load"),
        ),
    ],
)
def test_the_topics_are_those_of_our_clusters_and_collectors(
    options: Kafka, matching: tuple[str, ...], others: tuple[str, ...]
) -> None:
    pattern = subscription.pattern(options)
    assert pattern.startswith("^")
    assert [name for name in (*matching, *others) if re.search(pattern, name)] == list(matching)


def test_options_become_the_words_of_the_client_library(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\n")
    made = subscription.config(
        OPTIONS._replace(group="g", username="reader", password_file=str(tmp_path / "password"))
    )
    assert (made["group.id"], made["bootstrap.servers"]) == ("g", "kafka.example:9092")
    assert (made["security.protocol"], made["sasl.password"]) == ("SASL_SSL", "secret")
    # What is committed is what the store has, and not what was read.
    assert made["enable.auto.offset.store"] is False
    assert "acks" not in made


def test_a_client_that_cannot_be_made_is_one_sentence(quarantine: Quarantine, tmp_path: Path) -> None:
    options = OPTIONS._replace(ca_file=str(tmp_path / "none.pem"))
    with pytest.raises(ValueError, match=r"ssl\.ca\.location"):
        Consumer(options, Store().append, quarantine)


def test_settings_name_what_is_wrong_with_them() -> None:
    good = parse("serve: {kafka: {brokers: [a:1], clusters: [fox], ca_file: /x}}", "f")
    assert good.serve.kafka == Kafka(("a:1",), clusters=("fox",), ca_file="/x")
    assert parse("", "f").serve.kafka is None
    for text, sentence in [
        ("{}", "serve.kafka.brokers is needed"),
        ("{brokers: []}", "serve.kafka: expected brokers such as"),
        ("{brokers: [a:1], topics: x}", "unknown key serve.kafka.topics"),
        ("{brokers: [a:1], username: x}", "serve.kafka: username and password_file go together"),
    ]:
        with pytest.raises(SettingsError, match=re.escape(sentence)):
            parse(f"serve: {{kafka: {text}}}", "f")


def test_a_record_is_kept_as_it_was_understood() -> None:
    found = kafka.judge(Record("fox.load", 0, 0, b" " + lines(1)[0] + b"\n"))
    assert isinstance(found, bytes)
    assert b"\n" not in found
