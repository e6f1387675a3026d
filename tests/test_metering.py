"""Settings of energy: what cannot be is said when they are read."""

from typing import Any

import pytest

from jobsight.metering import Model, named
from jobsight.settings import SettingsError, from_values


def test_whole_numbers_and_patterns_are_taken() -> None:
    given = {
        "pue": 1.3, "price": 1, "currency": "NOK", "baseline": {"c*": 120, "*": 90.5},
        "model": {"old-*": {"idle": 80, "most": 300}},
    }  # fmt: skip
    made = from_values({"energy": given}, only=("memory",)).energy
    assert made.price == 1.0
    assert named(made.baseline, "c1-2") == 120.0
    assert named(made.baseline, "gpu-1") == 90.5
    assert named(made.model, "old-7") == Model(80.0, 300.0)
    assert named(made.model, "new-7") is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"method": "guess"}, "energy: method: no 'guess'; there are activity, cpu_time"),
        ({"pue": 0.9}, "energy: pue: expected 1 to 10"),
        ({"baseline": {"c*": 0}}, "energy: baseline.c"),
        ({"limit": {"c*": 10**6}}, "energy: limit.c"),
        ({"model": {"c*": {"idle": 300, "most": 80}}}, "energy: model.c"),
        ({"model": {"c*": {"idle": 300}}}, "energy.model.c.*most is needed"),
        ({"constant": -1}, "energy: constant"),
        ({"price": 0.1, "price_file": "/p"}, "not by both"),
        ({"country": "France"}, "energy: country: expected two letters, got 'France'"),
        ({"provider": "RTE"}, "energy: provider: no 'RTE'; there are rte, emaps, owid, constant"),
        ({"price": float("nan")}, "energy: price"),
        ({"price": "cheap"}, "energy.price: expected a number"),
        ({"prise": 1}, "unknown key energy.prise"),
    ],
)
def test_what_cannot_be_is_one_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said.replace("**", "*")):
        from_values({"energy": given}, only=("memory",))
