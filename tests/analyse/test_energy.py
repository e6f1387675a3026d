"""Energy by hour, node and job in either engine: it adds up, it can be made again, and says how good it is."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from jobsight.analyse.consumption import Amount, Consumption, sentence
from jobsight.analyse.keeper import open_database, open_store
from jobsight.analyse.takings import Asked
from jobsight.analyse.tending import settle
from jobsight.metering import USUAL, Energy
from jobsight.store.protocol import JobQuery, Store
from tests.analyse.energyhistory import (
    BEGIN,
    CARD_BUSY,
    CORE,
    CORES,
    CPUS,
    END,
    HOUR,
    IDLE,
    START,
    UNTIL,
    card,
    factor,
    lines,
    load,
    node,
)
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414
from tests.store.contract import _line
from tests.store.test_postgres import url as url  # noqa: PLC0414

NOW = UNTIL + 2 * HOUR
WORK = CORE * CORES * (END - BEGIN)
OWN = WORK + CARD_BUSY * (END - BEGIN)
# Without a control group the whole machine is the job's.
FULL = OWN + IDLE * (END - BEGIN)
ALL = "SELECT * FROM energy ORDER BY time, part, job_key, source"


@pytest.fixture(params=["embedded", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    place = request.getfixturevalue("url") if request.param == "postgres" else ""
    opened: Any = open_database(place) if place else open_store(str(tmp_path / "store"))
    yield opened
    opened.close()


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(str(tmp_path / "store"))
    yield opened
    opened.close()


def job(store: Store, now: float = NOW, options: Energy = USUAL) -> Amount:
    (document,) = store.jobs(JobQuery(id="7"), now)
    found = Consumption(store, options).of_job(document, now)
    assert found is not None
    return found


def residual(store: Store) -> float:
    rows = store.query("SELECT time, sum(energy), sum(energy_full), sum(whole) FROM energy GROUP BY time")
    return max(abs(float(value) / float(whole) - 1.0) for _, *sums, whole in rows for value in sums)


def test_a_job_has_what_its_work_added_and_its_part_of_what_the_node_takes_anyway(store: Store) -> None:
    load(store, lines())
    settle(store, NOW)
    assert residual(store) <= 1e-9
    (whole,) = store.query("SELECT sum(whole), min(grade), max(source) FROM energy WHERE part = 'idle'")
    assert whole == (pytest.approx(node(UNTIL)), "A", "ipmi")
    took = job(store)
    assert took.energy == pytest.approx(OWN, rel=1e-6)
    assert took.energy_full == pytest.approx(FULL, rel=1e-6)
    assert took.energy_cards == pytest.approx(CARD_BUSY * (END - BEGIN), rel=1e-6)
    assert (took.grade, took.sources, took.idle_known, took.approximate) == ("A", ["ipmi"], True, False)
    assert took.coverage == pytest.approx(1.0)
    assert took.unsure == pytest.approx(0.0, abs=1e-9)
    ((baseline,),) = store.query("SELECT max(baseline) FROM energy WHERE part = 'idle'")
    assert baseline == pytest.approx(IDLE)


def test_made_again_it_is_the_same_and_counts_once(store: Store) -> None:
    load(store, lines())
    settle(store, NOW)
    first = store.query(ALL)
    with store.still():
        store.mark("due", [("fox", "", "", START + HOUR, "recount")])
    settle(store, NOW)
    again = store.query(ALL)
    assert len(again) == len(first)
    assert sum(row[-9] for row in again) == pytest.approx(sum(row[-9] for row in first))
    assert residual(store) <= 1e-9


def test_hours_that_are_not_made_yet_are_told_by_the_same_reckoning(store: Store) -> None:
    load(store, lines())
    assert store.query("SELECT count(*) FROM energy") == [(0,)]
    before = job(store, UNTIL + 1)
    assert before.waiting == 0
    settle(store, NOW)
    after = job(store)
    assert store.query("SELECT count(*) > 0 FROM energy") == [(True,)]
    assert before.energy == pytest.approx(after.energy, rel=1e-6)
    assert before.energy_full == pytest.approx(after.energy_full, rel=1e-6)


def test_what_comes_late_makes_its_hours_again(embedded: Store) -> None:
    def late(collector: str, time: float) -> bool:
        return collector == "ipmi" and START + 2400 < time < START + 3400

    load(embedded, lines(lambda collector, time: not late(collector, time)))
    settle(embedded, NOW)
    missing = job(embedded)
    assert missing.coverage is not None
    assert missing.unsure is not None
    load(embedded, lines(late))
    settle(embedded, NOW)
    whole = job(embedded)
    assert whole.energy == pytest.approx(OWN, rel=1e-6)
    assert whole.unsure == pytest.approx(0.0, abs=1e-9)
    assert residual(embedded) <= 1e-9


def test_a_reading_after_an_hour_that_is_made_completes_it(embedded: Store) -> None:
    load(embedded, lines(lambda name, time: name in ("hardware", "ipmi") and time < START + HOUR))
    settle(embedded, NOW)
    load(embedded, lines(lambda name, time: name in ("hardware", "ipmi") and time > START + HOUR))
    settle(embedded, NOW)
    ((whole, covered),) = embedded.query("SELECT sum(whole), sum(covered) FROM energy WHERE part = 'idle'")
    assert whole == pytest.approx(node(UNTIL), rel=1e-6)
    assert covered == pytest.approx(UNTIL - START)


def test_missing_readings_are_said_and_not_filled(embedded: Store) -> None:
    """The meter is silent for twenty minutes of the job, and so is the card."""
    dark = (START + 2400, START + 3600)
    load(embedded, lines(lambda name, time: name not in ("ipmi", "gpu") or not dark[0] < time < dark[1]))
    settle(embedded, NOW)
    took = job(embedded)
    assert residual(embedded) <= 1e-9
    assert took.coverage is not None
    assert took.coverage < 0.75
    assert took.unsure is not None
    assert took.unsure > 0.3
    # What it may be holds what it was.
    assert took.energy_full * (1 + took.unsure) >= FULL * 0.99
    assert took.energy_full < FULL


def test_time_in_which_a_node_idled_and_nobody_measured_is_said_too(embedded: Store) -> None:
    """Nothing runs; after half an hour only the count of CPU time goes on."""
    told = lines(lambda name, time: name in ("hardware", "ipmi") and time <= BEGIN)
    names = ("user_time", "nice_time", "system_time", "idle_time", "iowait_time", "interrupt_time", "stolen_time")
    for turn in range(61):
        row = {"cpu": [0]} | {name: [1.0 * turn] for name in names}
        told.append(_line("cpu", START + turn * 60.0, row, "n1"))
    load(embedded, told)
    settle(embedded, NOW)
    (one,) = Consumption(embedded).listing("node", Asked(START, START + HOUR), NOW)
    assert one.energy_full == pytest.approx(node(BEGIN), rel=1e-6)
    assert one.coverage == pytest.approx(0.5)
    assert one.unsure == pytest.approx(1.0)
    assert residual(embedded) <= 1e-9


def test_without_a_meter_the_cards_are_known_and_nothing_is_made_up(embedded: Store) -> None:
    load(embedded, lines(lambda name, _: name != "ipmi"))
    settle(embedded, NOW)
    took = job(embedded)
    assert took.energy == pytest.approx(CARD_BUSY * (END - BEGIN), rel=1e-6)
    assert (took.grade, took.sources) == ("B", ["gpu"])
    assert residual(embedded) <= 1e-9
    ((whole,),) = embedded.query("SELECT sum(whole) FROM energy")
    assert whole == pytest.approx(card(UNTIL), rel=1e-6)


def test_a_model_is_used_only_where_it_is_set_and_is_graded_so(embedded: Store) -> None:
    from jobsight.metering import Model

    load(embedded, lines(lambda name, _: name not in ("ipmi", "gpu")))
    settle(embedded, NOW)
    assert embedded.query("SELECT count(*) FROM energy") == [(0,)]
    modelled = Energy(model={"n*": Model(IDLE, IDLE + CPUS * CORE)})
    with embedded.still():
        embedded.mark("due", [("fox", "", "", START + turn * HOUR, "recount") for turn in range(3)])
    settle(embedded, NOW, energy=modelled)
    took = job(embedded, options=modelled)
    assert (took.grade, took.sources) == ("D", ["model"])
    assert took.energy == pytest.approx(WORK, rel=1e-6)


def test_carbon_is_the_sum_over_time_of_energy_times_the_factor_of_then(embedded: Store) -> None:
    options = Energy(pue=1.5, price=0.2, currency="NOK")
    load(embedded, [*lines(), factor(START, 100.0), factor(START + HOUR, 40.0)])
    settle(embedded, NOW, energy=options)
    took = job(embedded, options=options)
    half = FULL / 2 / 3.6e6
    assert took.emissions == pytest.approx(1.5 * half * (100.0 + 40.0), rel=1e-6)
    assert took.factors == ["rte FR"]
    assert took.cost == pytest.approx(1.5 * 0.2 * FULL / 3.6e6, rel=1e-6)
    assert took.currency == "NOK"
    assert took.energy_building == pytest.approx(1.5 * FULL, rel=1e-6)
    assert "NOK" in sentence({name: getattr(took, name) for name in took.__struct_fields__})


def test_money_of_two_currencies_is_not_added_up(embedded: Store) -> None:
    load(embedded, lines())
    settle(embedded, NOW, energy=Energy(price=0.2, currency="NOK"))
    with embedded.still():
        embedded.mark("due", [("fox", "", "", START + HOUR, "recount")])
    settle(embedded, NOW, energy=Energy(price=0.02, currency="EUR"))
    took = job(embedded)
    assert (took.cost, took.currency) == (None, None)
    assert took.energy_full == pytest.approx(FULL, rel=1e-6)


def test_cards_beside_a_meter_that_does_not_see_them_are_counted_for_the_time_it_tells(embedded: Store) -> None:
    """Meter and card fall silent together, two minutes into a step of five."""
    last = BEGIN - 180
    load(embedded, lines(lambda name, time: name in ("hardware", "ipmi", "gpu") and time <= last))
    settle(embedded, NOW, energy=Energy(cards_in_meter=False))
    ((whole,),) = embedded.query("SELECT sum(whole) FROM energy")
    assert whole == pytest.approx(node(last) + card(last), rel=1e-6)


def test_lists_add_up_by_whatever_they_are_listed(store: Store) -> None:
    load(store, lines())
    settle(store, NOW)
    asked = Asked(START, NOW)
    listed: Callable[[str], dict[str, Amount]] = lambda by: {  # noqa: E731
        one.name: one for one in Consumption(store).listing(by, asked, NOW)
    }
    assert set(listed("user")) == {"alice", "(system)", "(idle)"}
    assert set(listed("program")) == {"train", "(system)", "(idle)"}
    assert set(listed("node")) == {"n1"}
    for by in ("user", "account", "program", "partition", "node", "part", "job"):
        assert sum(one.energy_full for one in listed(by).values()) == pytest.approx(node(UNTIL), rel=1e-6)
    looked_up = Mock(wraps=store.jobs)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store, "jobs", looked_up)
        one = Consumption(store)
        one.listing("user", asked, NOW)
        one.listing("part", asked, NOW)
        one.timeline("user", asked, NOW, HOUR)
    # There may be a million: once, and not for what needs none.
    assert looked_up.call_count == 1
    steps = Consumption(store).timeline("user", asked, NOW, HOUR)
    assert sum(steps["alice"].values()) == pytest.approx(FULL, rel=1e-6)
    assert set(steps["alice"]) == {START, START + HOUR}


def test_rows_that_can_no_longer_be_made_stay(embedded: Store) -> None:
    load(embedded, lines())
    settle(embedded, NOW)
    before = job(embedded)
    embedded.forget(UNTIL + HOUR, ["ipmi", "gpu", "power", "cpu"])
    with embedded.still():
        embedded.mark("due", [("fox", "", "", START + HOUR, "recount")])
    settle(embedded, NOW)
    assert job(embedded).energy == before.energy


def test_hours_in_which_nothing_ran_are_idle_and_not_forgotten(embedded: Store) -> None:
    load(embedded, lines(lambda name, time: name in ("ipmi", "hardware") and time < BEGIN))
    settle(embedded, NOW)
    ((energy, whole),) = embedded.query("SELECT sum(energy), sum(whole) FROM energy WHERE part = 'idle'")
    assert energy == whole == pytest.approx(node(BEGIN - 60.0), rel=1e-6)
    assert embedded.query("SELECT count(*) FROM energy WHERE part = 'job'") == [(0,)]
