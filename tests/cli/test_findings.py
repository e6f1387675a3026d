"""`jobsight findings`, on a store that nobody else has open and through the server that has."""

import csv
import io
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.keeper import open_store
from tests.cli import test_verbs
from tests.store.contract import _line

HOURS = 3
EVERY = 10
JOBS = {"11": ("ada", 0.4), "12": ("bob", 7.6), "13": ("bob", 0.3)}
"""By number: whose, and how many of eight cores it keeps busy."""


def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = test_verbs.run(*arguments)
    assert done.returncode == code, done.stderr
    return done


def filled(path: Path) -> str:
    """Three jobs of three hours, which ended a moment ago."""
    opened = open_store(str(path))
    end = time.time() - 60
    begin = end - HOURS * 3600
    lines, accounted = [], []
    for number, (owner, cores) in JOBS.items():
        node = f"n{number}"
        for turn in range(int(HOURS * 3600 / EVERY) + 1):
            past = turn * EVERY
            row = {
                "scheduler": "slurm", "job": number, "path": f"job_{number}", "cpu_time": cores * past, "cpus": 8,
                "memory_anon": 2**33, "memory_limit": 2**34, "processes": 9,
            }  # fmt: skip
            lines.append(_line("cgroup", begin + past, {name: [value] for name, value in row.items()}, node))
        told = {
            "scheduler": "slurm", "job": number, "owner": owner, "account": "physics", "state": "COMPLETED",
            "submit": begin - 5, "start": begin, "ended": end, "elapsed": end - begin, "cpus": 8, "node_count": 1,
            "time_limit": 4 * 3600.0, "nodes": node, "memory": 2**34, "unlimited": False, "name": "relax",
        }  # fmt: skip
        accounted.append(told)
    columns = {name: [told[name] for told in accounted] for name in accounted[0]}
    lines.append(_line("slurmjob", end + 1, columns, "head"))
    opened.append(lines).result(30)
    opened.digest()
    opened.close()
    return str(path)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return filled(tmp_path_factory.mktemp("findings") / "store")


def found(store: str, *more: str) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads(
        run("findings", "--json", "--user", "all", "--store", store, *more).stdout
    )
    return told


def test_what_was_found_is_listed_the_worst_first(store: str) -> None:
    shown = run("findings", "--user", "all", "--store", store).stdout.splitlines()
    assert [line.split()[0] for line in shown[1:]] == ["△", "△"]
    assert "It used 0.3 of 8 cores" in shown[1]
    assert "It used 0.4 of 8 cores" in shown[2]
    assert [one["owner"] for one in found(store, "--code", "idle_cores")] == ["bob", "ada"]
    assert [one["owner"] for one in found(store, "--node", "n11")] == ["ada"]
    assert found(store, "--account", "biology") == []


def test_findings_are_added_up_and_exported(store: str) -> None:
    groups = found(store, "--by", "user")
    assert [(group["name"], group["findings"]) for group in groups] == [("bob", 1), ("ada", 1)]
    assert groups[0]["core_hours"] == pytest.approx(7.7 * HOURS, rel=0.01)
    rows = list(csv.DictReader(io.StringIO(run("findings", "--csv", "--user", "all", "--store", store).stdout)))
    assert {row["owner"] for row in rows} == {"ada", "bob"}
    assert "idle cores" in run("findings", "--by", "account", "--user", "all", "--store", store).stdout


def test_a_mail_tells_a_user_of_their_own_and_how_to_mend_it(store: str) -> None:
    mail = run("findings", "--mail", "ada", "--store", store).stdout
    head, _, body = mail.partition("\n\n")
    assert head.splitlines()[0] == "To: ada"
    assert head.splitlines()[1].startswith("Subject: 1 finding about your jobs, ")
    assert "job 11: It used 0.4 of 8 cores" in body
    assert "Ask for as many cores as it uses" in " ".join(body.split())
    assert "bob" not in mail
    assert max(map(len, mail.splitlines())) <= 80
    assert run("findings", "--mail", "carol", "--store", store).stdout == "Nothing to tell carol.\n"
    ever = run("findings", "--mail", "ada", "--since", "9999999d", "--store", store).stdout
    assert "MIME-Version: 1.0" in ever.splitlines()
    assert " from 1970-01-01 to " in ever.replace("\n", " ")


def test_a_back_test_says_whom_a_threshold_would_tell_of_and_is_right(store: str, tmp_path: Path) -> None:
    asked = ("findings", "--back-test", "idle_cores.share=0.99", "--store", store)
    shown = run(*asked).stdout
    assert "3 findings about 2 users. As it is: 2 findings about 2 users." in shown
    assert "job 12" in shown
    counts = json.loads(run(*asked, "--json").stdout)["counts"]
    settings = tmp_path / "site.yaml"
    settings.write_text("findings: {idle_cores: {share: 0.99}}\n")
    then = found(store, "--settings", str(settings), "--code", "idle_cores")
    assert counts["findings_after"] == len(then) == 3
    assert counts["users_after"] == len({one["owner"] for one in then})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--back-test", "idle_cores.part=1"], "unknown key findings.idle_cores.part"),
        (["--back-test", "share=1"], "expected a threshold such as"),
        (["--since", "soonish"], "--since: "),
        (["--mail", "ada", "--acknowledge", "x"], "one at a time"),
        (["--mail", "ada, all@site"], "--mail: expected the name of a user"),
    ],
)
def test_wrong_use_is_one_sentence(store: str, arguments: list[str], said: str) -> None:
    done = run("findings", "--store", store, *arguments, code=2)
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_settings_with_an_unknown_threshold_are_refused(store: str, tmp_path: Path) -> None:
    settings = tmp_path / "site.yaml"
    settings.write_text("findings: {idle_cores: {shares: 0.3}}\n")
    assert (
        "findings.idle_cores.shares" in run("findings", "--store", store, "--settings", str(settings), code=2).stderr
    )


def test_what_is_acknowledged_is_remembered_and_left_out_of_mails(tmp_path: Path) -> None:
    store = filled(tmp_path / "store")
    number = next(one["id"] for one in found(store) if one["owner"] == "ada")
    done = run("findings", "--acknowledge", number, "--note", "a test run", "--store", store)
    assert done.stdout == f"{number} is acknowledged.\n"
    (one,) = found(store, "--state", "acknowledged")
    assert (one["id"], one["note"]) == (number, "a test run")
    assert run("findings", "--mail", "ada", "--store", store).stdout == "Nothing to tell ada.\n"
    assert "no finding" in run("findings", "--acknowledge", "0000000000", "--store", store, code=1).stderr


def test_a_job_is_told_what_was_found_about_it(store: str) -> None:
    shown = run("job", "11", "--store", store).stdout
    assert "Idle cores: It used 0.4 of 8 cores" in shown
    assert "Idle cores" not in run("job", "12", "--store", store).stdout


def test_the_server_tells_the_same_once_it_has_looked(tmp_path: Path, serve: Callable[..., Any]) -> None:
    from jobsight.analyse.watch import Watch

    store = filled(tmp_path / "store")
    alone = found(store)
    opened = open_store(store)
    Watch({}).look(opened, time.time())
    opened.close()
    serve()
    told = found(store)
    assert {one["id"] for one in told} == {one["id"] for one in alone}
    number = told[0]["id"]
    assert run("findings", "--acknowledge", number, "--store", store).stdout == f"{number} is acknowledged.\n"
    assert [one["id"] for one in found(store, "--state", "acknowledged")] == [number]
    tested = run("findings", "--back-test", "idle_cores.share=0.99", "--store", store).stdout
    assert "3 findings about 2 users." in tested
