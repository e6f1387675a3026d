"""`jobsight energy`: by whom, of one job, in every format."""

import csv
import io
import json
from pathlib import Path

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.analyse.tending import settle
from tests.analyse.energyhistory import UNTIL, lines, load, node
from tests.cli.test_verbs import run

SINCE = "2026-11-01"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("energy") / "store"
    opened = open_store(str(path))
    load(opened, lines())
    settle(opened, UNTIL + 7200)
    opened.close()
    return str(path)


def test_the_table_has_grades_and_the_law(store: str) -> None:
    shown = run("energy", "--store", store, "--since", SINCE).stdout
    assert "alice" in shown
    assert "grade A (ipmi)" in shown
    assert " = 1.21 kWh measured" in shown


def test_values_are_in_base_units_in_every_format(store: str) -> None:
    told = json.loads(run("energy", "--store", store, "--since", SINCE, "--by", "node", "--json").stdout)
    assert [row["name"] for row in told] == ["n1"]
    assert told[0]["energy_full"] == pytest.approx(node(UNTIL), rel=1e-6)
    rows = list(csv.DictReader(io.StringIO(run("energy", "--store", store, "--since", SINCE, "--csv").stdout)))
    assert {row["name"] for row in rows} == {"alice", "(system)", "(idle)"}
    assert run("energy", "--store", store, "--since", SINCE, "--tsv").stdout.startswith("name\tjobs\tenergy\t")


def test_one_job_is_a_sentence_with_its_grade_and_its_factor(store: str) -> None:
    shown = run("energy", "--job", "7", "--store", store).stdout
    assert "by its own work" in shown
    assert "grade A (ipmi)" in shown
    assert "owid WORLD 2023" in shown
    assert "energy  " in run("job", "7", "--store", store).stdout
    assert "of CO₂e" in run("job", "7", "--rightsize", "--store", store).stdout


def test_what_cannot_be_asked_is_a_sentence(store: str) -> None:
    wrong = run("energy", "--store", store, "--since", "soon")
    assert wrong.returncode == 2
    assert "--since" in wrong.stderr
    backwards = run("energy", "--store", store, "--since", "1h", "--until", "2h")
    assert backwards.returncode == 1
    assert backwards.stderr == "jobsight: since must be before until\n"
    missing = run("energy", "--job", "99", "--store", store)
    assert missing.returncode == 1
    assert "no job 99" in missing.stderr


def test_hours_that_are_not_in_it_are_said_in_every_format(tmp_path: Path) -> None:
    opened = open_store(str(tmp_path / "store"))
    load(opened, lines())
    opened.close()
    for form in ("--csv", "--json"):
        shown = run("energy", "--store", str(tmp_path / "store"), "--since", SINCE, form)
        assert "of it still to be reckoned" in shown.stderr
    assert "still to be reckoned" in run("energy", "--store", str(tmp_path / "store"), "--since", SINCE).stdout
