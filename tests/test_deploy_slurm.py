"""What we ship for the machine that asks Slurm."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from jobsight import catalogue
from jobsight.drivers.slurm import VARIABLES

DEPLOY = Path(__file__).parent.parent / "deploy"


def program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if found is None:
        assert os.environ.get("CI") != "true", f"{name} is missing"
        pytest.skip(f"{name.upper()} IS NOT HERE, so what it would check goes unchecked")
    return found


def test_systemd_understands_the_controllers_drop_in(tmp_path: Path) -> None:
    unit = (DEPLOY / "systemd" / "jobsight-agent.service").read_text()
    (tmp_path / "jobsight-agent.service").write_text(unit.replace("/opt/jobsight/bin/jobsight", "/bin/true"))
    folder = tmp_path / "jobsight-agent.service.d"
    folder.mkdir()
    shutil.copy(DEPLOY / "slurm" / "controller.conf", folder)
    verify = [program("systemd-analyze"), "verify", "--man=no", "--recursive-errors=no"]
    done = subprocess.run(
        [*verify, str(tmp_path / "jobsight-agent.service")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "controller.conf" not in done.stderr, done.stderr


def test_sudo_lets_the_agent_run_what_it_runs_and_keeps_what_it_says() -> None:
    text = (DEPLOY / "slurm" / "sudoers").read_text()
    (rule,) = re.findall(r"^jobsight ALL=\(slurm\) NOPASSWD: (.*)$", text, re.MULTILINE)
    allowed = {command.split()[0].rpartition("/")[2] for command in rule.split(", ")}
    used = {name for one in ("slurmjob", "slurmqueue", "slurmnode") for name in catalogue.collector(one).runs}
    assert allowed == used
    kept = re.findall(r'env_keep \+= "([^"]*)"', text)
    # Not SLURM_CONF: it names the libraries that are loaded, so it is the right to run anything as that user.
    assert [set(words.split()) for words in kept] == [set(VARIABLES)]
    assert "SETENV" not in text
