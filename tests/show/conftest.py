"""A store with some people's jobs, and the application over it as somebody reaches it."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from jobsight.analyse.keeper import open_store
from jobsight.ingest.gate import Gate
from jobsight.ingest.limit import Limits
from jobsight.ingest.quarantine import Quarantine
from jobsight.show.app import application
from jobsight.store.embedded import Embedded
from jobsight.store.tokens import open_tokens
from tests.store.contract import _line, process_line

# number: owner, account, node
JOBS = {
    "1": ("ada", "physics", "n1"),
    "2": ("bob", "physics", "n2"),
    "3": ("bob", "biology", "n3"),
    "4": ("carol", "biology", "n4"),
}


class Client:
    """Asks an application, in process, from an address."""

    def __init__(self, app: Any, address: str) -> None:
        self._transport = httpx.ASGITransport(app, client=(address, 50000))

    def get(self, path: str, headers: Any = None) -> httpx.Response:
        return asyncio.run(self._asked("GET", path, headers))

    def post(self, path: str, headers: Any = None) -> httpx.Response:
        return asyncio.run(self._asked("POST", path, headers))

    async def _asked(self, method: str, path: str, headers: Any) -> httpx.Response:
        async with httpx.AsyncClient(transport=self._transport, base_url="http://localhost") as client:
            return await client.request(method, path, headers=headers)


Reached = Callable[..., Client]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Embedded]:
    opened = open_store(str(tmp_path / "store"))
    lines = []
    for number, (owner, account, node) in JOBS.items():
        told = {"scheduler": ["slurm"], "job": [number], "source": ["prolog"], "account": [account], "nodes": [node]}
        for ago in (20, 10):
            now = time.time() - ago
            lines += [
                _line("allocation", now, told, node),
                process_line(now, node=node, scheduler="slurm", job=number, owner=owner, command=f"work{number}",
                             started=now - 1794700000.0 - 50),
            ]  # fmt: skip
    opened.append(lines).result(10)
    opened.digest()
    yield opened
    opened.close()


@pytest.fixture
def reached(store: Embedded, tmp_path: Path) -> Iterator[Reached]:
    """The application as somebody at an address reaches it."""
    tokens = open_tokens(str(tmp_path / "store"))

    def begin(address: str = "192.0.2.1", state: dict[str, Any] | None = None, **options: Any) -> Client:
        quarantine = Quarantine(str(tmp_path / "quarantine"))
        app: Any = application(store, quarantine, tokens, Gate(tokens, None, "own"), Limits(8, None), **options)

        async def stated(scope: Any, receive: Any, send: Any) -> None:
            # What uvicorn hands over with a connection.
            scope["state"] = dict(state or {})
            await app(scope, receive, send)

        return Client(stated, address)

    yield begin
    tokens.close()
