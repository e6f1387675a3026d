"""`jobsight token` and `jobsight enrol`, as people use them."""

import json
import os
import stat
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from jobsight.cli import enrol
from jobsight.cli.main import main
from jobsight.ingest.token import digest, split
from jobsight.store.tokens import open_tokens
from tests.ingest.door import Door, invited, made, opened
from tests.store.contract import BOOT, load_line

Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Say:
    (tmp_path / "store").mkdir()

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["token", *arguments, "--store", str(tmp_path / "store")])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_a_token_is_printed_once_alone_and_kept_only_as_a_digest(say: Say, tmp_path: Path) -> None:
    code, out, err = say("add", "--cluster", "fox", "--node", "c1-5", "--expires", "1y")
    assert code == 0
    parts = split(out.strip())
    assert parts is not None
    number, secret = parts
    assert f"token {number} is good for node c1-5 of cluster fox until" in err
    assert "the first one" in err
    assert secret not in err
    (token,) = open_tokens(str(tmp_path / "store")).tokens()
    assert (token.id, token.digest, token.cluster, token.node) == (number, digest(secret), "fox", "c1-5")
    assert token.expires == pytest.approx(token.made + 365 * 86400)
    assert "the first one" not in say("add", "--cluster", "fox")[2]


def test_the_list_shows_whose_since_when_and_until_when_and_no_secret(say: Say) -> None:
    assert "No token has been made" in say("list")[1]
    token = say("add", "--cluster", "fox")[1].strip()
    key = say("invite", "--cluster", "hare", "--uses", "3", "--expires", "2d")[1].strip()
    assert say("revoke", token[:8])[:2] == (0, f"{token[:8]} is revoked.\n")
    items = json.loads(say("list", "--json")[1])
    assert [(item["id"], item["kind"], item["cluster"], item["node"]) for item in items] == [
        (token[:8], "token", "fox", None),
        (key[:8], "key", "hare", None),
    ]
    assert items[0]["state"].startswith("was revoked on")
    assert (items[1]["used"], items[1]["state"]) == ("0 of 3", "good")
    shown = say("list")[1]
    assert shown.splitlines()[0].split() == ["id", "kind", "cluster", "node", "made", "used", "expires", "state"]
    assert token[9:] not in shown + json.dumps(items)
    assert key[9:] not in shown + json.dumps(items)


def test_a_whole_token_can_be_revoked_by_who_has_it_at_hand(say: Say) -> None:
    token = say("add", "--cluster", "fox")[1].strip()
    assert say("revoke", token)[1] == f"{token[:8]} is revoked.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["revoke", "nonesuch"], 1, "no token or key nonesuch"),
        (["add"], 2, "--cluster"),
        (["add", "--cluster", "fox", "--expires", "soon"], 2, "expected a duration"),
        (["add", "--cluster", "fox", "--expires", "100000y"], 2, "up to 1000 years"),
        (["invite", "--cluster", "fox", "--lifetime", "0s"], 2, "up to 1000 years"),
        (["invite", "--cluster", "fox", "--uses", "0"], 2, "expected a whole number"),
    ],
)
def test_a_mistake_is_one_sentence_and_an_exit_code(
    say: Say, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, sentence: str
) -> None:
    try:
        found, _, err = say(*arguments)
    except SystemExit as end:
        found, err = int(end.code or 0), capsys.readouterr().err
    assert found == code
    assert sentence in err


def test_without_a_store_it_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["token", "list", "--store", str(tmp_path / "none")]) == 1
    assert "start `jobsight serve` first" in capsys.readouterr().err


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    (tmp_path / "server").mkdir()
    with opened(tmp_path / "server") as found:
        yield found


def asked(door: Door, key: str, file: Path, *more: str) -> int:
    return main(["enrol", f"http://127.0.0.1:{door.port}", key, "--token-file", str(file), *more])


def test_enrolling_writes_a_token_only_its_owner_can_read(door: Door, tmp_path: Path) -> None:
    file = tmp_path / "etc" / "token"
    assert asked(door, invited(door.tokens), file, "--node", "c1-5") == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["token"]
    answer, _ = door.post(load_line(BOOT, node="c1-5"), Authorization=f"Bearer {file.read_text().strip()}")
    assert answer.status == 200


def test_the_node_is_called_as_its_agent_calls_it(door: Door, tmp_path: Path) -> None:
    settings = tmp_path / "agent.yaml"
    settings.write_text("node: c9-9\n")
    assert asked(door, invited(door.tokens), tmp_path / "token", "--settings", str(settings)) == 0
    assert [token.node for token in door.tokens.tokens()] == ["c9-9"]
    assert asked(door, invited(door.tokens), tmp_path / "token2") == 0
    assert door.tokens.tokens()[-1].node == os.uname().nodename


def test_a_key_that_was_used_leaves_the_token_that_is_there(
    door: Door, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key, file = invited(door.tokens), tmp_path / "token"
    assert asked(door, key, file) == 0
    before = file.read_text()
    assert asked(door, key, file) == 1
    assert f"answered 403: key {key[:8]} has been used up" in capsys.readouterr().err
    assert file.read_text() == before
    assert not (tmp_path / "token.wish").exists()


class Lossy(BaseHTTPRequestHandler):
    """Passes the question on and hangs up before it answers, as often as it is told to."""

    door: Door
    losses: list[int]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer, _ = self.door.post(body, "/enrol", Content_Type="application/json")
        if self.losses[0]:
            self.losses[0] -= 1
            self.close_connection = True
            return
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_: object) -> None:
        pass


def test_an_answer_that_was_lost_is_had_by_asking_again(
    door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(enrol, "PAUSES", (0.01, 0.01))
    losses = [4]
    handler: Any = type("Own", (Lossy,), {"door": door, "losses": losses})
    between = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=between.serve_forever)
    thread.start()
    key, file = invited(door.tokens), tmp_path / "token"
    command = ["enrol", f"http://127.0.0.1:{between.server_port}/ingest", key, "--token-file", str(file)]
    try:
        # Three tries are lost, and the program gives up; a second one is lucky at its second try.
        assert main(command) == 1
        assert "try again with the same key" in capsys.readouterr().err
        assert not file.exists()
        assert stat.S_IMODE((tmp_path / "token.wish").stat().st_mode) == 0o600
        assert main(command) == 0
    finally:
        between.shutdown()
        between.server_close()
        thread.join()
    (token,) = door.tokens.tokens()
    parts = split(file.read_text().strip())
    assert parts is not None
    assert (token.id, token.digest) == (parts[0], digest(parts[1]))
    assert door.tokens.invites()[0].spent == 1


class Gateway(BaseHTTPRequestHandler):
    """Passes the question on, and says something else."""

    door: Door
    answers: list[tuple[int, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.door.post(body, "/enrol", Content_Type="application/json")
        status, said = self.answers[0]
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    ("status", "said", "sentence"),
    [(504, b"", "answered 504"), (500, b"oops", "answered 500"), (200, b"<html>Hello", "no answer of a jobsight")],
)
def test_a_gateway_that_loses_the_answer_does_not_cost_the_key(
    door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], status: int,
    said: bytes, sentence: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(enrol, "PAUSES", (0.01,))
    handler: Any = type("Own", (Gateway,), {"door": door, "answers": [(status, said)]})
    between = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=between.serve_forever)
    thread.start()
    key, file = invited(door.tokens), tmp_path / "token"
    try:
        url = f"http://127.0.0.1:{between.server_port}"
        assert main(["enrol", url, key, "--token-file", str(file)]) == 1
    finally:
        between.shutdown()
        between.server_close()
        thread.join()
    assert sentence in capsys.readouterr().err
    # The server has traded the key: whoever asks again, straight, must have the same token.
    assert asked(door, key, file) == 0
    assert door.tokens.invites()[0].spent == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["http://monitor.example", "abcdefgh.x"], "use https://, or say --plain"),
        (["monitor.example", "abcdefgh.x"], "expected an address"),
        (["https://monitor.example", "x"], "that is no key"),
        (["https://monitor.example", "abcdefgh.x", "--proxy", "socks5://me:secret@p"], "expected a proxy"),
        (["https://monitor.example", "abcdefgh.x", "--owner", "no such user"], "there is no user"),
        (["https://monitor.example", "abcdefgh.x", "--ca-file", "/nonexistent"], "cannot read /nonexistent"),
    ],
)
def test_what_cannot_be_asked_is_said_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert main(["enrol", *arguments, "--token-file", str(tmp_path / "etc" / "token")]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert "secret" not in err
    assert not (tmp_path / "etc").exists()


def test_the_key_can_come_from_a_pipe(door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text(invited(door.tokens) + "\n")
    with (tmp_path / "key").open() as pipe:
        monkeypatch.setattr("sys.stdin", pipe)
        assert asked(door, "-", tmp_path / "token") == 0
    assert made(door.tokens)
