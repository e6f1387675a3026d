"""The courier: what a destination says decides what leaves the spool, and people hear of it once."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobsight.clock import SystemClock
from jobsight.collect.agent import Tally
from jobsight.schema.units import Bytes, Seconds
from jobsight.settings import Spool
from jobsight.ship import courier
from jobsight.ship.courier import Courier, Deliver, Outcome, later, refused
from jobsight.ship.sink import Place
from jobsight.ship.spool import Frame
from tests.conftest import wait_until


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place("n1", Spool(str(tmp_path / "spool"), Bytes(10**6), Seconds(86400)), SystemClock(), Tally())


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courier, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(courier, "LONGEST_PAUSE", 0.05)


Open = Callable[..., Courier]


@pytest.fixture
def opened(place: Place, quick: None) -> Iterator[Open]:
    made: list[Courier] = []

    def begin(deliver: Deliver, name: str = "one", batch: int = 10**6) -> Courier:
        made.append(Courier(name, f"place {name}", deliver, place, window=0.0, batch=batch))
        return made[-1]

    yield begin
    for one in made:
        one.close()


class Taker:
    """A destination that answers from a list, then takes everything; remembers what it was handed and took."""

    def __init__(self, *answers: Outcome | Exception) -> None:
        self.answers = list(answers)
        self.taken: list[bytes] = []
        self.calls = 0

    def __call__(self, frames: list[Frame]) -> Outcome:
        self.calls += 1
        answer = self.answers.pop(0) if self.answers else Outcome(len(frames))
        if isinstance(answer, Exception):
            raise answer
        self.taken += [frame.payload for frame in frames[: answer.done]]
        return answer


def test_what_was_done_is_forgotten_and_the_rest_comes_again_at_once(opened: Open, place: Place) -> None:
    holding = Taker(later("not yet"))
    one = opened(holding)
    for number in range(5):
        one.put(b"%d" % number)
    wait_until(lambda: place.tally.sent == 5)
    assert holding.taken == [b"0", b"1", b"2", b"3", b"4"]

    partly = Taker(Outcome(1))
    other = opened(partly, "other")
    for number in range(3):
        other.put(b"%d" % number)
    wait_until(lambda: place.tally.sent == 8)
    assert partly.taken == [b"0", b"1", b"2"]
    assert (place.tally.dropped, place.tally.waiting) == (0, 0)


@pytest.mark.parametrize("error", [OSError("gone"), ValueError("a secret nobody can send")])
def test_an_error_means_later_and_the_sender_lives(opened: Open, place: Place, error: Exception) -> None:
    one = opened(Taker(error, error))
    one.put(b"x")
    wait_until(lambda: place.tally.sent == 1)
    assert place.tally.dropped == 0


def test_trouble_is_said_once_and_so_is_its_end(
    opened: Open, place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    taker = Taker(later("busy"), later("busy"), later("still busy"))
    opened(taker).put(b"x")
    wait_until(lambda: place.tally.sent == 1)
    said = capfd.readouterr().err.splitlines()
    assert said == [
        "jobsight: place one: busy; messages wait in the spool",
        "jobsight: place one takes messages again",
    ]
    assert taker.calls == 4


def test_what_is_refused_is_counted_each_time_and_said_when_it_is_news(
    opened: Open, place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    one = opened(Taker(refused(1, "too large"), refused(1, "too large"), refused(1, "no such topic")))
    for number in range(1, 5):
        one.put(b"x")
        wait_until(lambda number=number: place.tally.dropped + place.tally.sent == number)  # type: ignore[misc]
    assert (place.tally.sent, place.tally.dropped, place.tally.waiting) == (1, 3, 0)
    said = capfd.readouterr().err.splitlines()
    assert [line.rpartition(": ")[2] for line in said] == ["too large", "no such topic"]


def test_two_destinations_add_up_what_waits(opened: Open, place: Place) -> None:
    def never(_: list[Frame]) -> Outcome:
        return later("away")

    opened(never, "one").put(b"x" * 100)
    alone = place.tally.waiting
    opened(never, "two").put(b"x" * 100)
    assert alone > 100
    assert place.tally.waiting == 2 * alone


def test_a_closing_courier_gives_up_when_its_patience_ends(
    place: Place, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "PATIENCE", 0.0)
    one: list[Courier] = []

    def waits(_: list[Frame]) -> Outcome:
        wait_until(lambda: one and one[0].hurried(), what="the courier is in a hurry")
        return later("nobody came")

    one.append(Courier("one", "place", waits, place, window=0.0, batch=100))
    one[0].put(b"x")
    one[0].close()
    assert place.tally.sent == 0
    taker = Taker()
    again = Courier("one", "place", taker, place, window=0.0, batch=100)
    again.close()
    assert taker.taken == [b"x"]


def test_a_destination_that_wants_peace_for_ages_is_asked_again(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "LONGEST_AFTER", 0.01)
    taker = Taker(later("busy", after=1e11))
    one = opened(taker)
    one.put(b"a")
    wait_until(lambda: one._spool.waiting == 0)


def test_a_destination_that_never_answers_does_not_keep_the_agent_from_stopping(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "PATIENCE", 0.05)
    monkeypatch.setattr(courier, "GRACE", 0.05)
    waits = threading.Event()
    asked = []

    class Deaf(Courier):
        def interrupt(self) -> None:
            waits.set()

    def deliver(frames: list[Frame]) -> Outcome:
        asked.append(frames)
        assert waits.wait(30), "nobody interrupted"
        return later("given up")

    one = Deaf("deaf", "place deaf", deliver, place, window=0.0, batch=100)
    one.put(b"a")
    wait_until(lambda: bool(asked))
    one.close()
    assert len(asked) == 1


def test_what_waits_and_for_how_long_is_known_while_it_waits(opened: Open, place: Place) -> None:
    assert place.tally.spools == []
    taker = Taker(*[later("away")] * 3)
    one = opened(taker)
    one.put(b"x")
    one.put(b"y")
    (ask,) = place.tally.spools
    wait_until(lambda: place.tally.sent == 2)
    assert ask() == (0, None)
    taker.answers = [later("away")] * 1000
    one.put(b"z")
    messages, age = ask()
    assert messages == 1
    assert age is not None
    assert 0 <= age < 60
    taker.answers = []
    one.close()
    assert place.tally.spools == []
    opened(taker, "again")


def test_what_was_torn_is_counted_among_the_dropped(opened: Open, place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "spool" / "one"
    folder.mkdir(parents=True)
    (folder / "00000001.spool").write_bytes(b"half a frame")
    opened(Taker()).put(b"x")
    wait_until(lambda: place.tally.sent == 1)
    assert (place.tally.dropped, place.tally.torn) == (1, 1)


def test_a_destination_is_left_alone_as_long_as_it_asked_and_a_little_longer(opened: Open) -> None:
    one = opened(lambda _: later("busy", after=100.0))
    one.put(b"x")
    pauses = [one._empty(0.0) for _ in range(200)]
    assert all(100 <= pause <= 150 for pause in pauses)
    assert len(set(pauses)) > 20, "all nodes would come at once"
    one._hand = Taker()
