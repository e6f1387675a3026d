"""`jobsight demo` as a newcomer starts it."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import wait_until

# All but the one that is down.
MOST = 7
SMALL = ("--nodes", "8", "--days", "0.05", "--every", "20", "--listen", "127.0.0.1:0")


def asked(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=10) as answer:
        return json.load(answer)


@pytest.mark.slow
def test_the_demo_shows_a_living_cluster_and_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "JOBSIGHT_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}
    running = subprocess.Popen(
        [sys.executable, "-m", "jobsight", "demo", *SMALL], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    try:
        told = running.stdout.readline()
        assert re.fullmatch(r"jobsight: 8 machines, \d+ jobs, \d+ messages in .*\n", told)
        found = re.search(r"http://127\.0\.0\.1:\d+", running.stdout.readline())
        assert found
        base = found[0]
        assert {node["name"] for node in asked(f"{base}/api/v1/nodes")} >= {"c1-1", "gpu-1", "int-1", "mgmt"}
        jobs = asked(f"{base}/api/v1/jobs?state=running")
        assert {job["scheduler"] for job in jobs} == {"slurm", "session"}
        # Of one that began since the last sample only the scheduler tells yet.
        sampled = [job for job in jobs if job["cpu_time_processes"] is not None]
        assert all(job["owner"] for job in jobs)
        assert all(job["command"] for job in sampled)
        assert len(sampled) > len(jobs) / 2
        before = time.time()
        wait_until(
            lambda: sum(node["seen"] > before for node in asked(f"{base}/api/v1/nodes")) >= MOST,
            60,
            "nodes that go on",
        )
    finally:
        running.send_signal(signal.SIGINT)
        code = running.wait(30)
        running.stdout.close()
    assert code == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--nodes", "3"), "--nodes: expected 8 to 2000, got 3"),
        (("--days", "0"), "--days: expected 0.05 to 366, got 0"),
    ],
)
def test_sizes_that_cannot_be_are_refused_in_a_sentence(
    arguments: tuple[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from jobsight.cli.main import main

    assert main(["demo", *arguments]) == 2
    assert capsys.readouterr().err == f"jobsight: {said}\n"


def test_a_home_that_holds_something_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from jobsight.cli.main import main

    kept = tmp_path / "kept"
    kept.write_text("mine")
    assert main(["demo", "--home", str(tmp_path), "--listen", "127.0.0.1:0"]) == 1
    assert "is not empty" in capsys.readouterr().err
    assert kept.read_text() == "mine"
