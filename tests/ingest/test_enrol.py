"""A key is traded for a token: once, by one, and by nobody who guesses."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobsight.ingest.token import SECRET, digest, new_secret
from tests.ingest.door import Door, invited, opened
from tests.store.contract import BOOT, load_line


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    with opened(tmp_path) as found:
        yield found


def test_a_node_gets_a_token_of_its_own_and_sends_with_it(door: Door) -> None:
    key, secret = invited(door.tokens), new_secret()
    answer, made = door.ask(key, "n1", secret)
    assert answer.status == 200
    assert (made["cluster"], made["node"], made["expires"]) == ("fox", "n1", None)
    token = f"Bearer {made['id']}.{secret}"
    assert door.post(load_line(BOOT, node="n1"), Authorization=token)[0].status == 200
    assert door.post(load_line(BOOT, node="n2"), Authorization=token)[0].status == 403


def test_what_is_kept_does_not_hold_the_secret(door: Door) -> None:
    key, secret = invited(door.tokens), new_secret()
    door.ask(key, "n1", secret)
    stored = b"".join(file.read_bytes() for file in door.path.glob("tokens.sqlite*"))
    assert digest(secret).encode() in stored
    assert secret.encode() not in stored
    assert key[9:].encode() not in stored
    assert all(file.stat().st_mode & 0o077 == 0 for file in door.path.glob("tokens.sqlite*"))


def test_a_used_key_buys_nothing_but_what_it_has_bought(door: Door) -> None:
    key, secret = invited(door.tokens), new_secret()
    first = door.ask(key, "n1", secret)[1]
    # The answer was lost: the same node asks again with the same words.
    answer, again = door.ask(key, "n1", secret)
    assert (answer.status, again) == (200, first)
    answer, said = door.ask(key, "n2", new_secret())
    assert answer.status == 403
    assert said["error"].startswith(f"key {key[:8]} has been used up")
    assert door.ask(key, "n2", secret)[0].status == 403, "another node with the first one's secret"
    assert len(door.tokens.tokens()) == 1


def test_of_many_who_want_one_key_exactly_one_gets_it(door: Door) -> None:
    key = invited(door.tokens)
    found: list[int] = []

    def ask(number: int) -> None:
        found.append(door.ask(key, f"n{number}", new_secret())[0].status)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [200] + 15 * [403]
    assert len(door.tokens.tokens()) == 1


def test_one_who_asks_twice_at_the_same_time_spends_one_use(door: Door) -> None:
    key, secret = invited(door.tokens, uses=5), new_secret()
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(door.ask(key, "n1", secret)[1]["id"])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    (invite,) = door.tokens.invites()
    assert invite.spent == 1


def test_a_key_for_several_nodes_is_good_that_many_times(door: Door) -> None:
    key = invited(door.tokens, uses=3, lifetime=1000.0)
    answers = [door.ask(key, f"n{number}", new_secret()) for number in range(4)]
    assert [answer.status for answer, _ in answers] == [200, 200, 200, 403]
    assert answers[0][1]["expires"] == pytest.approx(time.time() + 1000, abs=60)


def test_keys_that_are_over_say_so(door: Door) -> None:
    old = invited(door.tokens, expires=1234.0)
    answer, said = door.ask(old, "n1", new_secret())
    assert answer.status == 403
    assert "expired on 1970-01-01 00:20 UTC" in said["error"]
    back = invited(door.tokens)
    door.tokens.revoke(back[:8], 2000.0)
    assert "was revoked" in door.ask(back, "n1", new_secret())[1]["error"]
    other = invited(door.tokens, node="n7")
    assert door.ask(other, "n1", new_secret())[1]["error"] == f"key {other[:8]} is for node n7, this is n1"
    assert door.ask(other, "n7", new_secret())[0].status == 200


def test_a_token_that_was_revoked_is_not_given_again(door: Door) -> None:
    key, secret = invited(door.tokens), new_secret()
    made = door.ask(key, "n1", secret)[1]
    door.tokens.revoke(made["id"], 2000.0)
    answer, said = door.ask(key, "n1", secret)
    assert answer.status == 403
    assert "was revoked" in said["error"]


def test_who_guesses_is_soon_not_listened_to(door: Door) -> None:
    key = invited(door.tokens)
    wrong = f"{key[:9]}{'A' * SECRET}"
    answers = [door.ask(wrong, "n1", new_secret())[0] for _ in range(20)]
    found = [answer.status for answer in answers]
    # One in six seconds is forgiven.
    assert found[:10] == [403] * 10
    assert found[-1] == 429
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert door.ask(key, "n1", new_secret())[0].status == 200, "others at the same address are kept out"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"key": "x", "node": "n1", "secret": "y"}', b"\xff", b'{"a":' * 1000, b" " * 5000]
)
def test_what_is_no_question_is_an_error_of_the_asker(door: Door, body: bytes) -> None:
    answer, said = door.post(body, "/enrol", Content_Type="application/json")
    assert answer.status in (400, 413)
    assert "error" in said
    assert door.post(body, "/enrol", Content_Type="text/plain")[0].status == 415
