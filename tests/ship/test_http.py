"""What a server's answers mean for the messages it was sent."""

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from jobsight.clock import SystemClock
from jobsight.collect.agent import Tally
from jobsight.schema.units import Bytes, Seconds
from jobsight.schema.wire import compress, encode
from jobsight.settings import Spool
from jobsight.ship import courier, http
from jobsight.ship.http import after, origin, refusals, said
from jobsight.ship.post import Answer
from jobsight.ship.sink import Place
from jobsight.ship.spool import Frame
from tests.conftest import wait_until
from tests.ship.contract import message


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b'{"accepted": 3, "refused": 2, "reasons": ["$.rows"]}', 2),
        (b'{"refused": 0, "reasons": []}', 0),
        (b'{"refused": -5, "reasons": []}', 0),
        (b"", 0),
        (b"thanks", 0),
        (b"[1]", 0),
        (b'{"refused": "many", "reasons": []}', 0),
        (b'{"refused": Infinity, "reasons": []}', 0),
        (b"[" * 60_000, 0),
    ],
)
def test_an_answer_that_makes_no_sense_refuses_nothing_and_ends_nobody(body: bytes, count: int) -> None:
    assert refusals(body)[0] == count


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"retry-after": "120"}, 120),
        ({"retry-after": formatdate(1000 + 90, usegmt=True)}, 90),
        ({"retry-after": formatdate(1000 - 90, usegmt=True)}, 0),
        # Our clock is an hour wrong; the server's two dates agree.
        ({"retry-after": formatdate(4690, usegmt=True), "date": formatdate(4600, usegmt=True)}, 90),
        ({"retry-after": "soon"}, 0),
        ({"retry-after": "-5"}, 0),
        ({"retry-after": formatdate(4690, usegmt=True), "date": "today"}, 0),
    ],
)
def test_when_to_come_again_is_a_number_or_a_date(headers: dict[str, str], seconds: float) -> None:
    assert after(headers, 1000.0) == seconds


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error": "token x was revoked"}', "token x was revoked"),
        (b'{"detail": "away"}', "away"),
        (b"<html>\n\x1b[31mno</html>", "<html>  [31mno</html>"),
        (b"[1]", "[1]"),
        (b"", ""),
        (b"x" * 10_000, "x" * 200),
    ],
)
def test_what_a_server_says_is_one_line(body: bytes, text: str) -> None:
    assert said(Answer(401, {}, body)) == text


def test_whose_a_message_is_stands_at_its_beginning() -> None:
    long = message(1, node='n"1\n' + "é" * 200)
    assert origin(compress(encode(long))) == ("fox", 'n"1\n' + "é" * 200)
    for other in (b"", b"nonsense", compress(b"[1]"), compress(b'{"cluster": 1}')):
        assert origin(other) is None


class Poster:
    """Stands for the connection: says what a function of the lines it is sent says."""

    def __init__(self, answer: Callable[[list[dict[str, Any]]], Answer]) -> None:
        self.answer = answer
        self.asked: list[list[int]] = []

    def post(self, body: bytes, headers: dict[str, str]) -> Answer:  # noqa: ARG002
        lines = [json.loads(line) for line in gzip.decompress(body).splitlines()]
        self.asked.append([line["rows"]["total"][0] for line in lines])
        return self.answer(lines)

    def abort(self) -> None: ...

    def close(self) -> None: ...


Open = Callable[[Callable[[list[dict[str, Any]]], Answer]], tuple[http.Http, Poster]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(courier, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(courier, "LONGEST_PAUSE", 0.05)
    spool = Spool(path=str(tmp_path / "spool"), size=Bytes(10**6), age=Seconds(86400))
    return Place("n1", spool, SystemClock(), Tally())


@pytest.fixture
def opened(place: Place) -> Iterator[Open]:
    made: list[http.Http] = []

    def begin(answer: Callable[[list[dict[str, Any]]], Answer]) -> tuple[http.Http, Poster]:
        sink = http.Http(http.Options("http://monitor.example/ingest", window=Seconds(0.0)), place)
        poster: Any = Poster(answer)
        sink._post = poster
        made.append(sink)
        return sink, poster

    yield begin
    for sink in made:
        sink.close()


def frames(*numbers: int, node: str = "n1") -> list[Frame]:
    return [Frame(compress(encode(message(number, node=node))), 1, number) for number in numbers]


def taken(lines: list[dict[str, Any]]) -> Answer:
    return Answer(200, {}, json.dumps({"accepted": len(lines), "refused": 0, "reasons": []}).encode())


@pytest.mark.parametrize("status", [413, 400])
def test_too_many_at_once_become_half_as_many_until_they_fit(opened: Open, status: int) -> None:
    sink, poster = opened(lambda lines: taken(lines) if len(lines) <= 2 else Answer(status, {}, b'{"error": 1}'))
    assert sink._deliver(frames(*range(9))).done == 2
    assert [len(asked) for asked in poster.asked] == [9, 4, 2]
    # The next comes in the right size at once, and tries a little more.
    poster.asked.clear()
    assert sink._deliver(frames(*range(2, 9))).done >= 1
    assert len(poster.asked[0]) == 3


def test_one_that_is_too_large_alone_is_given_up_and_its_neighbours_go(opened: Open, place: Place) -> None:
    def answer(lines: list[dict[str, Any]]) -> Answer:
        large = any(line["rows"]["total"] == [3] for line in lines)
        return Answer(413, {}, b'{"error": "too large"}') if large else taken(lines)

    sink, poster = opened(answer)
    for number in range(6):
        sink.send(message(number))
    wait_until(lambda: place.tally.sent + place.tally.dropped == 6)
    assert (place.tally.sent, place.tally.dropped) == (5, 1)
    assert sum(asked == [3] for asked in poster.asked) == 1


def test_a_closed_door_keeps_everything_and_says_why_even_after_other_trouble(
    opened: Open, place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    answers = [Answer(503, {}, b""), Answer(401, {}, b'{"error": "token x was revoked"}')]
    answers += [answers[1]] * 3
    sink, _ = opened(lambda lines: answers.pop(0) if answers else taken(lines))
    sink.send(message(1))
    wait_until(lambda: place.tally.sent == 1)
    assert place.tally.dropped == 0
    place_said = [line.partition("ingest")[2] for line in capfd.readouterr().err.splitlines()]
    assert place_said == [
        ": answered 503; messages wait in the spool",
        ": answered 401: token x was revoked; messages wait in the spool",
        " takes messages again",
    ]


def for_node(name: str) -> Callable[[list[dict[str, Any]]], Answer]:
    """A server whose token for us is for this node."""

    def answer(lines: list[dict[str, Any]]) -> Answer:
        wrong = [line["node"] for line in lines if line["node"] != name]
        said = {"error": f"the message is of {wrong[:1]}", "path": "$.node"}
        return Answer(403, {}, json.dumps(said).encode()) if wrong else taken(lines)

    return answer


def test_messages_of_who_we_are_wait_for_the_right_token(opened: Open, place: Place) -> None:
    sink, poster = opened(for_node("n2"))
    sink.send(message(1, node="n1"))
    wait_until(lambda: len(poster.asked) > 2)
    assert (place.tally.sent, place.tally.dropped) == (0, 0)
    poster.answer = for_node("n1")
    wait_until(lambda: place.tally.sent == 1)


def test_messages_of_who_we_were_do_not_block_those_of_who_we_are(
    opened: Open, place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    ready = threading.Event()
    sink, _ = opened(lambda lines: for_node("n2")(lines) if ready.is_set() else Answer(503, {}, b""))
    for number, node in enumerate(["n1", "n1", "n2", "n1", "n2"]):
        sink.send(message(number, node=node))
    ready.set()
    wait_until(lambda: place.tally.sent + place.tally.dropped == 5)
    assert (place.tally.sent, place.tally.dropped) == (2, 3)
    assert "the message is of ['n1']" in capfd.readouterr().err


def test_old_messages_the_token_is_good_for_are_sent_though_new_ones_are_not(opened: Open, place: Place) -> None:
    ready = threading.Event()
    sink, _ = opened(lambda lines: for_node("n1")(lines) if ready.is_set() else Answer(503, {}, b""))
    for number, node in enumerate(["n1", "n1", "n2"]):
        sink.send(message(number, node=node))
    ready.set()
    wait_until(lambda: place.tally.sent == 2)
    assert place.tally.dropped == 0


def test_a_gateway_that_takes_us_for_somebody_else_costs_no_message(
    opened: Open, place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    answers = [Answer(400, {}, b"<html>The plain HTTP request was sent to HTTPS port</html>")] * 3
    sink, _ = opened(lambda lines: answers.pop() if answers else taken(lines))
    sink.send(message(1))
    wait_until(lambda: place.tally.sent == 1)
    assert place.tally.dropped == 0
    assert "answered 400: <html>The plain HTTP request" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"proxy": "https://me:secret@p"}, "expected a proxy"),
        ({"key_file": "/k"}, "key_file is nothing without cert_file"),
        ({"url": "ftp://x"}, "expected an address"),
    ],
)
def test_settings_that_cannot_be_are_one_sentence_without_secrets(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        http.check(http.Options("http://monitor.example/ingest")._replace(**changes))
    assert "secret" not in str(caught.value)


def test_a_login_page_that_says_all_is_well_has_stored_nothing(
    opened: Open, place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    portal = Answer(200, {"content-type": "text/html"}, b"<html>Please log in</html>")
    answers = [portal, Answer(200, {}, b"null"), Answer(202, {}, b"")]
    sink, poster = opened(lambda lines: answers.pop(0) if answers else taken(lines))
    sink.send(message(1))
    wait_until(lambda: place.tally.sent == 1)
    assert poster.asked == [[1]] * 4
    assert "answered 200, but not as a jobsight server does: <html>Please log in" in capfd.readouterr().err


def test_what_a_gateway_has_cut_into_chunks_is_believed_by_its_kind(opened: Open, place: Place) -> None:
    sink, poster = opened(lambda _: Answer(200, {"content-type": "application/json"}, b"2a\r\n{"))
    sink.send(message(1))
    wait_until(lambda: place.tally.sent == 1)
    assert poster.asked == [[1]]
