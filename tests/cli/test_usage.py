"""`jobsight usage` and `jobsight programs`: the same as the pages, at a terminal and in files."""

import csv
import io
import json
from pathlib import Path

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.analyse.tending import settle
from tests.analyse.estate import HOUR, Estate
from tests.cli.test_verbs import run

OCTOBER = ("--period", "2026-10")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("usage") / "store"
    opened, estate = open_store(str(path)), Estate(3)
    opened.append(estate.lines).result(30)
    opened.digest()
    settle(opened, estate.end + 2 * HOUR)
    opened.close()
    return str(path)


def test_usage_lists_parts_that_are_the_whole(store: str) -> None:
    rows = json.loads(run("usage", *OCTOBER, "--json", "--store", store).stdout)
    (whole,) = [row for row in rows if row["kind"] == "whole"]
    assert sum(row["used"] for row in rows if row["kind"] != "whole") == pytest.approx(whole["used"])
    shown = run("usage", *OCTOBER, "--store", store).stdout
    assert shown.splitlines()[0].split()[:2] == ["user", "used"]
    assert "all there was" in shown
    assert "was given to jobs" in shown


def test_usage_takes_every_dimension_and_form(store: str) -> None:
    text = run("usage", *OCTOBER, "--by", "weekday", "--csv", "--store", store).stdout
    assert [row["name"] for row in csv.DictReader(io.StringIO(text))][5:] == ["Saturday", "Sunday"]
    text = run("usage", *OCTOBER, "--by", "node", "--tsv", "--store", store).stdout
    assert {line.split("\t")[0] for line in text.splitlines()[1:]} == {"n1", "n2", "n3", "n4", "laptop"}
    assert "short" in run("usage", *OCTOBER, "--waits", "--store", store).stdout


def test_usage_of_one_user_is_set_against_the_whole(store: str) -> None:
    rows = json.loads(run("usage", *OCTOBER, "--user", "ada", "--by", "account", "--json", "--store", store).stdout)
    assert {row["kind"] for row in rows} >= {"part", "others", "idle", "whole"}


def test_programs_by_the_sites_own_map(store: str, tmp_path: Path) -> None:
    unmapped = run("programs", *OCTOBER, "--unmapped", "--tsv", "--store", store).stdout
    assert [line.split("\t")[0] for line in unmapped.splitlines()] == ["command", "own_code"]
    (tmp_path / "own.tsv").write_text("exact\town_code\tOur code\tours/solvers\n")
    settings = tmp_path / "settings.yaml"
    settings.write_text(
        f"programs: {{map: {tmp_path}/own.tsv}}\ntimezone: Europe/Oslo\nperiods: {{fall: 2026-10-01..2026-10-31}}\n"
    )
    rows = json.loads(
        run("programs", "--period", "fall", "--json", "--settings", str(settings), "--store", store).stdout
    )
    assert "Our code" in {row["program"] for row in rows}
    tagged = run(
        "programs", "--period", "fall", "--tag", "ours", "--settings", str(settings), "--store", store
    ).stdout
    assert "Our code" in tagged
    assert "VASP" not in tagged
    assert (
        "Every command"
        in run("programs", *OCTOBER, "--unmapped", "--settings", str(settings), "--store", store).stdout
    )


def test_a_bad_map_and_a_bad_zone_are_told_with_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "own.tsv").write_text("exact\tx\n")
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"programs: {{map: {tmp_path}/own.tsv}}\n")
    answer = run("programs", "--settings", str(settings))
    assert answer.returncode == 2
    assert "own.tsv, line 1: expected kind, command, program" in answer.stderr
    settings.write_text("timezone: Europe/Olso\n")
    answer = run("usage", "--settings", str(settings))
    assert answer.returncode == 2
    assert "expected a name such as Europe/Oslo" in answer.stderr


def test_a_command_line_can_be_tried() -> None:
    assert run("programs", "--try", "/opt/bin/vasp_std", "-n", "4").stdout.startswith("vasp_std: VASP (chemistry")
    assert run("programs", "--try", "mine").stdout == "mine: in no map\n"
