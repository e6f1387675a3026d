"""Sources that somebody else must answer for: nobody waits for them."""

import threading
from collections.abc import Iterator

import pytest

from jobsight.exporter import aside
from jobsight.exporter.aside import Aside, aged
from jobsight.schema.message import Message, Origin, Status
from jobsight.settings import Plan
from tests.conftest import wait_until

PLAN = Plan("ipmi", enabled=True, every=10.0, deadline=5.0, options=None)


class Hands:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 100.0

    def wall(self) -> float:
        return self.now

    def steady(self) -> float:
        return self.now


class Source:
    """Answers when it is let to."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.runs = 0

    def run(self) -> Message:
        self.runs += 1
        self.gate.wait(30)
        rows = {"power": (300.0,), "age": (2.0,)}
        return Message(Origin("c", "n", "b"), "ipmi", 0.0, 0.0, 10.0, Status.OK, 0.1, None, {}, rows)


@pytest.fixture
def source() -> Iterator[Source]:
    made = Source()
    yield made
    made.gate.set()


def test_a_controller_that_hangs_delays_the_first_scrape_a_little_and_no_other(
    source: Source,
) -> None:
    one = Aside(PLAN, source.run, Hands())
    assert one.last(0.1) is None
    assert one.last(3600.0) is None  # were it to wait again, this would take an hour
    one.close()


def test_what_was_found_is_shown_with_its_age_until_it_is_too_old(source: Source) -> None:
    hands = Hands()
    source.gate.set()
    one = Aside(PLAN, source.run, hands)
    found = one.last()
    assert found is not None
    assert found[1] == 0.0
    source.gate.clear()  # from now on nobody answers
    hands.now += 30.0
    found = one.last()
    assert found is not None
    assert aged(*found).rows == {"power": (300.0,), "age": (32.0,)}
    hands.now += 6.0
    assert one.last() is None
    one.close()


def test_it_is_asked_once_an_interval_however_many_scrape(source: Source) -> None:
    source.gate.set()
    one = Aside(PLAN, source.run, Hands())
    for _ in range(20):
        assert one.last() is not None
    assert source.runs == 1
    one.close()


def test_it_is_asked_again_when_it_is_time(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "LEAST", 0.01)
    source.gate.set()
    one = Aside(PLAN._replace(every=0.01), source.run, Hands())
    wait_until(lambda: source.runs > 3)
    one.close()


def test_a_message_without_an_age_stays_as_it_is(source: Source) -> None:
    source.gate.set()
    message = source.run()._replace(rows={"power": (1.0,)})
    assert aged(message, 5.0) is message
