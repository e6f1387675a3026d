"""`jobsight store`: what it says and does, with and without a server that owns the store."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import duckdb
import pytest

from jobsight.analyse.keeper import open_store
from jobsight.store.embedded import Embedded
from jobsight.store.plan import DAY
from tests.store.contract import load_line, process_line

# Long ago: over for good whenever this runs.
START = 1_700_006_400.0  # 2023-11-15 00:00 UTC


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A day of one node, in tables."""
    store = open_store(str(tmp_path / "store"))
    store.append([line for i in range(24) for line in _pair(START + 3600 * i)]).result(10)
    store.digest()
    store.close()
    return str(tmp_path / "store")


def _pair(time: float) -> list[bytes]:
    uptime = time - START + 100
    messages = [load_line(time), process_line(time, started=90.0, cpu_user=uptime - 90)]
    return [json.dumps(json.loads(line) | {"uptime": uptime}).encode() for line in messages]


def run(path: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TZ": "UTC", "NO_COLOR": "1", "JOBSIGHT_HOME": os.path.join(path, "home")}
    command = [sys.executable, "-m", "jobsight", "store", arguments[0], "--store", path, *arguments[1:]]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_status_compact_export_and_retain_one_after_the_other(path: str, tmp_path: Path) -> None:
    done = run(path, "status")
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("load ")]
    assert line.split() == ["load", "24", "0", "0", "0", "B", "30", "d", "2023-11-15", "00:00", "2023-11-15", "23:00"]
    assert "1 job, from 2023-11-14 23:59 to 2023-11-15 23:00" in done.stdout

    assert run(path, "compact").stdout == "120 rows moved to files.\n"
    tables = {item["table"]: item for item in json.loads(run(path, "status", "--json").stdout)["tables"]}
    assert (tables["load"]["hot"], tables["load"]["cold"], tables["load"]["files"]) == (0, 24, 1)
    assert tables["load"]["size"] == os.path.getsize(os.path.join(path, "cold", "load", "2023", "11", "15.parquet"))
    assert (tables["load"]["oldest"], tables["load"]["newest"]) == (START, START + 23 * 3600)

    out = str(tmp_path / "out.parquet")
    done = run(path, "export", "load", out, "--since", "2023-11-15T12:00")
    assert (done.stdout, done.stderr) == (f"12 rows in {out}.\n", "")
    assert duckdb.execute(f"SELECT count(*), min(time) FROM '{out}'").fetchall() == [(12, START + 12 * 3600)]

    assert run(path, "retain", "--table", "load").stdout == "24 rows dropped.\n"
    assert run(path, "retain", "--keep", "36500d").stdout == "0 rows dropped.\n"
    assert run(path, "retain", "--jobs", "52w").stdout == "96 rows dropped, and 1 job.\n"
    assert json.loads(run(path, "status", "--json").stdout)["jobs"] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["retain", "--table", "weather"], 2, "no table 'weather'; there are agent"),
        (["export", "weather", "x.parquet"], 1, "no table 'weather'; there are agent"),
        (["export", "load", "/nonexistent/x.parquet"], 1, "/nonexistent/x.parquet was not written"),
        (["export", "load", "x.parquet", "--since", "someday"], 2, "expected a time such as 7d"),
    ],
)
def test_a_mistake_is_one_sentence_and_an_exit_code(
    path: str, arguments: list[str], code: int, sentence: str
) -> None:
    done = run(path, *arguments)
    assert done.returncode == code
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_store_that_is_not_there_says_how_to_begin(tmp_path: Path) -> None:
    done = run(str(tmp_path / "nothing"), "status")
    assert done.returncode == 1
    assert "start with `jobsight up`" in done.stderr


@pytest.fixture
def owned(path: str) -> Iterator[Embedded]:
    """A store in use, and something that answers as its server does."""
    store = open_store(path)

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/api/v1/store" else 404)
            self.end_headers()
            self.wfile.write(json.dumps(store.status().plain()).encode())

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    Path(path, "server.json").write_text(json.dumps({"url": url, "pid": os.getpid()}))
    yield store
    server.shutdown()
    thread.join()
    server.server_close()
    store.close()


def test_status_is_the_same_through_the_server(owned: Embedded, path: str) -> None:
    owned.compact(START + 2 * DAY)
    through = run(path, "status", "--csv")
    assert (through.returncode, through.stderr) == (0, "")
    assert "load,0,24,1," in through.stdout


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["compact"], "which does it by itself"),
        (["retain"], "which does it by itself"),
        (["export", "load", "x.parquet"], "stop it first"),
    ],
)
@pytest.mark.usefixtures("owned")
def test_what_needs_the_store_to_itself_names_who_has_it(path: str, arguments: list[str], why: str) -> None:
    done = run(path, *arguments)
    assert done.returncode == 1
    assert done.stderr == f"jobsight: the store belongs to the server (process {os.getpid()}), {why}\n"


def test_recount_counts_again_and_says_so(path: str) -> None:
    before = run(path, "export", "usage", os.path.join(path, "before.parquet")).returncode
    done = run(path, "recount")
    assert (before, done.returncode, done.stdout, done.stderr) == (0, 0, "1 job on 1 node counted again.\n", "")
    assert run(path, "recount", "--job", "100").stdout == "1 job on 1 node counted again.\n"
    assert run(path, "recount", "--job", "4711").stderr == "jobsight: no job 4711 is known\n"
    assert run(path, "recount", "--since", "someday").returncode == 2
    run(path, "export", "usage", os.path.join(path, "after.parquet"))
    rows = [
        duckdb.execute(f"SELECT * FROM '{path}/{name}.parquet' ORDER BY ALL").fetchall()
        for name in ("before", "after")
    ]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 24


def test_recount_names_what_it_cannot_count_again(path: str) -> None:
    assert run(path, "retain", "--keep", "1d", "--table", "process").returncode == 0
    said = run(path, "recount").stdout
    assert said.splitlines()[0] == "0 jobs on 1 node counted again."
    assert said.splitlines()[1].startswith(
        "1 left as they were, because rows they are made of are gone: fox.session."
    )
