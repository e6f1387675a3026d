"""`POST /ingest` goes past the framework, and is answered as it would be there."""

import asyncio
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from jobsight.analyse.keeper import open_store
from jobsight.ingest.gate import Gate
from jobsight.ingest.limit import Limits
from jobsight.ingest.quarantine import Quarantine
from jobsight.show.app import application
from jobsight.store.embedded import Embedded
from jobsight.store.protocol import StoreError
from jobsight.store.tokens import open_tokens
from tests.store.contract import BOOT, load_line

KIND = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Embedded]:
    opened = open_store(str(tmp_path / "store"), most=600)
    yield opened
    opened.close()


class Client:
    """Asks the application without a network."""

    def __init__(self, app: FastAPI) -> None:
        self._transport = httpx.ASGITransport(app)

    def get(self, path: str) -> httpx.Response:
        return self._ask("GET", path, b"", {})

    def post(self, path: str, body: bytes = b"", **headers: str) -> httpx.Response:
        return self._ask("POST", path, body, KIND | headers)

    def _ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(transport=self._transport, base_url="http://127.0.0.1") as client:
                return await client.request(method, path, content=body, headers=headers)

        return asyncio.run(ask())


@pytest.fixture
def client(store: Embedded, tmp_path: Path) -> Iterator[Client]:
    tokens = open_tokens(str(tmp_path / "store"))
    gate = Gate(tokens, None, "own")
    app = application(store, Quarantine(str(tmp_path / "quarantine")), tokens, gate, Limits(), local=True)
    yield Client(app)
    tokens.close()


def test_messages_come_in_and_everything_else_is_answered_by_the_application(client: Client, store: Embedded) -> None:
    answer = client.post("/ingest", gzip.compress(load_line(BOOT)))
    assert (answer.status_code, answer.json()) == (200, {"accepted": 1, "refused": 0, "reasons": []})
    assert store.digest() == 1
    assert client.get("/ingest").status_code == 405
    assert client.post("/nowhere").status_code in (404, 405)


def test_a_page_from_elsewhere_cannot_send_under_another_name(client: Client) -> None:
    answer = client.post("/ingest", Host="evil.example")
    assert answer.status_code == 400


def test_a_sender_is_told_to_come_again_while_too_much_waits(client: Client, store: Embedded) -> None:
    statuses = []
    for number in range(6):
        answer = client.post("/ingest", gzip.compress(load_line(BOOT + number)))
        statuses.append(answer.status_code)
    taken = statuses.count(200)
    assert statuses == [200] * taken + [503] * (6 - taken)
    assert 0 < taken < 6
    assert answer.headers["Retry-After"] == "10"
    assert "wait to be digested" in answer.json()["error"]
    told = client.get("/api/store").json()["backlog"]
    assert told["size"] >= told["most"] == 600
    assert store.digest() == taken
    assert client.get("/api/store").json()["backlog"] == {"size": 0, "most": 600, "age": None}
    assert client.post("/ingest", gzip.compress(load_line(BOOT + 99))).status_code == 200


def test_a_store_that_is_away_is_an_answer_and_no_crash(
    client: Client, store: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> bool:
        raise StoreError("the database does not answer")

    monkeypatch.setattr(Gate, "needed", away)
    answer = client.post("/ingest", gzip.compress(load_line(BOOT)))
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "10")
    assert json.loads(answer.content) == {"detail": "the database does not answer"}
