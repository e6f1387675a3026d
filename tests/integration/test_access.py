"""Tokens, TLS and enrolment with real programs: a closed door loses nothing; the command line finds its server."""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.ship.backlog import backlogs
from jobsight.ship.post import Address, Poster, Tls
from tests.conftest import Program, answers, free_port, wait_until
from tests.ship.authority import Pair, signed
from tests.store.contract import BOOT, load_line

pytestmark = pytest.mark.slow

Start = Callable[..., Program]


class Site:
    """A server with TLS, and what its administrator types."""

    def __init__(self, path: Path, start: Start, pair: Pair) -> None:
        self.path, self.pair, self.port = path, pair, free_port()
        self.settings = path / "serve.yaml"
        self.settings.write_text(
            json.dumps(
                {
                    "serve": {
                        "listen": f"127.0.0.1:{self.port}",
                        "cert_file": str(pair.certificate),
                        "key_file": str(pair.key),
                    },
                    "store": {"path": str(path / "store")},
                }
            )
        )
        self.program = start("serve", "--settings", str(self.settings))
        wait_until(self.answers, what="the server answers")

    def answers(self) -> bool:
        assert self.program.process.poll() is None, self.program.process.communicate()[0]
        with suppress(OSError):
            return self.post(b"") is not None
        return False

    def post(self, body: bytes, **headers: str) -> int:
        tls = Tls(str(self.pair.authority))
        poster = Poster(Address(True, "localhost", self.port, "/ingest"), 10, tls)
        try:
            return poster.post(body, {"Content-Type": "application/x-ndjson", **headers}).status
        finally:
            poster.close()

    def say(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "jobsight", *arguments, "--settings", str(self.settings)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def enrol(self, file: Path) -> None:
        key = self.say("token", "invite", "--cluster", "fox")
        done = subprocess.run(
            [sys.executable, "-m", "jobsight", "enrol", f"https://localhost:{self.port}/ingest", key,
             "--node", "n1", "--token-file", str(file), "--ca-file", str(self.pair.authority)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


@pytest.fixture
def site(tmp_path: Path, start: Start) -> Site:
    return Site(tmp_path, start, signed(tmp_path / "tls", "monitor.example", "localhost"))


class Counted:
    """Passes bytes between an agent and a server, and counts connections."""

    def __init__(self, port: int) -> None:
        self.to = port
        self.count = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._work, daemon=True)]
        self._threads[0].start()

    def _work(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self.count += 1
                far = socket.create_connection(("127.0.0.1", self.to))
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    @staticmethod
    def _pass(one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError), one, other:
            while piece := one.recv(65536):
                other.sendall(piece)
            other.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def between(site: Site) -> Iterator[Counted]:
    made = Counted(site.port)
    yield made
    made.close()


def agent_settings(site: Site, token: Path, port: int) -> str:
    file = site.path / "agent.yaml"
    sink = {"url": f"https://localhost:{port}/ingest", "token_file": str(token), "window": "500ms"}
    file.write_text(
        json.dumps(
            {
                "cluster": "fox",
                "node": "n1",
                "sinks": [{"http": {**sink, "ca_file": str(site.pair.authority)}}],
                "spool": {"path": str(site.path / "spool")},
                "collect": {"load": {"every": "500ms"}, "agent": {"every": "500ms"}},
            }
        )
    )
    return str(file)


def stored(path: Path, sql: str) -> list[tuple[Any, ...]]:
    store = open_store(str(path / "store"))
    store.digest()
    rows = store.query(sql)
    store.close()
    return rows


def test_a_revoked_token_costs_nothing_but_time(site: Site, between: Counted, start: Start) -> None:
    token = site.path / "node" / "token"
    site.enrol(token)
    first = token.read_text().partition(".")[0]
    agent = start("agent", "--settings", agent_settings(site, token, between.port))

    def used() -> bool:
        return any(item["used"] for item in json.loads(site.say("token", "list", "--json")) if item["id"] == first)

    wait_until(used, what="the token is used")
    site.say("token", "revoke", first)
    wait_until(lambda: _waiting(site) > 20, what="messages wait")
    assert site.post(load_line(BOOT)) == 401
    site.enrol(token)
    wait_until(lambda: _waiting(site) <= 3, 120, "the spool is sent")
    code, output = agent.stop()
    assert code == 0
    said = [line for line in output.splitlines() if "/ingest" in line]
    assert len(said) == 2, output
    assert f"answered 401: token {first} was revoked on" in said[0]
    assert said[0].endswith("; messages wait in the spool")
    assert said[1].endswith("takes messages again")
    site.program.stop()
    ((kept, each),) = stored(site.path, "SELECT count(*), count(DISTINCT (collector, time)) FROM main.run")
    assert kept == each
    rows = stored(site.path, "SELECT waiting_messages, waiting_oldest, torn, dropped, messages FROM main.agent")
    assert kept >= max(row[4] for row in rows), "not everything the agent made has come"
    assert max(row[0] for row in rows) > 3
    assert max(row[1] or 0 for row in rows) > 1
    assert {row[2:4] for row in rows} == {(0, 0)}


def _waiting(site: Site) -> int:
    return sum(state.messages for state in backlogs(str(site.path / "spool")).values())


def test_many_batches_go_over_one_connection(site: Site, between: Counted, start: Start) -> None:
    token = site.path / "node" / "token"
    site.enrol(token)
    agent = start("agent", "--settings", agent_settings(site, token, between.port))
    wait_until(lambda: between.count, what="the agent connects")
    # Longer than servers usually keep a connection nobody uses.
    threading.Event().wait(8)
    code, output = agent.stop()
    assert code == 0, output
    site.program.stop()
    sent = stored(site.path, "SELECT max(sent), count(DISTINCT sent) FROM main.agent")[0]
    assert sent[1] > 5, "there were not many batches"
    assert between.count == 1


def test_the_command_line_finds_its_server_over_tls_and_needs_no_token(site: Site, tmp_path: Path) -> None:
    site.say("token", "add", "--cluster", "fox")
    assert site.post(load_line(BOOT)) == 401
    file = tmp_path / "messages.jsonl"
    file.write_bytes(b"\n".join(load_line(BOOT + i) for i in range(10)) + b"\n")
    assert "10 messages" in site.say("load", str(file))
    wait_until(lambda: json.loads(site.say("store", "status", "--json"))["tables"], what="the server says")
    site.say("jobs", "--json")
    notice = json.loads((tmp_path / "store" / "server.json").read_text())
    assert notice["url"].startswith("https://127.0.0.1:")
    assert (tmp_path / "store" / "server.token").stat().st_mode & 0o777 == 0o600
    site.program.stop()
    assert not (tmp_path / "store" / "server.token").exists()
    assert stored(tmp_path, "SELECT count(*) FROM main.load") == [(10,)]


@pytest.mark.parametrize("keys", [("cert_file",), ("key_file",), ("cert_file", "key_file")])
def test_certificates_that_cannot_be_used_are_one_sentence(
    start: Start, tmp_path: Path, keys: tuple[str, ...]
) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n")
    settings = tmp_path / "serve.yaml"
    listen = f"127.0.0.1:{free_port()}"
    settings.write_text(json.dumps({"serve": {"listen": listen, **dict.fromkeys(keys, str(wrong))}}))
    code, output = start("serve", "--settings", str(settings)).finish()
    assert code == 1
    assert output.splitlines()[-1].startswith("jobsight: serve."), output
    assert "Traceback" not in output


def test_up_goes_on_sending_when_tokens_are_asked_for(start: Start, tmp_path: Path) -> None:
    port = free_port()
    program = start("up", "--listen", f"127.0.0.1:{port}", "--every", "0.5")
    store = tmp_path / "home" / "store"
    wait_until((store / "server.token").exists, what="the server runs")
    done = subprocess.run(
        [sys.executable, "-m", "jobsight", "token", "add", "--cluster", "other", "--store", str(store)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    from urllib.request import urlopen

    def seen() -> float:
        with urlopen(f"http://127.0.0.1:{port}/api/nodes", timeout=10) as answer:
            return max((node["seen"] for node in json.load(answer)), default=0.0)

    wait_until(lambda: seen() > 0, 60, "the first messages are in")
    before = seen()
    wait_until(lambda: seen() > before + 2, 60, "more messages are in")
    code, output = program.stop()
    assert code == 0, output
    assert "401" not in output


@pytest.mark.parametrize(("host", "loud"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_a_door_that_stands_open_to_the_network_is_said_loudly(
    start: Start, tmp_path: Path, host: str, *, loud: bool
) -> None:
    port = free_port()
    program = start("serve", "--listen", f"{host}:{port}", "--store", str(tmp_path / "store"))
    wait_until(lambda: answers(f"http://127.0.0.1:{port}/health"), what="the server answers")
    code, output = program.stop()
    assert code == 0, output
    assert ("WARNING: listening on 0.0.0.0 and no token is set" in output) == loud
