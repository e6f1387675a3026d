"""The table of yearly carbon intensities that comes with the program."""

import re

from jobsight.formats import owid


def test_every_line_is_a_country_with_a_year_and_a_believable_figure() -> None:
    found = owid.table()
    assert len(found) >= 40
    for zone, one in found.items():
        assert re.fullmatch(r"[A-Z]{2}|WORLD", zone), zone
        assert 2020 <= one.year <= 2030
        assert 10 <= one.factor <= 900


def test_a_country_is_found_by_its_letters_and_the_world_without() -> None:
    france, world = owid.yearly("fr"), owid.yearly("")
    assert france is not None
    assert world is not None
    assert france.country == "France"
    assert france.factor < world.factor


def test_a_country_that_is_not_listed_is_not_guessed() -> None:
    assert owid.yearly("ZZ") is None
