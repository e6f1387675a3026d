"""A real server in a thread with the ways in and nothing behind them: what is appended is kept in a list."""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn
from fastapi import FastAPI

from jobsight.ingest import enrol, http
from jobsight.ingest.gate import Gate
from jobsight.ingest.limit import Limits
from jobsight.ingest.quarantine import Quarantine
from jobsight.ingest.token import Invite, Token, digest, new_id, new_secret
from jobsight.ship.post import Address, Answer, Poster
from jobsight.store.tokens import StoredTokens, open_tokens
from tests.conftest import wait_until

NDJSON = {"Content-Type": "application/x-ndjson"}


class Door(NamedTuple):
    """Where it listens, and what is behind."""

    port: int
    tokens: StoredTokens
    lines: list[bytes]
    path: Path

    def post(self, body: bytes, path: str = "/ingest", **headers: str) -> tuple[Answer, dict[str, Any]]:
        poster = Poster(Address(False, "127.0.0.1", self.port, path), 20)
        answer = poster.post(body, NDJSON | {name.replace("_", "-"): value for name, value in headers.items()})
        poster.close()
        return answer, json.loads(answer.body)

    def ask(self, key: str, node: str, secret: str) -> tuple[Answer, dict[str, Any]]:
        wish = json.dumps({"key": key, "node": node, "secret": secret}).encode()
        return self.post(wish, "/enrol", Content_Type="application/json")


def kept(lines: list[bytes]) -> Callable[[Sequence[bytes]], "Future[None]"]:
    def append(some: Sequence[bytes]) -> "Future[None]":
        lines.extend(some)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    return append


@contextmanager
def opened(
    path: Path,
    limits: Limits | None = None,
    append: Callable[[Sequence[bytes]], "Future[None]"] | None = None,
    fixed: str | None = None,
) -> Iterator[Door]:
    tokens = open_tokens(str(path))
    lines: list[bytes] = []
    app = FastAPI()
    gate = Gate(tokens, fixed, "of the server itself")
    quarantine = Quarantine(str(path / "quarantine"))
    app.include_router(http.router(http.receiver(append or kept(lines), quarantine, gate, limits or Limits())))
    app.include_router(enrol.router(tokens))
    link = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [link]})
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield Door(link.getsockname()[1], tokens, lines, path)
    finally:
        server.should_exit = True
        thread.join()
        gate.close()
        tokens.close()


def made(tokens: StoredTokens, cluster: str = "fox", node: str | None = None, **more: Any) -> str:
    """A token, as it is shown once."""
    number, secret = new_id(), new_secret()
    tokens.add(Token(number, digest(secret), cluster, node, 1000.0, **more))
    return f"{number}.{secret}"


def invited(tokens: StoredTokens, expires: float | None = None, uses: int = 1, **more: Any) -> str:
    """A key, as it is shown once."""
    number, secret = new_id(), new_secret()
    tokens.add_invite(Invite(number, digest(secret), "fox", more.pop("node", None), 1000.0, expires, uses, **more))
    return f"{number}.{secret}"
