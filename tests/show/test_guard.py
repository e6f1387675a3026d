"""Passwords before the pages: somebody who guesses must not keep out those who are known."""

import asyncio
import threading
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from jobsight.exporter.password import Passwords
from jobsight.exporter.webconfig import Watched
from jobsight.settings import values
from jobsight.show import guard
from jobsight.show.guard import WAITING, Guard

CONFIG = "basic_auth_users: {ada: $2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW}\n"


class Slow:
    """In the place of bcrypt: who guesses waits until told."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def __call__(self, password: bytes, kept: bytes) -> bytes:
        if password == b"right":
            return kept
        self.go_on.wait(30)
        return b"another"


async def page(scope: Scope, receive: Receive, send: Send) -> None:
    # As many of ours do.
    await asyncio.to_thread(int)
    await PlainTextResponse("seen")(scope, receive, send)


def shown(password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"ada:{password}".encode()).decode()}


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    made = Slow()
    monkeypatch.setattr(guard, "Passwords", lambda: Passwords(made))
    return made


@pytest.fixture
def app(slow: Slow, tmp_path: Path) -> ASGIApp:
    file = tmp_path / "web.yaml"
    file.write_text(CONFIG)
    read: Callable[[str], Any] = lambda name: values(Path(name).read_text(), name)  # noqa: E731
    return Guard(page, Watched(str(file), read))


def test_who_is_known_is_let_in_while_others_guess_and_guesses_do_not_pile_up(app: ASGIApp, slow: Slow) -> None:
    async def all_at_once() -> tuple[list[int], list[int]]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            before = await client.get("/", headers=shown("right"))
            guesses = [
                asyncio.create_task(client.get("/", headers=shown(f"guess{number}")))
                for number in range(WAITING + 40)
            ]
            try:
                await asyncio.sleep(0)
                found = await asyncio.wait_for(client.get("/", headers=shown("right")), 10)
            finally:
                slow.go_on.set()
            return [before.status_code, found.status_code], [
                one.status_code for one in await asyncio.gather(*guesses)
            ]

    known, others = asyncio.run(all_at_once())
    assert known == [200, 200]
    assert others.count(401) == WAITING
    assert others.count(503) == 40
