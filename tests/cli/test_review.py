"""`jobsight load --quarantine`: directly, through the server, and while another does it."""

import json
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import psycopg
import pytest

from jobsight import files
from jobsight.analyse.keeper import open_database, open_store
from jobsight.cli.main import main
from jobsight.ingest.accept import Refused
from jobsight.ingest.quarantine import Quarantine
from tests.conftest import Program, wait_until
from tests.integration.postgres import Cluster
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414
from tests.store.contract import BOOT, load_line


def refused(store: Path, *lines: bytes) -> None:
    Quarantine(str(store / "quarantine")).keep([Refused(line, "$", "an older version") for line in lines])


def again(store: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(["load", "--store", str(store), "--quarantine"])
    return code, *capsys.readouterr()


def times(store: Path) -> list[float]:
    opened = open_store(str(store))
    try:
        opened.digest()
        return [row[0] for row in opened.query("SELECT time FROM load ORDER BY time")]
    finally:
        opened.close()


def test_what_is_acceptable_now_is_loaded_and_the_rest_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(tmp_path, b"no message", load_line(BOOT + 1))
    assert again(tmp_path, capsys)[:2] == (1, "1 message loaded, 1 still refused\n")
    assert times(tmp_path) == [BOOT + 1]
    assert again(tmp_path, capsys)[:2] == (1, "0 messages loaded, 1 still refused\n")


def test_a_server_that_owns_the_store_takes_it(
    serve: Callable[..., tuple[Program, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, url = serve()
    store = tmp_path / "store"
    (store / "log" / "00000900.log.failed").write_bytes(b"")
    refused(store, load_line(BOOT + 1), b"no message")
    assert again(store, capsys)[:2] == (1, "1 message loaded, 1 still refused\n")

    def stored() -> bool:
        with urlopen(f"{url}/api/v1/store", timeout=10) as answer:
            tables = {table["table"]: table["hot"] for table in json.load(answer)["tables"]}
        return bool(tables["load"])

    wait_until(stored, what="the server has digested it")
    program.stop()
    assert times(store) == [BOOT + 1]


def test_two_at_a_time_do_not_get_in_each_others_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(tmp_path, load_line(BOOT + 1))
    with files.Lock(str(tmp_path / "review.lock")):
        code, _, said = again(tmp_path, capsys)
    assert code == 1
    assert "somebody else looks at the quarantine" in said
    assert again(tmp_path, capsys)[:2] == (0, "1 message loaded, 0 still refused\n")


@pytest.mark.parametrize("arguments", [[], ["--quarantine", "/tmp"], ["--quarantine", "--dry-run"]])
def test_files_or_the_quarantine_must_be_named(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", *arguments]) == 2
    assert "either files to load or --quarantine" in capsys.readouterr().err


@pytest.mark.slow
def test_a_database_tries_what_it_set_aside_and_takes_what_was_refused(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBSIGHT_HOME", str(tmp_path))
    url = cluster.database()
    store = open_database(url)
    store.append([load_line(BOOT + 1)]).result(10)
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE inbox SET trouble = 'an older version'")
    assert store.digest() == 0
    store.close()
    refused(tmp_path / "store", load_line(BOOT + 2), b"no message")
    code = main(["load", "--store", url, "--quarantine"])
    told = "1 message loaded, 1 in the database's inbox tried again, 1 still refused\n"
    assert (code, capsys.readouterr().out) == (1, told)
    store = open_database(url)
    assert store.query("SELECT time FROM load ORDER BY time") == [(BOOT + 1,), (BOOT + 2,)]
    store.close()


@pytest.mark.slow
def test_files_are_loaded_into_a_database_once(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBSIGHT_HOME", str(tmp_path))
    url = cluster.database()
    (tmp_path / "some.jsonl").write_bytes(load_line(BOOT + 1) + b"\n" + load_line(BOOT + 2) + b"\n")
    for said in ("1 file: 2 messages handed over, 0 refused", "0 files (1 more unchanged)"):
        assert main(["load", "--store", url, str(tmp_path / "some.jsonl")]) == 0
        assert capsys.readouterr().out.startswith(said)
    store = open_database(url)
    assert store.query("SELECT count(*) FROM load") == [(2,)]
    store.close()
