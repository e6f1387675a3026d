"""The agent as a process: starts, samples, reloads, stops, and does not run twice."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Program, wait_until

pytestmark = pytest.mark.slow

Start = Callable[..., Program]


def settings(path: Path, every: str = "500ms", cluster: str = "fox") -> Path:
    file = path / "agent.yaml"
    file.write_text(
        f"cluster: {cluster}\nsinks: [directory: {{path: {path}/tree}}]\ncollect: {{load: {{every: {every}}}}}\n"
    )
    return file


def lines(path: Path) -> list[dict[str, object]]:
    return [
        json.loads(line) for file in (path / "tree").rglob("load-*.jsonl") for line in file.read_text().splitlines()
    ]


def test_it_samples_on_multiples_and_stops_on_sigterm(start: Start, tmp_path: Path) -> None:
    agent = start("agent", "--settings", str(settings(tmp_path)))
    wait_until(lambda: len(lines(tmp_path)) > 4)
    code, output = agent.stop()
    assert (code, output) == (0, "")
    seconds = [float(str(line["time"])[17:26]) for line in lines(tmp_path)][1:]
    assert min(s % 0.5 for s in seconds) < 0.1, "not one run near a multiple of half a second"


def test_sighup_reloads_and_bad_settings_keep_the_old_ones(start: Start, tmp_path: Path) -> None:
    file = settings(tmp_path)
    agent = start("agent", "--settings", str(file))
    wait_until(lambda: lines(tmp_path))
    settings(tmp_path, cluster="hare")
    agent.process.send_signal(signal.SIGHUP)
    wait_until(lambda: lines(tmp_path)[-1]["cluster"] == "hare")
    file.write_text("clutser: typo\n")
    agent.process.send_signal(signal.SIGHUP)
    count = len(lines(tmp_path))
    wait_until(lambda: len(lines(tmp_path)) > count + 3)
    assert lines(tmp_path)[-1]["cluster"] == "hare"
    code, output = agent.stop()
    assert code == 0
    assert "settings reloaded" in output
    assert "settings not reloaded" in output
    assert "unknown key clutser" in output


def test_a_second_agent_is_refused_with_a_sentence(start: Start, tmp_path: Path) -> None:
    first = start("agent", "--settings", str(settings(tmp_path)))
    wait_until(lambda: lines(tmp_path))
    code, output = start("agent", "--settings", str(settings(tmp_path))).finish()
    assert code == 1
    assert f".lock is held by process {first.process.pid}" in output
    first.stop()


def test_once_runs_every_collector_once(start: Start, tmp_path: Path) -> None:
    agent = start("agent", "--once", "--settings", str(settings(tmp_path)))
    assert agent.finish() == (0, "")
    names = {file.name.partition("-")[0] for file in (tmp_path / "tree").rglob("*.jsonl")}
    assert names >= {"cpu", "memory", "load", "process", "hardware", "agent"}
    assert len(lines(tmp_path)) == 1


def test_on_a_leash_it_ends_with_its_parent(tmp_path: Path) -> None:
    import subprocess
    import sys

    child = subprocess.Popen(
        [sys.executable, "-m", "jobsight", "agent", "--leash", "--settings", str(settings(tmp_path))],
        stdin=subprocess.PIPE,
        env={"JOBSIGHT_HOME": str(tmp_path / "home"), "PATH": ""},
    )
    wait_until(lambda: lines(tmp_path))
    assert child.poll() is None
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(20) == 0
