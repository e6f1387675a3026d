"""Two real users and an administrator, through the command line, the API and the pages of a real server."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jobsight.analyse.keeper import open_store
from tests.conftest import Program, free_port, wait_until
from tests.store.contract import BOOT, _line, process_line

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parent.parent.parent / "src"
# Numbers without a name: nobody on this machine is them. Collectors write such an owner as a number.
ALICE, BOB = 61001, 61002
# The whole of 127/8 is this machine; a proxy has an address of its own there.
PROXY = "127.0.0.9"
NEEDED = "import duckdb, fastapi, jinja2, msgspec, yaml"


def lacking(what: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}: what other users may see must be tested")
    pytest.skip(f"{what.upper()}: WHAT OTHER USERS MAY SEE GOES UNTESTED")


class Seat(NamedTuple):
    """A folder and a Python that anybody may use."""

    folder: Path
    python: str
    path: str

    def run(self, uid: int, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python, "-B", *arguments], user=uid, group=uid, extra_groups=[], cwd="/", check=False, text=True,
            capture_output=True, timeout=60,
            env={"PYTHONPATH": self.path, "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
        )  # fmt: skip

    def jobs(self, uid: int, *arguments: str) -> set[str]:
        done = self.run(uid, "-m", "jobsight", "jobs", "--user", "all", "--json", "--store", self.store, *arguments)
        assert done.returncode == 0, done.stderr
        return {job["id"] for job in json.loads(done.stdout)}

    @property
    def store(self) -> str:
        return str(self.folder / "store")


@pytest.fixture
def seat() -> Iterator[Seat]:
    if os.geteuid() != 0:
        lacking("not root, so nobody else can be tried")
    with tempfile.TemporaryDirectory(prefix="jobsight-viewers-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copytree(SOURCE, folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        for python, extra in ((sys.executable, ""), ("/usr/bin/python3", ":" + sysconfig.get_path("purelib"))):
            made = Seat(folder, python, f"{folder}/src{extra}")
            try:
                if made.run(ALICE, "-c", NEEDED).returncode == 0:
                    yield made
                    return
            except PermissionError:
                continue
        lacking("no Python that an ordinary user may run has what the server needs")


@pytest.fixture
def port(seat: Seat, start: Callable[..., Program]) -> int:
    """A server with a job of Alice's and two of Bob's."""
    now = time.time()
    store = open_store(seat.store)
    for number, (owner, account) in enumerate(((ALICE, "physics"), (BOB, "physics"), (BOB, "biology")), 1):
        told = {"scheduler": ["slurm"], "job": [str(number)], "source": ["prolog"], "account": [account]}
        for at in (now - 20, now - 10):
            store.append([
                _line("allocation", at, told, f"n{number}"),
                process_line(at, node=f"n{number}", scheduler="slurm", job=str(number), owner=str(owner),
                             command=f"work{number}", started=now - 60 - BOOT),
            ]).result(10)  # fmt: skip
    store.digest()
    store.close()
    chosen = free_port()
    settings = seat.folder / "serve.yaml"
    access = {"admins": ["carol"], "coordinators": {"biology": ["dave"]}, "trusted_proxies": [PROXY]}
    settings.write_text(
        json.dumps({"serve": {"listen": f"127.0.0.1:{chosen}", "access": access}, "store": {"path": seat.store}})
    )
    program = start("serve", "--settings", str(settings))

    def ready() -> bool:
        assert program.process.poll() is None, program.process.communicate()[0]
        try:
            return get(chosen, "/health")[0] == 200
        except OSError:
            return False

    wait_until(ready, what="the server answers")
    return chosen


def get(port: int, path: str, user: str = "", address: str = "127.0.0.1", **headers: str) -> tuple[int, str]:
    link = HTTPConnection("127.0.0.1", port, timeout=30, source_address=(address, 0))
    try:
        link.request("GET", path, headers=headers | ({"X-Grafana-User": user} if user else {}))
        answer = link.getresponse()
        return answer.status, answer.read().decode()
    finally:
        link.close()


def test_each_user_sees_their_own_on_the_command_line_and_root_sees_all(seat: Seat, port: int) -> None:
    assert port
    assert seat.jobs(ALICE) == {"1"}
    assert seat.jobs(BOB) == {"2", "3"}
    assert seat.jobs(ALICE, "--text", "work") == {"1"}
    assert seat.jobs(0) == {"1", "2", "3"}
    asked = ("-m", "jobsight", "job", "2", "--store", seat.store)
    assert "work2" in seat.run(BOB, *asked).stdout
    refused = seat.run(ALICE, *asked)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.replace("2", "9") == seat.run(ALICE, *asked[:3], "9", *asked[4:]).stderr.replace("2", "9")


def test_each_user_sees_their_own_through_the_api_and_the_pages(port: int) -> None:
    for user, seen in (
        (str(ALICE), {"1"}),
        (str(BOB), {"2", "3"}),
        ("carol", {"1", "2", "3"}),
        ("dave", {"3"}),
        ("eve", set()),
    ):
        status, text = get(port, "/api/v1/jobs", user, PROXY)
        assert (status, {job["id"] for job in json.loads(text)}) == (200, seen)
        for page in ("/", "/jobs"):
            status, text = get(port, page, user, PROXY)
            assert (status, set(re.findall(r"work(\d)", text))) == (200, seen)
        status, text = get(port, "/api/jobs", user, PROXY)
        own = {job["jobid"] for job in json.loads(text)["data"]}
        # An administrator is shown their own first.
        assert (status, own) == (200, set() if user == "carol" else seen)


def test_nobody_is_believed_who_is_no_proxy(port: int) -> None:
    for path in ("/", "/jobs", "/api/v1/jobs", "/api/jobs"):
        assert get(port, path)[0] == 401
        assert get(port, path, "carol")[0] == 401
        # A server may be told by such a header where a request comes from; ours is not.
        assert get(port, path, "carol", **{"X-Forwarded-For": PROXY})[0] == 401


def test_a_caller_on_the_socket_cannot_say_to_be_another(seat: Seat, port: int) -> None:
    assert port
    ask = (
        "import sys, urllib.request as u; from jobsight.show.peer import Way; "
        "r = u.Request('http://localhost/api/v1/jobs', headers={'X-Grafana-User': 'carol'}); "
        "sys.stdout.write(u.build_opener(Way(sys.argv[1])).open(r).read().decode())"
    )
    done = seat.run(ALICE, "-c", ask, f"{seat.store}/server.sock")
    assert {job["id"] for job in json.loads(done.stdout)} == {"1"}, done.stderr


def test_what_the_server_keeps_cannot_be_read_past_it(seat: Seat, port: int) -> None:
    assert port
    reads = "import sys; open(sys.argv[1], 'rb').read(1)"
    found = [path for path in Path(seat.store).rglob("*") if path.is_file() and path.name != "server.json"]
    assert {"small.sqlite", "hot.duckdb", "server.token"} <= {path.name for path in found}
    for path in found:
        assert "PermissionError" in seat.run(ALICE, "-c", reads, str(path)).stderr, path
    lists = seat.run(ALICE, "-c", "import os, sys; os.listdir(sys.argv[1])", seat.store)
    assert "PermissionError" in lists.stderr
    with sqlite3.connect(f"file:{seat.store}/small.sqlite?mode=ro", uri=True) as ours:
        count: Any = ours.execute("SELECT count(*) FROM job").fetchone()
    assert count == (3,)
