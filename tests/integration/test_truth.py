"""Numbers against a known truth: what a real workload used, as it says itself, and what the chain reports."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.conftest import Program, answers, free_port, wait_until

WORKLOAD = Path(__file__).parent / "workload.py"
CGROUP = Path("/sys/fs/cgroup")

pytestmark = pytest.mark.slow


@pytest.fixture
def url(start: Callable[..., Program]) -> str:
    """A whole jobsight on this machine, sampling every second."""
    port = free_port()
    start("up", "--listen", f"127.0.0.1:{port}", "--every", "1")
    address = f"http://127.0.0.1:{port}"
    wait_until(lambda: answers(f"{address}/api/nodes"), what="the server answers")
    return address


def get(url: str) -> Any:
    with urlopen(url, timeout=30) as answer:
        return json.load(answer)


class Work:
    """A running workload and what it says it used."""

    def __init__(self, path: Path, short: int = 0, enter: list[Path] | None = None) -> None:
        def join() -> None:
            for group in enter or []:
                (group / "cgroup.procs").write_text(str(os.getpid()))

        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(WORKLOAD), "3", "800", "100", str(short), str(path / "written")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=join,  # noqa: PLW1509
        )
        assert self.process.stdout is not None
        self.truth = json.loads(self.process.stdout.readline())
        self.done = time.time()

    @property
    def everyone(self) -> list[dict[str, Any]]:
        return [*self.truth["children"], self.truth["self"]]

    def end(self) -> None:
        self.process.communicate(timeout=30)


def job_after(url: str, number: str, instant: float, scheduler: str) -> dict[str, Any]:
    """The job once a sample taken after `instant` is in."""

    def seen() -> bool:
        found = [job for job in get(f"{url}/api/v1/jobs?text={number}") if job["id"] == number]
        return any(job["seen"] > instant + 1.5 and job["scheduler"] == scheduler for job in found)

    wait_until(seen, 60, f"job {number} is seen")
    key = next(job["key"] for job in get(f"{url}/api/v1/jobs?text={number}") if job["id"] == number)
    found: dict[str, Any] = get(f"{url}/api/job/{key}")
    return found


def check(profile: dict[str, Any], work: Work, cpu: float) -> None:
    job = profile["summary"]
    assert job["cpu_time"] == pytest.approx(cpu, rel=0.02)
    assert job["memory_peak"] == pytest.approx(sum(item["anon"] for item in work.everyone), rel=0.05)
    assert job["memory_peak"] > 800 * 2**20
    assert {item["pid"] for item in work.everyone} <= {process["pid"] for process in profile["processes"]}
    by_pid = {process["pid"]: process for process in profile["processes"]}
    for item in work.everyone:
        assert by_pid[item["pid"]]["cpu_time"] == pytest.approx(item["cpu"], rel=0.02, abs=0.05)


def test_a_session_job_used_what_its_processes_say(url: str, tmp_path: Path) -> None:
    work = Work(tmp_path)
    profile = job_after(url, str(work.process.pid), work.done, "session")
    check(profile, work, sum(item["cpu"] for item in work.everyone))
    assert profile["summary"]["written"] == pytest.approx(100 * 2**20, rel=0.05)
    assert profile["summary"]["state"] == "running"
    assert sum(profile["summary"]["commands"].values()) == pytest.approx(profile["summary"]["cpu_time"])
    seconds = [
        end - start for start, end in zip(*(profile["series"]["cpu"][k] for k in ("start", "end")), strict=True)
    ]
    area = sum(s * v for s, v in zip(seconds, profile["series"]["cpu"]["value"], strict=True))
    allocated = profile["series"]["cpus"]["value"]
    assert set(allocated) == {os.cpu_count()}, "a node was added to itself"
    assert max(profile["series"]["memory"]["value"]) == profile["summary"]["memory_peak"]
    assert area == pytest.approx(profile["summary"]["cpu_time"], rel=0.02), "the chart's area is the CPU time"
    work.end()
    wait_until(lambda: get(f"{url}/api/job/{profile['summary']['key']}")["summary"]["state"] == "ended", 30)


@pytest.fixture
def groups() -> Iterator[list[Path]]:
    """A job's control group in every hierarchy there is, as Slurm would make it."""
    number = os.getpid()
    unified = (CGROUP / "cgroup.controllers").exists()
    mounts = [CGROUP] if unified else [CGROUP / name for name in ("cpuacct", "memory", "pids", "blkio")]
    inside = f"slurmstepd.scope/job_{number}" if unified else f"slurm/uid_0/job_{number}"
    made = [mount / inside for mount in mounts]
    try:
        for group in made:
            group.mkdir(parents=True)
    except OSError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"CANNOT MAKE CONTROL GROUPS HERE, so their truth goes untested: {error}")
    yield made
    for group in made:
        wait_until(lambda group=group: not (group / "cgroup.procs").read_text(), 20)  # type: ignore[misc]
        for folder in (group, *list(group.parents)[:2]):
            # The folders above may be a real Slurm's, and then they are not empty.
            with contextlib.suppress(OSError):
                folder.rmdir()


def test_a_job_with_a_control_group_counts_processes_that_came_and_went(
    url: str, tmp_path: Path, groups: list[Path]
) -> None:
    work = Work(tmp_path, short=150, enter=groups)
    profile = job_after(url, groups[0].name.removeprefix("job_"), work.done, "slurm")
    long_lived = sum(item["cpu"] for item in work.everyone)
    brief: float = work.truth["brief"]
    assert brief > 2.5
    check(profile, work, long_lived + brief)
    assert profile["summary"]["source"] == "cgroup"
    assert profile["summary"]["memory_peak_group"] >= profile["summary"]["memory_peak"]
    work.end()
