"""Agents, a real Kafka broker and the server: every message is stored once, whatever is killed."""

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.clock import SystemClock
from jobsight.collect.agent import Tally
from jobsight.ingest import kafka as ingest
from jobsight.ingest.kafka import Consumer
from jobsight.ingest.quarantine import Quarantine
from jobsight.schema.message import Message, Origin, Status
from jobsight.schema.units import Bytes, Seconds
from jobsight.schema.wire import compress
from jobsight.serving import Kafka as Options
from jobsight.settings import Spool
from jobsight.ship import courier, kafka
from jobsight.ship.part import cut
from jobsight.ship.sink import Place
from tests.conftest import Program, answers, free_port, wait_until
from tests.integration.kafka import Kafka, broker, settings
from tests.store.contract import BOOT, load_line, process_line

pytestmark = pytest.mark.slow

LARGEST = 100_000


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with broker(tmp_path_factory.mktemp("kafka"), LARGEST) as made:
        yield made


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents that were refused come back soon: a test has no minute."""
    monkeypatch.setattr(courier, "LONGEST_PAUSE", 0.5)


class Node(threading.Thread):
    """An agent's sink, and messages whose times and CPU seconds are known."""

    def __init__(self, name: str, address: str, cluster: str, path: Path, **access: Any) -> None:
        super().__init__()
        self.node = name
        self.cluster = cluster
        self.times: list[float] = []
        self.stopping = False
        spool = Spool(str(path / name), Bytes(10**8), Seconds(86400))
        self.tally = Tally()
        options = kafka.Options(brokers=(address,), window=Seconds(0.0), **access)
        self.sink = kafka.open_sink(options, Place(name, spool, SystemClock(), self.tally))

    def run(self) -> None:
        while not self.stopping:
            self.send(BOOT + 100 + len(self.times) / 10)
            time.sleep(0.005)

    def send(self, at: float, error: str | None = None) -> None:
        rows = {name: tuple(values) for name, values in json.loads(process_line(at))["rows"].items()}
        origin = Origin(self.cluster, self.node, "b1")
        self.sink.send(Message(origin, "process", at, at - BOOT, 10.0, Status.OK, 0.01, error, {}, rows))
        self.times.append(at)

    def finish(self) -> None:
        """Stop when the broker has everything."""
        self.stopping = True
        if self.ident:
            self.join()
        wait_until(lambda: self.tally.sent + self.tally.dropped == len(self.times), 60, "the spool is empty")
        self.sink.close()


def times_of(path: Path, node: str) -> list[float]:
    store = open_store(str(path))
    try:
        store.digest()
        return [row[0] for row in store.query("SELECT time FROM process WHERE node = ? ORDER BY time", [node])]
    finally:
        store.close()


class Basket:
    """A store that only remembers, and may be full."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.full = False
        self.asked = 0

    def append(self, lines: Sequence[bytes]) -> "Future[None]":
        self.asked += 1
        done: Future[None] = Future()
        if self.full:
            done.set_exception(OSError(28, "No space left on device"))
        else:
            self.lines += lines
            done.set_result(None)
        return done

    def times(self) -> set[str]:
        return {json.loads(line)["time"] for line in self.lines}


def test_members_that_come_and_go_share_the_partitions_and_miss_nothing(kept: Kafka, tmp_path: Path) -> None:
    quarantine = Quarantine(str(tmp_path / "quarantine"))
    options = Options((kept.address,), group="pair", clusters=("pair",))
    sent: list[bytes] = []

    def send(count: int) -> None:
        for _ in range(count):
            line = load_line(BOOT + len(sent))
            sent.append(line)
            kept.put("pair.load", line, key=b"n%d" % (len(sent) % 16))

    send(8)
    first, second = Basket(), Basket()
    one = Consumer(options, first.append, quarantine)
    wait_until(lambda: kept.members("pair") == [4], what="one member has all four partitions")
    other = Consumer(options, second.append, quarantine)
    send(8)
    wait_until(lambda: kept.members("pair") == [2, 2], what="two members have two each")
    send(32)
    wait_until(lambda: kept.drained("pair", "pair."), what="all is read")
    assert first.lines
    assert second.lines
    one.stop()
    send(16)
    wait_until(lambda: kept.drained("pair", "pair."), what="the other reads on alone")
    other.stop()
    assert first.times() | second.times() == {json.loads(line)["time"].replace("Z", "+00:00") for line in sent}


def test_what_a_full_store_cannot_take_stays_on_the_broker(
    kept: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "LONGEST_PAUSE", 1.0)
    quarantine = Quarantine(str(tmp_path / "quarantine"))
    options = Options((kept.address,), group="full", clusters=("full",))
    sent = [load_line(BOOT + number) for number in range(500)]
    basket = Basket()
    basket.full = True
    kept.put("full.load", *sent[:250])
    consumer = Consumer(options, basket.append, quarantine)
    wait_until(lambda: basket.asked, what="the store is asked")
    kept.put("full.load", *sent[250:])
    wait_until(lambda: basket.asked > 3, what="the store is asked again")
    # Stopped and started while the store is full: nothing was committed, so the next life reads it all.
    consumer.stop()
    assert kept.progress("full", "full.") == (0, 500)
    consumer = Consumer(options, basket.append, quarantine)
    asked = basket.asked
    wait_until(lambda: basket.asked > asked, what="the store is asked by the next")
    basket.full = False
    wait_until(lambda: kept.drained("full", "full."), what="all is read")
    consumer.stop()
    assert [json.loads(line)["uptime"] for line in basket.lines] == list(range(500))


def test_poison_goes_to_quarantine_with_its_place_and_the_partition_goes_on(kept: Kafka, tmp_path: Path) -> None:
    deep = load_line(BOOT + 1).replace(b'"rows": {', b'"rows": {"x":' + b"[" * 50_000, 1)
    poison = [b"no message", None, b"\xff\xfe", deep, load_line(BOOT + 1).replace(b"[0.5]", b'["high"]')]
    kept.put("bad.load", load_line(BOOT + 1), *poison, load_line(BOOT + 2))
    store = open_store(str(tmp_path / "store"))
    quarantine = Quarantine(str(tmp_path / "quarantine"))
    options = Options((kept.address,), group="bad", clusters=("bad",))
    consumer = Consumer(options, store.append, quarantine)
    wait_until(lambda: kept.drained("bad", "bad."), what="all is read")
    consumer.stop()
    assert (consumer.accepted, consumer.refused) == (2, 5)
    store.digest()
    assert store.query("SELECT time FROM load ORDER BY time") == [(BOOT + 1,), (BOOT + 2,)]
    store.close()
    (day,) = (tmp_path / "quarantine").iterdir()
    reasons = [json.loads(line)["reason"] for line in day.read_text().splitlines()]
    assert [f"offset {offset})" in reason for offset, reason in enumerate(reasons, 1)] == [True] * 5
    assert all("(bad.load, partition " in reason for reason in reasons)


def test_messages_too_large_for_the_broker_arrive_in_parts_whatever_is_killed_meanwhile(
    kept: Kafka, tmp_path: Path
) -> None:
    node = Node("n1", kept.address, "large", tmp_path)
    store = open_store(str(tmp_path / "store"))
    options = Options((kept.address,), group="large", clusters=("large",))
    quarantine = Quarantine(str(tmp_path / "quarantine"))

    def written() -> int:
        return kept.progress("large", "large.")[1]

    consumer = None
    for turn in range(4):
        before = written()
        node.send(BOOT + 100 + 20 * turn)
        # Random, so that it does not shrink on its way.
        node.send(BOOT + 110 + 20 * turn, error=secrets.token_hex(8 * LARGEST))
        # In the middle of them, as a rule: a large one is several records.
        wait_until(lambda before=before: written() > before + 3, what="parts are on their way")  # type: ignore[misc]
        if consumer:
            consumer.stop()
        if turn % 2:
            kept.kill()
            kept.start()
        consumer = Consumer(options, store.append, quarantine)
    node.finish()
    wait_until(lambda: kept.drained("large", "large."), 60, "all is read")
    assert consumer
    consumer.stop()
    assert (node.tally.sent, node.tally.dropped, node.tally.waiting) == (8, 0, 0)
    assert written() > 40
    store.digest()
    held = store.query("SELECT time, length(error) FROM run WHERE node = 'n1' ORDER BY time")
    assert held == [(at, 16 * LARGEST if number % 2 else None) for number, at in enumerate(node.times)]
    store.close()
    assert quarantine.held() == 0


def test_a_reader_that_stops_between_two_parts_leaves_them_all_to_the_next(kept: Kafka, tmp_path: Path) -> None:
    quarantine = Quarantine(str(tmp_path / "quarantine"))
    options = Options((kept.address,), group="half", clusters=("half",))
    parts = list(cut(compress(load_line(BOOT + 2)), 50))
    kept.put("half.load", load_line(BOOT + 1), *parts[:2], load_line(BOOT + 3))
    first, second = Basket(), Basket()
    consumer = Consumer(options, first.append, quarantine)
    wait_until(lambda: len(first.lines) == 2, what="what is whole is stored")
    consumer.stop()
    # The brokers know of the first message, and of nothing that stands behind the first part.
    assert kept.progress("half", "half.") == (1, 4)
    kept.put("half.load", *parts[2:], load_line(BOOT + 4))
    consumer = Consumer(options, second.append, quarantine)
    wait_until(lambda: kept.drained("half", "half."), what="all is read")
    consumer.stop()
    assert [json.loads(line)["uptime"] for line in second.lines] == [3, 2, 4]
    assert quarantine.held() == 0


def test_a_server_stops_and_starts_without_a_broker(
    kept: Kafka, start: Callable[..., Program], tmp_path: Path
) -> None:
    reads = {"brokers": [f"127.0.0.1:{free_port()}"]}
    file = settings(tmp_path / "serve.yaml", store={"path": str(tmp_path / "store")}, serve={"kafka": reads})
    port = free_port()
    program = start("serve", "--settings", file, "--listen", f"127.0.0.1:{port}")
    wait_until(lambda: answers(f"http://127.0.0.1:{port}/api/nodes"), 60, "the server answers")
    time.sleep(2)
    code, output = program.stop()
    assert code == 0
    assert output.count("brokers are down") == 1


def test_tls_and_a_password_work_at_both_ends_and_a_wrong_password_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kafka").mkdir()
    quarantine = Quarantine(str(tmp_path / "quarantine"))
    with broker(tmp_path / "kafka", secure=True) as kept:
        node = Node("n1", kept.address, "safe", tmp_path, **kept.access)
        node.send(BOOT + 100)
        node.finish()
        (tmp_path / "wrong").write_text("mellon")
        wrong = {**kept.access, "password_file": str(tmp_path / "wrong")}
        basket = Basket()
        stranger = Consumer(Options((kept.address,), group="stranger", **wrong), basket.append, quarantine)  # type: ignore[arg-type]
        said = ""

        def heard() -> bool:
            nonlocal said
            said += capfd.readouterr().err
            return "SASL authentication error" in said

        wait_until(heard, what="the stranger says that nobody lets it in")
        options = Options((kept.address,), group="safe", **kept.access)  # type: ignore[arg-type]
        consumer = Consumer(options, basket.append, quarantine)
        wait_until(lambda: kept.drained("safe", "safe."), what="all is read")
        consumer.stop()
        stranger.stop()
    assert len(basket.lines) == 1
    assert stranger.accepted == 0
    assert said.count("SASL authentication error") == 1
