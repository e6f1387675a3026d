"""`POST /ingest` as senders meet it: who is let in, how much is taken, and what they hear when it is not."""

import json
import socket
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from jobsight.ingest.limit import BusyError, Limits
from jobsight.schema.wire import compress
from tests.conftest import wait_until
from tests.ingest.door import Door, made, opened
from tests.store.contract import BOOT, load_line


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    with opened(tmp_path) as found:
        yield found


def test_without_a_token_anywhere_everybody_may_send(door: Door) -> None:
    answer, report = door.post(load_line(BOOT))
    assert (answer.status, report) == (200, {"accepted": 1, "refused": 0, "reasons": []})
    assert len(door.lines) == 1


def test_from_the_first_token_on_a_sender_must_show_one(door: Door) -> None:
    token = made(door.tokens)
    answer, said = door.post(load_line(BOOT))
    assert answer.status == 401
    assert "needs a token" in said["error"]
    assert answer.headers["www-authenticate"] == "Bearer"
    assert door.post(load_line(BOOT), Authorization=f"Bearer {token}")[0].status == 200
    assert door.post(load_line(BOOT), Authorization=f"bearer {token}")[0].status == 200
    assert len(door.lines) == 2


@pytest.mark.parametrize("change", [str.upper, lambda t: t[:-1], lambda t: t[:8] + "." + "A" * 43, lambda t: t[9:]])
def test_a_token_that_is_not_quite_right_is_none(door: Door, change: Callable[[str], str]) -> None:
    token = made(door.tokens)
    answer, said = door.post(load_line(BOOT), Authorization=f"Bearer {change(token)}")
    assert (answer.status, said["error"]) == (401, "this server does not know this token")
    assert door.lines == []


def test_revoking_bites_at_once_and_the_last_token_leaves_the_door_closed(door: Door) -> None:
    token = made(door.tokens)
    assert door.post(load_line(BOOT), Authorization=f"Bearer {token}")[0].status == 200
    door.tokens.revoke(token[:8], 2000.0)
    answer, said = door.post(load_line(BOOT), Authorization=f"Bearer {token}")
    assert answer.status == 401
    assert said["error"] == f"token {token[:8]} was revoked on 1970-01-01 00:33 UTC"
    assert door.post(load_line(BOOT))[0].status == 401


def test_a_token_ends_with_its_time(door: Door) -> None:
    token = made(door.tokens, expires=1234.0)
    answer, said = door.post(load_line(BOOT), Authorization=f"Bearer {token}")
    assert answer.status == 401
    assert "expired on 1970-01-01 00:20 UTC" in said["error"]


def test_the_token_of_the_settings_and_the_servers_own_are_good_for_all(tmp_path: Path) -> None:
    with opened(tmp_path, fixed="of the file") as door:
        assert door.post(load_line(BOOT))[0].status == 401
        for token in ("of the file", "of the server itself"):
            assert door.post(load_line(BOOT), Authorization=f"Bearer {token}")[0].status == 200


@pytest.mark.parametrize(
    ("cluster", "node", "path"), [("hare", None, "$.cluster"), ("fox", "n2", "$.node"), ("hare", "n1", "$.cluster")]
)
def test_nobody_writes_as_another(door: Door, cluster: str, node: str | None, path: str) -> None:
    token = made(door.tokens, cluster, node)
    answer, said = door.post(load_line(BOOT, node="n1"), Authorization=f"Bearer {token}")
    assert (answer.status, said["path"]) == (403, path)
    assert said["error"].startswith(f"token {token[:8]} is for")
    assert door.lines == []
    assert not (door.path / "quarantine").exists() or not list((door.path / "quarantine").iterdir())


def test_a_token_of_a_node_takes_its_messages_and_only_its(door: Door) -> None:
    token = f"Bearer {made(door.tokens, 'fox', 'n1')}"
    assert door.post(load_line(BOOT, node="n1"), Authorization=token)[0].status == 200
    both = load_line(BOOT + 1, node="n1") + b"\n" + load_line(BOOT + 1, node="n2")
    assert door.post(both, Authorization=token)[0].status == 403
    assert [json.loads(line)["node"] for line in door.lines] == ["n1"]


def test_it_is_remembered_when_a_token_was_used(tmp_path: Path) -> None:
    with opened(tmp_path) as door:
        token = made(door.tokens)
        door.post(load_line(BOOT), Authorization=f"Bearer {token}")
        first = door.tokens.find(token[:8])
        assert first is not None
        assert first.used is not None
        assert first.used > 1.7e9


@pytest.mark.parametrize(
    ("limits", "body", "headers", "reason"),
    [
        ({"unpacked": 1000}, load_line(BOOT) * 20, {}, "more than 1000 in one request"),
        ({"unpacked": 10**6}, compress(b" " * 10**7), {"Content_Encoding": "gzip"}, "when unpacked"),
        ({"packed": 1000}, bytes(2000), {"Content_Encoding": "gzip"}, "more than 1000 in one request"),
        ({"messages": 3}, b"\n".join([load_line(BOOT)] * 4), {}, "more than 3 messages"),
    ],
)
def test_too_much_at_once_is_413_and_says_what(
    tmp_path: Path, limits: dict[str, Any], body: bytes, headers: dict[str, str], reason: str
) -> None:
    with opened(tmp_path, Limits(**limits)) as door:
        answer, said = door.post(body, **headers)
        assert answer.status == 413
        assert reason in said["error"]


def test_only_chosen_nodes_speak_for_their_cluster(tmp_path: Path) -> None:
    """What is about other people's jobs is refused from the others, and kept; what is about themselves is taken."""
    queue = (Path(__file__).parents[1] / "wire/0.1/slurmqueue.jsonl").read_bytes().splitlines()[0]
    node = json.loads(queue)["node"]
    body = b"\n".join([queue, load_line(BOOT)])
    with opened(tmp_path, Limits(speakers=("slurm1",))) as door:
        _, said = door.post(body)
        assert (said["accepted"], said["refused"]) == (1, 1)
        assert f"{node} is none of serve.scheduler_nodes" in said["reasons"][0]["reason"]
        assert [json.loads(line)["collector"] for line in door.lines] == ["load"]
    with opened(tmp_path, Limits(speakers=(node,))) as door:
        _, said = door.post(body)
        assert (said["accepted"], said["refused"]) == (2, 0)


def test_a_bomb_costs_neither_memory_nor_an_answer(tmp_path: Path) -> None:
    """A gigabyte of one line in a megabyte, sent whole."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join([*(packer.compress(b"x" * 2**20) for _ in range(1024)), packer.flush()])
    with opened(tmp_path) as door:
        answer, said = door.post(bomb, Content_Encoding="gzip")
        assert answer.status == 413
        assert "when unpacked" in said["error"]
        assert door.post(load_line(BOOT))[0].status == 200


@pytest.mark.parametrize("blank", [b"\n", b" \n", b"\r\n"])
def test_a_bomb_of_empty_lines_keeps_nobody_waiting(door: Door, blank: bytes) -> None:
    """Sixty-four thousand bytes that were a minute and a half of work."""
    answer, said = door.post(compress(blank * 2**25), Content_Encoding="gzip")
    assert answer.status == 413
    assert "empty lines" in said["error"]
    assert door.post(b"\n\n" + load_line(BOOT) + b"\n\n")[0].status == 200


def begin(door: Door, length: int) -> socket.socket:
    """A request whose body does not come."""
    link = socket.create_connection(("127.0.0.1", door.port), 20)
    head = (
        f"POST /ingest HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nContent-Length: {length}\r\n\r\n"
    )
    link.sendall(head.encode())
    return link


def test_a_body_that_does_not_come_is_given_up_and_the_connection_closed(tmp_path: Path) -> None:
    with opened(tmp_path, Limits(quiet=0.2)) as door, begin(door, 100) as link:
        answer = b"".join(iter(lambda: link.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"too slowly" in answer


def test_a_body_that_drips_is_given_up_too(tmp_path: Path) -> None:
    with opened(tmp_path, Limits(quiet=10.0, whole=0.5)) as door, begin(door, 10**6) as link:
        stop = threading.Event()

        def drip() -> None:
            while not stop.wait(0.02):
                try:
                    link.sendall(b"x")
                except OSError:
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        assert link.recv(65536).startswith(b"HTTP/1.1 408")
        stop.set()
        thread.join()


def test_beyond_so_many_at_once_senders_come_again_later(tmp_path: Path) -> None:
    with opened(tmp_path, Limits(requests=2)) as door:
        links = [begin(door, 100) for _ in range(2)]
        # They are being read when another one hears that it is too many.
        wait_until(lambda: door.post(load_line(BOOT))[0].status == 503)
        answer, said = door.post(load_line(BOOT))
        assert (answer.status, answer.headers["retry-after"]) == (503, "2")
        assert said["error"] == "too many requests at once"
        for link in links:
            link.close()
        wait_until(lambda: door.post(load_line(BOOT))[0].status == 200)


def test_a_token_that_sends_too_much_waits_and_others_do_not(tmp_path: Path) -> None:
    with opened(tmp_path, Limits(rate=1)) as door:
        busy, other = f"Bearer {made(door.tokens)}", f"Bearer {made(door.tokens)}"
        lines = b"\n".join(load_line(BOOT + i) for i in range(100))
        assert door.post(lines, Authorization=busy)[0].status == 200
        answer, said = door.post(load_line(BOOT), Authorization=busy)
        assert answer.status == 429
        assert 30 < int(answer.headers["retry-after"]) <= 42
        assert "more than 1/s" in said["error"]
        assert door.post(lines, Authorization=other)[0].status == 200


@pytest.mark.parametrize("raised", [True, False])
def test_a_store_that_has_too_much_waiting_says_when_to_come_again(tmp_path: Path, *, raised: bool) -> None:
    def append(_: Sequence[bytes]) -> "Future[None]":
        error = BusyError("2 GiB wait to be loaded", 17)
        if raised:
            raise error
        done: Future[None] = Future()
        done.set_exception(error)
        return done

    with opened(tmp_path, append=append) as door:
        answer, said = door.post(load_line(BOOT))
        assert (answer.status, answer.headers["retry-after"]) == (503, "17")
        assert said["error"] == "2 GiB wait to be loaded"


def test_a_full_disk_is_not_acknowledged(tmp_path: Path) -> None:
    def append(_: Sequence[bytes]) -> "Future[None]":
        done: Future[None] = Future()
        done.set_exception(OSError(28, "No space left on device"))
        return done

    with opened(tmp_path, append=append) as door:
        answer, said = door.post(load_line(BOOT))
        assert (answer.status, answer.headers["retry-after"]) == (503, "10")
        assert said["accepted"] == 0


def test_a_sender_that_hangs_up_in_the_middle_leaves_nothing_behind(
    door: Door, capfd: pytest.CaptureFixture[str]
) -> None:
    link = begin(door, 100)
    link.sendall(b"{")
    link.close()
    assert door.post(load_line(BOOT))[0].status == 200
    assert len(door.lines) == 1
    assert "Traceback" not in capfd.readouterr().err
