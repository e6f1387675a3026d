"""Real containers, seen from outside: whose they are, what runs in them, what they were made of."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from jobsight import catalogue
from jobsight.collect.process import Options, Process
from jobsight.host import Host
from tests.conftest import Program, answers, free_port, wait_until
from tests.integration.podman import BURN, IMAGE, OPTIONS, RUN, image, packed, podman  # noqa: F401
from tests.integration.slurm import Slurm, running_slurm  # noqa: F401

pytestmark = pytest.mark.slow


def rows(host: Host) -> dict[int, Process]:
    return {row.pid: row for row in catalogue.collector("process").rows(host, Options())}


def test_container_of_root_s_podman_is_a_job_with_its_image(image: Path) -> None:  # noqa: F811
    with podman(image, "root") as engine:
        number, pid = engine.start("solver", BURN)
        wait_until(lambda: engine.burned("solver"), 60, "the container has worked")
        found = rows(Host())
        row = found[pid]
        assert (row.scheduler, row.job, row.owner, row.command) == ("podman", number[:12], "root", "ash")
        assert (row.container, row.container_id, row.container_name) == ("podman", number[:12], "solver")
        assert row.image == IMAGE
        assert row.cpu_user + row.cpu_system > 0.5
        children = [one for one in found.values() if one.parent == pid]
        assert [(one.command, one.job, one.image) for one in children] == [("sleep", number[:12], IMAGE)]
        monitor = found[row.parent]
        assert (monitor.command, monitor.container, monitor.scheduler) == ("conmon", None, "session")
        groups = [one for one in catalogue.collector("cgroup").rows(Host(), None) if one.job == number[:12]]
        assert [one.scheduler for one in groups] == ["podman"]
        assert groups[0].cpu_time >= row.cpu_user + row.cpu_system - 0.02


@pytest.mark.usefixtures("slurm")  # for its users
def test_container_of_a_user_s_podman_is_that_user_s_whoever_runs_in_it(image: Path) -> None:  # noqa: F811
    with podman(image, "alice") as engine:
        mine, first = engine.start("mine", BURN)
        other, second = engine.start("other", BURN, "--user", "33")
        wait_until(lambda: engine.burned("mine") and engine.burned("other"), 90, "the containers have worked")
        host = Host()
        uid = os.stat(f"/proc/{second}").st_uid
        assert host.user(uid) == str(uid), "it runs under a number that nobody has"
        found = rows(host)
        for pid, number, name in ((first, mine, "mine"), (second, other, "other")):
            row = found[pid]
            assert (row.owner, row.command) == ("alice", "ash")
            assert (row.container, row.container_id, row.container_name) == ("podman", number[:12], name)
            # Without root's engine nobody's files are opened: the directory of the container is what is known.
            assert row.image
            assert row.image.startswith(f"{engine.home}/")
            assert Path(row.image, "bin/busybox").exists()
        assert found[found[first].parent].container is None, "its monitor is outside"


SCRIPT = """\
set -e
cd {base}
step="srun -n1 --overlap --mem=150M"
$step ch-run {image} -- /bin/ash -c '{burn}' &
$step bwrap --bind {image} / --proc /proc --dev /dev --unshare-pid --unshare-user /bin/ash -c '{burn}' &
export HOME=$(mktemp -d) USER=alice
export XDG_RUNTIME_DIR=$HOME
podman {options} import {image}.tar {name} 2>&1
podman {options} run --name inside {run} {name} ash -c '{burn}' &
wait
"""


def told(url: str, number: str) -> dict[str, Any]:
    """What is known of a job; empty if nothing is."""
    with urlopen(f"{url}/api/v1/named/{number}", timeout=30) as answer:
        jobs = json.load(answer)
    if not jobs:
        return {}
    with urlopen(f"{url}/api/v1/job/{quote(jobs[0]['key'], safe='')}", timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def test_containers_in_a_slurm_job_are_the_job_s(
    image: Path,  # noqa: F811
    slurm: Slurm,
    start: Callable[..., Program],
    tmp_path: Path,
) -> None:
    Path(f"{image}.tar").write_bytes(packed(image))
    port = free_port()
    start("up", "--listen", f"127.0.0.1:{port}", "--every", "1")
    url = f"http://127.0.0.1:{port}"
    wait_until(lambda: answers(f"{url}/health"), what="the server answers")
    script = SCRIPT.format(
        base=slurm.base / "work", image=image, burn=BURN, options=" ".join(OPTIONS), run=" ".join(RUN), name=IMAGE
    )
    number = slurm.submit("alice", script, "-n4", "--mem=600M")
    wanted = {"charliecloud", "bubblewrap", "podman"}

    def seen() -> bool:
        assert slurm.state(number) == "RUNNING", slurm.output(number)
        return {one["runtime"] for one in told(url, number).get("containers", ())} >= wanted

    slurm.wait(number, "RUNNING")
    try:
        wait_until(seen, 90, "all three containers were seen in the job")
    except AssertionError:
        print(slurm.output(number), told(url, number).get("containers"))
        raise
    job = told(url, number)
    assert (job["summary"]["scheduler"], job["summary"]["owner"]) == ("slurm", "alice")
    uses = {one["runtime"]: one for one in job["containers"]}
    assert set(uses) == wanted
    assert {name: one["image"] for name, one in uses.items() if name != "podman"} == {
        "charliecloud": str(image),
        "bubblewrap": str(image),
    }
    assert uses["podman"]["name"] == "inside"
    assert all(one["commands"][0] == "ash" for one in uses.values())
    asked = [sys.executable, "-m", "jobsight", "job", job["summary"]["key"]]
    home = {**os.environ, "JOBSIGHT_HOME": str(tmp_path / "home")}
    with urlopen(f"{url}/job/{quote(job['summary']['key'], safe='')}", timeout=30) as answer:
        page = answer.read().decode()
    said = f"ash ran in a container of charliecloud, image {image}."
    assert said in page
    shown = subprocess.run(asked, env=home, capture_output=True, text=True, check=False, timeout=60)
    assert said in shown.stdout, shown.stderr
    slurm.run("scancel", number)
    wait_until(lambda: slurm.state(number) in ("CANCELLED", "COMPLETED"), 60, "the job has ended")
