"""Emission factors from providers that answer, fail, lie, dawdle and send us on; a server here plays them."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from jobsight.agent.run import run
from jobsight.catalogue import collector
from jobsight.clock import SystemClock
from jobsight.collect.emissionfactor import Emaps, Memories, Options, Rte, check, parse, providers
from jobsight.host import Host
from jobsight.recording import ORIGIN
from jobsight.schema.message import Message
from jobsight.schema.units import Seconds
from jobsight.settings import SettingsError, from_values

RTE = {"total_count": 1, "results": [{"taux_co2": 33, "date_heure": "2026-11-15T16:00:00+00:00"}]}
EMAPS = {"zone": "DE", "carbonIntensity": 402, "datetime": "2026-11-15T16:00:00.000Z", "isEstimated": True}


class Provider(ThreadingHTTPServer):
    """Answers as it is told, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Player)
        self.play: Callable[[Any], None] = lambda player: player.say(RTE)
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.let_go = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Player(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        self.server.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        self.server.play(self)

    def say(self, answer: Any, status: int = 200, **headers: str) -> None:
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = Provider()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.let_go.set()
    server.shutdown()
    server.server_close()
    thread.join()


class Clock(SystemClock):
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def steady(self) -> float:
        return self.now


def asked(host: Host, options: Options) -> Message:
    return run(collector("emissionfactor"), options, host, ORIGIN, SystemClock())


def french(provider: Provider, **changes: Any) -> Options:
    return Options(providers=("rte",), limit=Seconds(5.0), rte=Rte(url=f"{provider.url}/records"))._replace(**changes)


def column(message: Message, name: str) -> list[Any]:
    return list(message.rows.get(name, ()))


def test_rte_is_read_as_it_answers(provider: Provider) -> None:
    message = asked(Host("/"), french(provider))
    assert (message.status, message.error, message.missing) == ("ok", None, {})
    assert [column(message, name) for name in ("provider", "zone", "factor", "vintage", "valid", "age")] == [
        ["rte"], ["FR"], [33.0], ["now"], [1794758400.0], [0.0],
    ]  # fmt: skip


def test_electricity_maps_is_asked_for_the_zone_with_the_token(provider: Provider, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    provider.play = lambda player: player.say(EMAPS)
    way = Emaps(url=f"{provider.url}/v3/carbon-intensity/latest?zone={{zone}}")
    options = Options(providers=("emaps",), zone="NO-NO1", token_file=str(token), emaps=way)
    message = asked(Host("/"), options)
    assert (column(message, "zone"), column(message, "factor")) == (["DE"], [402.0])
    ((path, headers),) = provider.asked
    assert path == "/v3/carbon-intensity/latest?zone=NO-NO1"
    assert headers["auth-token"] == "s3cret"


@pytest.mark.parametrize("zone", ["\\ud800", "D\\nE", "x" * 100])
def test_a_zone_that_is_no_name_is_not_told(zone: str) -> None:
    answer = b'{"zone": "%s", "carbonIntensity": 402}' % zone.encode()
    assert parse(answer, Emaps()) == (402.0, None, "")


def test_another_answer_is_read_by_another_path_of_the_settings(provider: Provider) -> None:
    provider.play = lambda player: player.say({"data": {"latest": [{"g": 41.5}]}})
    message = asked(Host("/"), french(provider, rte=Rte(url=provider.url, factor="data.latest.0.g", valid="none")))
    assert (column(message, "factor"), column(message, "valid")) == ([41.5], [None])


def test_nobody_is_asked_again_before_it_is_time_and_a_failure_leaves_the_last_good_answer(
    provider: Provider,
) -> None:
    host, clock = Host("/"), Clock()
    host.keep(Memories).clock = clock
    options = french(provider)
    for _ in range(3):
        assert column(asked(host, options), "factor") == [33.0]
    assert len(provider.asked) == 1
    provider.play = lambda player: player.say(b"down for repair", 503)
    clock.now += 1800
    failing = asked(host, options)
    assert len(provider.asked) == 2
    assert (column(failing, "factor"), column(failing, "age")) == ([33.0], [1800.0])
    assert failing.missing == {"factor": "failed"}
    assert "503" in column(failing, "trouble")[0]
    clock.now += 86400
    gone = asked(host, options)
    assert (gone.status, gone.rows) == ("failed", {})
    provider.play = lambda player: player.say({"results": [{"taux_co2": 44}]})
    clock.now += 1800
    again = asked(host, options)
    assert (column(again, "factor"), column(again, "age"), column(again, "trouble")) == ([44.0], [0.0], [None])


@pytest.mark.parametrize(
    "play",
    [
        lambda player: player.say(b"", 500),
        lambda player: player.say(b"<html>Login</html>"),
        lambda player: player.say({"results": []}),
        lambda player: player.say({"results": [{"taux_co2": None}]}),
        lambda player: player.say({"results": [{"taux_co2": -3}]}),
        lambda player: player.say({"results": [{"taux_co2": 1e9}]}),
        lambda player: player.say({"results": [{"taux_co2": "33"}]}),
        lambda player: player.say(b"[" * 50_000),
        lambda player: player.say(b"x" * (2 << 20)),
        lambda player: player.say(b"", 302, Location="file:///etc/passwd"),
        lambda player: player.say(b"", 302, Location="/records"),
        lambda player: player.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"),
        lambda player: player.connection.close(),
    ],
    ids=[
        "error",
        "page",
        "empty",
        "null",
        "negative",
        "mad",
        "text",
        "deep",
        "huge",
        "file",
        "circle",
        "other",
        "shut",
    ],
)
def test_whatever_else_is_answered_is_a_failure_with_a_sentence(provider: Provider, play: Any) -> None:
    provider.play = play
    message = asked(Host("/"), french(provider))
    assert (message.status, message.rows, message.missing) == ("failed", {}, {"factor": "failed"})
    assert message.error is not None
    assert message.error.startswith("ParseError: rte: ")


def test_static_factors_are_told_though_nobody_answers() -> None:
    options = Options(country="FR", limit=Seconds(1.0), rte=Rte(url="http://127.0.0.1:9/"))
    message = asked(Host("/"), options)
    assert message.status == "ok"
    assert column(message, "provider") == ["owid", "constant"]
    assert column(message, "vintage") == ["2023", ""]
    assert message.missing == {"factor": "failed"}


def test_a_provider_that_does_not_answer_or_dawdles_is_late(provider: Provider) -> None:
    def dawdle(player: Any) -> None:
        player.send_response(200)
        player.end_headers()
        while not provider.let_go.wait(0.05):
            player.wfile.write(b" ")

    def hang(_: Any) -> None:
        provider.let_go.wait(60)

    def dawdle_before(player: Any) -> None:
        player.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        for _ in range(600):
            if provider.let_go.wait(0.1):
                break
            player.wfile.write(b"x")

    for play in (hang, dawdle, dawdle_before):
        provider.play = play
        began = time.monotonic()
        message = asked(Host("/"), french(provider, limit=Seconds(0.3)))
        assert message.missing == {"factor": "late"}
        # Not a measure of speed: it would be a minute, or for ever.
        assert time.monotonic() - began < 30


def test_a_secret_is_not_told_to_whom_we_are_sent_on(provider: Provider, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret")

    def play(player: Any) -> None:
        if player.path == "/first":
            player.say(b"", 302, Location=f"{provider.url}/second")
        else:
            player.say(EMAPS)

    provider.play = play
    way = Emaps(url=f"{provider.url}/first")
    message = asked(Host("/"), Options(providers=("emaps",), zone="DE", token_file=str(token), emaps=way))
    assert column(message, "factor") == [402.0]
    (_, first), (path, second) = provider.asked
    assert path == "/second"
    assert "auth-token" in first
    assert "auth-token" not in second


def test_one_agent_is_told_to_ask_and_all_others_have_none() -> None:
    assert asked(Host("/"), Options()).status == "absent"
    assert providers(Options(country="DE")) == ("owid", "constant")
    assert providers(Options(country="fr")) == ("rte", "owid", "constant")
    assert providers(Options(zone="DE", token_file="/t")) == ("emaps", "owid", "constant")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"providers": ["co2signal"]}, "no 'co2signal'"),
        ({"providers": ["emaps"]}, "needs token_file"),
        ({"country": "FR", "constant": 0}, "constant"),
        ({"rte": {"url": "file:///etc/passwd"}}, "expected an address"),
        ({"fresh": "2d"}, "expires"),
    ],
)
def test_settings_that_cannot_be_are_one_sentence(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        from_values({"collect": {"emissionfactor": changes}}, only=("emissionfactor",))
    check(Options())
