"""Every finding by its fixtures: what it is (yes), what it is not (no), and where the border runs (edge).

A file is one scene, or a list of them, each with the subjects that are `found`; subjects are what people call them.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from jobsight import catalogue
from jobsight.analyse.finding import JOB
from jobsight.analyse.judge import judge
from jobsight.analyse.thresholds import thresholds
from tests.analyse.findings.scenes import scene

HERE = Path(__file__).parent
KINDS = ("yes", "no", "edge")


def cases() -> list[Any]:
    found = []
    for code in catalogue.finding_names():
        for kind in KINDS:
            path = HERE / code / f"{kind}.json"
            given = json.loads(path.read_text()) if path.exists() else []
            for turn, one in enumerate(given if isinstance(given, list) else [given]):
                found.append(pytest.param(code, one, id=f"{code}-{kind}-{turn}"))
    return found


@pytest.mark.parametrize("code", catalogue.finding_names())
def test_every_finding_has_a_yes_a_no_and_an_edge(code: str) -> None:
    assert all((HERE / code / f"{kind}.json").exists() for kind in KINDS)
    told = {kind: json.loads((HERE / code / f"{kind}.json").read_text()) for kind in KINDS}
    scenes = {kind: some if isinstance(some, list) else [some] for kind, some in told.items()}
    assert all(one["found"] for one in scenes["yes"])
    assert not any(one["found"] for one in scenes["no"])
    # On both sides of the border.
    assert {bool(one["found"]) for one in scenes["edge"]} == {True, False}


@pytest.mark.parametrize(("code", "given"), cases())
def test_a_finding_says_what_its_fixture_says(code: str, given: dict[str, Any]) -> None:
    limits = thresholds({code: given.get("limits", {})})
    found = judge(scene(given), limits, [code])
    assert sorted(one.number or one.owner or one.subject for one in found) == sorted(given["found"])
    for one in found:
        assert one.sentence.endswith(".")
        assert one.figures
        assert one.end >= one.begin
        assert one.confidence in ("high", "medium", "low")
        if "sentence" in given:
            assert one.sentence == given["sentence"]
        for kind in ("core_hours", "gpu_hours", "gib_hours"):
            if kind in given:
                assert getattr(one, kind) == pytest.approx(given[kind])


@pytest.mark.parametrize("code", catalogue.finding_names())
def test_a_finding_that_is_switched_off_is_not_told(code: str) -> None:
    given = json.loads((HERE / code / "yes.json").read_text())
    first = given[0] if isinstance(given, list) else given
    assert judge(scene(first), thresholds({code: {**first.get("limits", {}), "enabled": False}}), [code]) == []
    assert judge(scene(first), thresholds({code: False}), [code]) == []


@pytest.mark.parametrize("code", catalogue.finding_names())
def test_a_finding_says_what_why_and_how_in_sentences(code: str) -> None:
    one = catalogue.finding(code)
    assert one.code == code
    assert one.why.endswith(".")
    assert one.how.endswith(".")
    assert one.of in (JOB, "user", "node")
    assert set(one.instead_of) <= set(catalogue.finding_names())
    assert one.limits.enabled


def test_nothing_is_found_about_a_healthy_job() -> None:
    assert judge(scene({"jobs": [{}]})) == []
