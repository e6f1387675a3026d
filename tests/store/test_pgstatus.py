"""`jobsight store` looks after a database too."""

import json
import time
from typing import Any

import pytest

from jobsight.analyse.keeper import open_database
from jobsight.cli.store import run
from jobsight.store.side import DAY
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414
from tests.store.contract import BOOT, load_line, process_line
from tests.store.test_postgres import url as url  # noqa: PLC0414


def fill(url: str, *times: float) -> None:
    store = open_database(url)
    store.append([line for at in times for line in (load_line(at), process_line(at))]).result(10)
    assert store.digest() == 2 * len(times)
    store.close()


def tables(url: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["status", "--store", url, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    return {**found, **{table["table"]: table for table in found["tables"]}}


def test_status_counts_rows_and_bytes_of_every_table(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    fill(url, BOOT, BOOT + 10)
    found = tables(url, capsys)
    assert (found["load"]["hot"], found["load"]["oldest"], found["load"]["newest"]) == (2, BOOT, BOOT + 10)
    assert (found["run"]["hot"], found["jobs"]) == (4, 1)
    assert found["load"]["size"] > found["disk"]["size"] > 0
    # The day's, perhaps the next one's, and the one for all that is far away.
    assert found["load"]["files"] in (2, 3)
    assert run(["status", "--store", url]) == 0
    assert "in database store" in capsys.readouterr().out


def test_retain_drops_days_of_the_tables_that_are_named(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    now = time.time()
    fill(url, now)
    store = open_database(url)
    store.append([load_line(now - 20 * DAY).replace(b'"uptime": -', b'"uptime": ')]).result(10)
    store.digest()
    store.close()
    before = tables(url, capsys)
    assert run(["retain", "--store", url, "--keep", "10d", "--table", "process"]) == 0
    assert tables(url, capsys)["load"]["hot"] == before["load"]["hot"]
    assert run(["retain", "--store", url, "--keep", "10d", "--table", "load"]) == 0
    assert capsys.readouterr().out == "1 row dropped.\n"
    after = tables(url, capsys)
    assert after["load"]["hot"] == before["load"]["hot"] - 1
    assert after["run"]["hot"] == before["run"]["hot"]
    assert run(["retain", "--store", url, "--table", "nonsense"]) == 2
    assert "no table 'nonsense'; there are " in capsys.readouterr().err


def test_jobs_are_dropped_when_it_is_asked_for(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    fill(url, time.time())
    assert run(["retain", "--store", url, "--jobs", "1d"]) == 0
    assert "and 0 jobs" in capsys.readouterr().out
    assert run(["retain", "--store", url, "--jobs", "0s"]) == 0
    assert "and 1 job." in capsys.readouterr().out
    assert tables(url, capsys)["jobs"] == 0


def test_what_a_server_does_by_itself_is_left_to_it(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    store = open_database(url)
    store.digest()
    for verb in ("retain", "compact"):
        assert run([verb, "--store", url]) == 1
        assert "which does it by itself" in capsys.readouterr().err
    assert run(["status", "--store", url]) == 0
    store.close()
    assert run(["compact", "--store", url]) == 0
    assert run(["export", "load", "x.parquet", "--store", url]) == 2
    assert "`jobsight store copy` makes one of a database" in capsys.readouterr().err
