"""Factors and prices over time: the most immediate word counts, and whose it was is kept."""

from pathlib import Path

import pytest

from jobsight.analyse.emissions import HOLDS, Factor, Factors, Prices, parse, prices, static
from jobsight.metering import Energy

ROWS = [
    ("fox", "rte", "FR", "now", 1000.0, 30.0),
    ("fox", "rte", "FR", "now", 4600.0, 50.0),
    ("fox", "owid", "FR", "2023", 1000.0, 56.0),
    ("fox", "constant", "WORLD", "", 1000.0, 475.0),
]


def test_the_factor_of_a_time_is_the_last_one_told_by_then() -> None:
    known = Factors(ROWS, Energy())
    assert known.at("fox", 1000.0) == Factor(30.0, "rte FR")
    assert known.at("fox", 4599.0) == Factor(30.0, "rte FR")
    assert known.at("fox", 4600.0) == Factor(50.0, "rte FR")


def test_one_that_is_too_old_gives_way_to_what_always_holds() -> None:
    known = Factors(ROWS[:2], Energy(country="FR"))
    assert known.at("fox", 4600.0 + HOLDS) == Factor(50.0, "rte FR")
    assert known.at("fox", 4601.0 + HOLDS) == Factor(56.0, "owid FR 2023")
    assert known.at("fox", 999.0).source == "owid FR 2023"


def test_a_cluster_without_its_own_takes_anothers_and_one_with_does_not() -> None:
    known = Factors([*ROWS, ("hare", "emaps", "DE", "now", 1000.0, 400.0)], Energy())
    assert known.at("hare", 2000.0) == Factor(400.0, "emaps DE")
    assert known.at("fox", 2000.0) == Factor(30.0, "rte FR")
    assert Factors(ROWS, Energy()).at("goat", 2000.0) == Factor(30.0, "rte FR")


def test_the_settings_choose_a_provider_and_a_constant() -> None:
    assert Factors(ROWS, Energy(provider="owid")).at("fox", 2000.0) == Factor(56.0, "owid FR 2023")
    assert Factors(ROWS[2:], Energy(constant=12.0)).at("fox", 2000.0) == Factor(12.0, "constant")


def test_what_always_holds_is_the_constant_the_country_or_the_world() -> None:
    assert static(Energy(constant=12.0, country="FR"))[0] == Factor(12.0, "constant")
    assert static(Energy(country="no"))[0].source == "owid NO 2023"
    assert static(Energy())[0].source == "owid WORLD 2023"
    assert static(Energy(country="ZZ"))[0] == Factor(475.0, "constant WORLD")


def test_prices_are_constant_or_change_with_time_or_are_not_known() -> None:
    assert Prices(Energy()).at(5.0) is None
    assert Prices(Energy(price=0.2)).at(5.0) == 0.2
    text = "# time\tprice\n1970-01-01T01:00\t0.10\n1970-01-01T02:00\t0.30\n"
    series = Prices(Energy(), text)
    assert [series.at(time) for time in (3599.0, 3600.0, 7199.0, 7200.0)] == [None, 0.1, 0.1, 0.3]


@pytest.mark.parametrize(
    "text", ["1970-01-02 0.1", "soon\t0.1", "1970-01-02\tcheap", "1970-01-02\tnan", "7d\t0.1", "now\t0.1"]
)
def test_a_line_that_is_no_price_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="line 1"):
        parse(text)


def test_a_file_that_cannot_be_read_is_said_and_nothing_has_a_price(tmp_path: Path) -> None:
    said: list[str] = []
    file = tmp_path / "prices.tsv"
    assert prices(Energy(price_file=str(file)), said.append).at(5.0) is None
    file.write_text("nonsense")
    assert prices(Energy(price_file=str(file)), said.append).at(5.0) is None
    assert len(said) == 2
    assert all("energy.price_file" in line for line in said)
    file.write_text("1970-01-02\t0.5\n")
    assert prices(Energy(price_file=str(file))).at(1e5) == 0.5
