"""The files we ship to sites: systemd takes the units, the agent takes the settings."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from jobsight.settings import parse

SYSTEMD = Path(__file__).parent.parent / "deploy" / "systemd"
UNITS = sorted(SYSTEMD.glob("*.service"))
CAPABILITIES = sorted((SYSTEMD / "capabilities").glob("*.conf"))
# systemd's own measure of what a broken service could reach: 0 nothing, 100 everything.
EXPOSURE = 25


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    if not shutil.which("systemd-analyze"):
        assert os.environ.get("CI") != "true", "systemd-analyze is missing"
        pytest.skip("SYSTEMD-ANALYZE IS NOT HERE, so the units go unchecked")
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units, with a program that is there."""
    for unit in UNITS:
        text = unit.read_text().replace("/opt/jobsight/bin/jobsight", "/bin/true")
        (tmp_path / unit.name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_understands_every_line(units: Path, unit: Path) -> None:
    checked = analyze("verify", "--man=no", "--recursive-errors=no", str(units / unit.name))
    assert checked.returncode == 0, checked.stderr
    # What it does not know it only mentions.
    assert unit.name not in checked.stderr, checked.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_service_that_is_broken_into_can_reach_little(units: Path, unit: Path) -> None:
    checked = analyze("security", "--offline=true", f"--threshold={EXPOSURE}", str(units / unit.name))
    assert checked.returncode == 0, checked.stdout[-600:]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_no_unit_has_a_capability_unless_one_is_asked_for(unit: Path) -> None:
    assert re.findall(r"^(?:CapabilityBoundingSet|AmbientCapabilities)=(.*)$", unit.read_text(), re.MULTILINE) == [
        "",
        "",
    ]


@pytest.mark.parametrize("drop_in", CAPABILITIES, ids=lambda path: path.name)
def test_each_drop_in_adds_capabilities_and_nothing_else(drop_in: Path) -> None:
    settings = [line for line in drop_in.read_text().splitlines() if line and not line.startswith("#")]
    assert settings[0] == "[Service]"
    found = re.findall(r"^(?:CapabilityBoundingSet|AmbientCapabilities)=(.*)$", drop_in.read_text(), re.MULTILINE)
    assert len(found) == 2 == len(settings) - 1
    assert len(set(found)) == 1
    assert re.fullmatch(r"CAP_[A-Z_]+( CAP_[A-Z_]+)*", found[0])


def test_agent_takes_the_shipped_settings() -> None:
    settings = parse((SYSTEMD / "agent.yaml").read_text(), "agent.yaml")
    plans = {plan.name: plan for plan in settings.collect}
    assert plans["process"].options.exclude_uids == ("0-999",)
    assert [sink.name for sink in settings.sinks] == ["http"]


def test_nothing_the_agent_watches_is_hidden_from_it() -> None:
    text = "\n".join(
        line for line in (SYSTEMD / "jobsight-agent.service").read_text().splitlines() if not line.startswith("#")
    )
    for hides in ("ProtectProc", "PrivateDevices", "PrivateUsers", "PrivateTmp", "ProcSubset", "ProtectHome=yes"):
        assert hides not in text
