from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from jobsight.command import CommandError
from jobsight.drivers import window
from jobsight.drivers.notebook import Notebook
from jobsight.host import Host
from jobsight.schema.record import gauge, label, record
from jobsight.schema.units import Seconds

NOW = 1_794_725_000.0
HOUR = 3600.0


@record
class Thing:
    """A job."""

    job: str = label("Number.")
    elapsed: Seconds | None = gauge("Moves by itself.", default=None)
    ended: Seconds | None = gauge("End.", default=None)


class Options(NamedTuple):
    limit: float = 8.0
    overlap: float = 300.0
    slice: float = 6 * HOUR
    history: float = 24 * HOUR


class Hands:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = NOW

    def wall(self) -> float:
        return self.now

    def steady(self) -> float:
        return self.now


class Desk:
    """A source that remembers what it was asked for."""

    def __init__(self, folder: Path | None) -> None:
        self.clock = Hands()
        self.asked: list[tuple[float, float]] = []
        self.rows: list[Thing] = []
        self.wrong = False
        self.takes = 0.0
        self.folder = folder
        self.restart()

    def restart(self) -> None:
        self.host = Host()
        self.host.keep(Notebook).folder = str(self.folder) if self.folder else None

    def ask(self, since: float, until: float) -> Iterator[Thing]:
        self.asked.append((since, until))
        if self.wrong:
            raise CommandError("sacct did not end within 8 s and was ended")
        self.clock.now += self.takes
        yield from self.rows

    def run(self) -> list[Thing]:
        return list(window.fresh(self.host, "thing", Options(), self.ask, self.clock))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "read")


def test_first_run_begins_in_the_past_and_catches_up_one_slice_a_run(desk: Desk) -> None:
    for _ in range(5):
        desk.run()
        desk.clock.now += 60
    assert desk.asked[0] == (NOW - 24 * HOUR, NOW - 18 * HOUR + 300)
    for (_, until), (since, _) in zip(desk.asked, desk.asked[1:], strict=False):
        assert since == until - 300
    assert max(until - since for since, until in desk.asked) <= 6 * HOUR + 300
    assert desk.asked[-1][1] == NOW + 4 * 60


def test_steady_run_asks_since_the_last_and_a_little_before(desk: Desk) -> None:
    desk.host.keep(Notebook).write("thing", NOW - 60)
    desk.run()
    desk.clock.now += 60
    desk.run()
    assert desk.asked == [(NOW - 360, NOW), (NOW - 300, NOW + 60)]


def test_restarted_agent_goes_on_where_it_was(desk: Desk) -> None:
    desk.host.keep(Notebook).write("thing", NOW - 60)
    desk.run()
    desk.restart()
    desk.clock.now += 600
    desk.run()
    assert desk.asked[-1] == (NOW - 300, NOW + 600)


def test_run_that_fails_is_made_up_for(desk: Desk) -> None:
    desk.host.keep(Notebook).write("thing", NOW - 12 * HOUR)
    desk.wrong = True
    for _ in range(3):
        with pytest.raises(CommandError):
            desk.run()
        desk.clock.now += 60
    desk.wrong = False
    desk.run()
    assert {since for since, _ in desk.asked} == {NOW - 12 * HOUR - 300}
    # Less and less at once, in case it was too much; then more again until the present is reached.
    lengths = [until - since for since, until in desk.asked]
    assert lengths[0] > lengths[1] > lengths[2] > lengths[3]
    for _ in range(10):
        desk.clock.now += 60
        desk.run()
    assert desk.asked[-1][1] == desk.clock.now


def test_rows_not_taken_to_the_end_are_asked_for_again(desk: Desk) -> None:
    """Whatever fails while rows are made, the window was not read."""
    desk.host.keep(Notebook).write("thing", NOW - 60)
    desk.rows = [Thing(job="1"), Thing(job="2")]
    taken = window.fresh(desk.host, "thing", Options(), desk.ask, desk.clock)
    assert next(taken) == desk.rows[0]
    taken.close()  # type: ignore[attr-defined]
    assert desk.run() == desk.rows
    assert desk.asked[0] == desk.asked[1]


def test_row_that_has_not_changed_is_sent_again_after_an_hour(desk: Desk) -> None:
    desk.host.keep(Notebook).write("thing", NOW - 60)
    desk.rows = [Thing(job="1", elapsed=Seconds(5.0)), Thing(job="2")]
    assert desk.run() == desk.rows
    desk.clock.now += 60
    desk.rows = [Thing(job="1", elapsed=Seconds(65.0)), Thing(job="2", ended=Seconds(9.0)), Thing(job="3")]
    assert desk.run() == desk.rows[1:]
    desk.clock.now += 3600
    assert desk.run() == desk.rows


def test_run_that_may_have_been_given_up_is_made_again_with_less(desk: Desk) -> None:
    desk.host.keep(Notebook).write("thing", NOW - 12 * HOUR)
    desk.rows = [Thing(job="1")]
    desk.takes = 14.0
    assert desk.run() == desk.run() == desk.rows
    first, second = desk.asked
    assert first[0] == second[0]
    assert second[1] < first[1]
    desk.takes = 1.0
    assert (desk.run(), desk.run()) == (desk.rows, [])


def test_full_disk_costs_no_row(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "read").write_text("no folder")
    desk.rows = [Thing(job="1")]
    assert (desk.run(), desk.run()) == (desk.rows, [])


def test_row_that_changes_and_changes_back_is_sent_each_time(desk: Desk) -> None:
    desk.host.keep(Notebook).write("thing", NOW - 60)
    for ended in (None, 5.0, None, None):
        desk.rows = [Thing(job="1", ended=None if ended is None else Seconds(ended)), Thing(job="2")]
        sent = desk.run()
        desk.clock.now += 60
    assert sent == []
    desk.rows = [Thing(job="1", ended=Seconds(5.0)), Thing(job="2")]
    assert desk.run() == desk.rows[:1]


def test_single_run_looks_at_the_last_hour_and_tells_nobody(tmp_path: Path) -> None:
    desk = Desk(None)
    desk.run()
    assert desk.asked == [(NOW - 3600, NOW)]
    assert list(tmp_path.iterdir()) == []


def test_years_are_not_caught_up_with(desk: Desk) -> None:
    desk.host.keep(Notebook).write("thing", 1e6)
    desk.run()
    assert desk.asked[0][0] == NOW - 31 * 24 * HOUR


def test_clock_set_back_does_not_turn_the_window_around(desk: Desk) -> None:
    desk.host.keep(Notebook).write("thing", NOW + 10 * HOUR)
    desk.run()
    ((since, until),) = desk.asked
    assert since < until <= NOW


@pytest.mark.parametrize(
    "text", ["", "{", "5", '{"until": "x"}', '{"until": -1}', '{"until": 1e300}', '{"until": true}', "[]"]
)
def test_notebook_that_does_not_read_is_an_empty_one(desk: Desk, tmp_path: Path, text: str) -> None:
    (tmp_path / "read").mkdir()
    (tmp_path / "read" / "thing.json").write_text(text)
    desk.run()
    assert desk.asked[0][0] == NOW - 24 * HOUR
