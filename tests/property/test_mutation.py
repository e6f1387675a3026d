"""Ten thousand damaged messages through a real server, and through what reads from Kafka.

Nothing answers 500 and nothing stops; every refusal says where and why; good neighbours are stored; pages still
answer and show no tag that came in a message. MUTATION_SEED=N runs other ones; the seed is in every failure.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from jobsight.ingest.accept import Refused, accept
from jobsight.ingest.assembly import Assembly, Record
from jobsight.ingest.kafka import Consumer, judge
from jobsight.ingest.quarantine import Quarantine
from jobsight.schema.wire import compress
from jobsight.ship.part import cut
from tests.conftest import Program, answers, free_port, wait_until
from tests.ingest.test_kafka import OPTIONS, Library, Store
from tests.integration.postgres import Cluster
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414
from tests.property.mutation import TAG, Mutation
from tests.store.contract import BOOT, load_line

SEED = int(os.environ.get("MUTATION_SEED", "7"))
# An answer spells out twenty refusals.
TOGETHER = 18
COUNT = 10_000


class Poster:
    """One kept connection."""

    def __init__(self, url: str) -> None:
        self._link = HTTPConnection(urlsplit(url).netloc, timeout=60)

    def close(self) -> None:
        self._link.close()

    def post(self, body: bytes, *, packed: bool) -> tuple[int, dict[str, Any]]:
        headers = {"Content-Type": "application/x-ndjson"} | ({"Content-Encoding": "gzip"} if packed else {})
        self._link.request("POST", "/ingest", body, headers)
        answer = self._link.getresponse()
        return answer.status, json.loads(answer.read())

    def get(self, path: str) -> tuple[int, str]:
        self._link.request("GET", path)
        answer = self._link.getresponse()
        return answer.status, answer.read().decode()


def refusals_are_told(report: dict[str, Any]) -> bool:
    return len(report["reasons"]) == report["refused"] and all(
        reason["path"].startswith("$") and reason["reason"] for reason in report["reasons"]
    )


def storm(poster: Poster, count: int) -> int:
    """Damaged messages, good ones among them; how many good ones the server says it has."""
    mutation, good = Mutation(SEED), 0
    lines = list(mutation.lines(count))
    for start in range(0, count, TOGETHER):
        batch = lines[start : start + TOGETHER]
        batch.insert(start % (len(batch) + 1), load_line(BOOT + start, node="neighbour"))
        body, packed = b"\n".join(batch), start % 2 == 0
        status, report = poster.post(compress(body) if packed else body, packed=packed)
        assert status == 200, (SEED, start, report)
        assert report["accepted"] + report["refused"] == len(batch), (SEED, start, report)
        assert refusals_are_told(report), (SEED, start, report)
        good += 1
        if start % 5 == 0:
            status, report = poster.post(mutation.broken_gzip(compress(body)), packed=True)
            assert status in (200, 400), (SEED, start, report)
            assert status == 200 or report["error"]
    return good


def pages_are_sound(poster: Poster) -> int:
    """How many jobs there are, each of which has a page, and none of which has a tag of a sender's making."""
    status, text = poster.get("/api/v1/jobs?limit=10000")
    assert status == 200
    keys = [job["key"] for job in json.loads(text)]
    paths = ["/", "/jobs", "/api/v1/nodes", *(f"/job/{quote(key, safe='')}" for key in keys)]
    for path in paths:
        status, text = poster.get(path)
        if status == 404 and path.startswith("/job/"):
            # What came late is counted meanwhile: a job may turn out to be another's beginning.
            still = {quote(job["key"], safe="") for job in json.loads(poster.get("/api/v1/jobs?limit=10000")[1])}
            assert path.removeprefix("/job/") not in still, (SEED, path)
            continue
        assert status == 200, (SEED, path, text[:500])
        if not path.startswith("/api"):
            assert TAG not in text, (SEED, path, text[max(0, text.index(TAG) - 100) :][:200])
    return len(keys)


@contextmanager
def serving(start: Callable[..., Program], tmp_path: Path, place: str) -> Iterator[Poster]:
    """A server of its own, which must end well and have nothing to complain of."""
    port = free_port()
    settings = tmp_path / "serve.yaml"
    settings.write_text(json.dumps({"store": {"path": str(tmp_path / "store")}}))
    program = start("serve", "--listen", f"127.0.0.1:{port}", "--settings", str(settings), "--store", place)
    url = f"http://127.0.0.1:{port}"
    wait_until(lambda: answers(f"{url}/health") or program.process.poll() is not None, 60, "the server answers")
    assert program.process.poll() is None, program.process.communicate()[0]
    poster = Poster(url)
    try:
        yield poster
    finally:
        poster.close()
        code, told = program.stop()
    assert code == 0, told
    assert not re.search("Traceback|set aside|failed and is tried", told), (SEED, told[-3000:])


def run(start: Callable[..., Program], tmp_path: Path, place: str, count: int) -> None:
    with serving(start, tmp_path, place) as poster:
        good = storm(poster, count)
        assert poster.post(load_line(BOOT + COUNT + 1, node="last"), packed=False)[0] == 200
        wait_until(lambda: '"last"' in poster.get("/api/v1/nodes")[1], 120, f"the last is digested, seed {SEED}")
        assert pages_are_sound(poster) > 3
    with serving(start, tmp_path, place) as poster:
        assert poster.get("/api/v1/nodes")[0] == 200
    assert neighbours(place) == good


def neighbours(place: str) -> int:
    from jobsight.analyse.keeper import open_database, open_store

    store = open_database(place) if "://" in place else open_store(place)
    try:
        store.digest()
        ((count,),) = store.query("SELECT count(*) FROM load WHERE node = 'neighbour'")
        return int(count)
    finally:
        store.close()


@pytest.mark.slow
def test_damaged_messages_stop_no_server_and_spoil_no_page(start: Callable[..., Program], tmp_path: Path) -> None:
    run(start, tmp_path, str(tmp_path / "store"), COUNT)


@pytest.mark.slow
def test_damaged_messages_stop_no_database(start: Callable[..., Program], cluster: Cluster, tmp_path: Path) -> None:
    run(start, tmp_path, cluster.database(), 2_000)


def test_what_reads_from_kafka_judges_like_the_server_and_never_raises() -> None:
    verdicts = {bytes: 0, Refused: 0}
    for number, line in enumerate(Mutation(SEED).lines(COUNT)):
        found = judge(Record("fox.load", 0, number, line))
        assert isinstance(found, Refused) == isinstance(accept(line), Refused), (SEED, number)
        verdicts[type(found)] += 1
        if isinstance(found, Refused):
            assert found.path.startswith("$"), (SEED, number, found)
            assert f"offset {number})" in found.reason
    # A run in which everything is refused, or everything accepted, would show nothing.
    assert min(verdicts.values()) > COUNT / 20, (SEED, verdicts)


def test_a_consumer_that_is_sent_damaged_messages_reads_on_to_the_last(tmp_path: Path) -> None:
    count, store = 3_000, Store()
    library = Library(*Mutation(SEED).lines(count), load_line(BOOT + 1))
    quarantine = Quarantine(str(tmp_path))
    consumer = Consumer(OPTIONS, store.append, quarantine, library.connect)
    try:
        wait_until(lambda: library.told and library.told[-1] == count + 1, 120, f"all is read, seed {SEED}")
    finally:
        consumer.stop()
    assert consumer.accepted + consumer.refused == count + 1
    assert len([line for lines, _ in store.asked for line in lines]) == consumer.accepted
    assert quarantine.held() + quarantine.thrown_away() == consumer.refused


def parts() -> Iterator[Record]:
    """Parts of damaged messages, some of them damaged themselves."""
    mutation, number = Mutation(SEED + 1), 0
    for line in mutation.lines(500):
        for part in cut(compress(line[:5000]), 200):
            number += 1
            header, content = part.header(), part.content
            if number % 7 == 0:
                header = next(mutation.lines(1))[:50]
            if number % 11 == 0:
                content = mutation.broken_gzip(content)
            yield Record("fox.load", number % 3, number, content, header)


def test_damaged_parts_are_refused_or_wait_and_nothing_is_forgotten() -> None:
    assembly = Assembly(bound=100_000)
    whole, refused, taken = 0, 0, 0
    for record in parts():
        taken += 1
        found = assembly.take(record, float(record.offset))
        whole += isinstance(found, Record)
        refused += isinstance(found, Refused) + len(assembly.given_up(float(record.offset)))
        if isinstance(found, Record):
            judge(found)
    refused += len(assembly.given_up(1e9))
    assert assembly.given_up(1e9) == []
    assert whole
    assert refused > taken / 10
