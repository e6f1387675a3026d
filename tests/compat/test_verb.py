"""`jobsight sample --format sonar`, as people call it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compat import rules
from tests.compat.messages import RECORDED


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TZ": "UTC", "JOBSIGHT_HOME": str(home)}
    command = [sys.executable, "-m", "jobsight", "sample", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_this_machine_is_printed_as_a_sysinfo_and_a_sample(tmp_path: Path) -> None:
    done = run(tmp_path, "--format", "sonar")
    assert (done.returncode, done.stderr) == (0, "")
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert [document["data"]["type"] for document in documents] == ["sysinfo", "sample"]
    for document in documents:
        rules.check(document, document["data"]["type"])
    sample = documents[-1]["data"]["attributes"]
    assert len(sample["system"]["cpus"]) >= len(os.sched_getaffinity(0))
    pids = [process.get("pid") for job in sample["jobs"] for process in job["processes"]]
    assert os.getpid() in pids


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """What several collectors recorded of one machine, in one tree."""
    for name in ("process", "load", "memory"):
        shutil.copytree(RECORDED / name / "vm-cgroup-v1" / "root", tmp_path / "machine", dirs_exist_ok=True)
    return tmp_path / "machine"


def test_a_directory_tree_can_stand_for_the_machine(tmp_path: Path, machine: Path) -> None:
    done = run(tmp_path, "--format", "sonar", "--root", str(machine))
    (document,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert 4711 in {job["job"] for job in document["data"]["attributes"]["jobs"]}


def test_what_exists_and_cannot_be_read_is_an_error_document_and_an_exit_code(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cpuinfo").write_text("processor : 0\n")
    done = run(tmp_path, "--format", "sonar", "--root", str(tmp_path))
    assert done.returncode == 1
    document = json.loads(done.stdout)
    rules.check(document, "sysinfo")
    assert document["errors"][0]["detail"].startswith("hardware: FileNotFoundError")


def test_collectors_cannot_be_named_with_it(tmp_path: Path) -> None:
    done = run(tmp_path, "load", "--format", "sonar")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "jobsight: --format sonar chooses its collectors itself: name none\n"
