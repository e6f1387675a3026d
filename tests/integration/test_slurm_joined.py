"""A real Slurm and a real agent and server: jobs that end in every way, in the command line, the page and both APIs,
against what `sacct` and the workloads say themselves.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from tests.conftest import Program, answers, free_port, wait_until
from tests.integration.slurm import Slurm, running_pair  # noqa: F401
from tests.integration.test_slurm_accounting import TASKS, finish

pytestmark = pytest.mark.slow

MIB = 2**20
# Holds memory, burns CPU time, says what it used and stays until it has been seen.
BURN = """\
import json, os, time
block = bytearray(64 << 20)
block[::4096] = b"x" * len(block[::4096])
while time.process_time() < 5:
    pass
with open("/proc/self/status") as file:
    anon = next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon:"))
with open(f"{os.environ['SLURM_JOB_ID']}.burned", "w") as file:
    json.dump({"cpu": time.process_time(), "anon": anon}, file)
time.sleep(4)
"""
HOG = (
    "import time; x = bytearray(30 << 20); time.sleep(2); y = bytearray(300 << 20); y[::4096] = b'x' * len(y[::4096])"
)
SETTINGS = """\
collect:
  process: {{every: 1s}}
  cgroup: {{every: 1s}}
  allocation: {{every: 1s, path: {jobs}}}
  slurmjob: {{here: true, every: 4s, survey: 4s, history: 10m}}
  slurmqueue: {{here: true, every: 4s}}
lock: {home}/agent.lock
"""
COLUMNS = "JobIDRaw,State,Submit,Start,End,ExitCode,ReqCPUS,AllocCPUS,AllocTRES,NNodes,Timelimit,TotalCPU"


class Scene(NamedTuple):
    """The jobs by what they are for, and where to ask of them."""

    slurm: Slurm
    jobs: dict[str, str]
    url: str
    home: Path
    waiting: dict[str, Any]
    """What was shown of the job that waits while it did."""

    def get(self, path: str) -> Any:
        return got(f"{self.url}{path}")

    def named(self, name: str) -> list[dict[str, Any]]:
        """Earliest first: a requeued job is two."""
        found = self.get(f"/api/v1/named/{self.jobs.get(name, name)}")
        return sorted(found, key=lambda job: float(job["started"]))

    def whole(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/api/v1/job/{quote(self.named(name)[-1]['key'])}")
        return found

    def accounted(self, name: str) -> list[list[str]]:
        """What sacct prints of a job, a line each life."""
        asked = ("sacct", "-X", "-n", "-P", "--duplicates", "-o", COLUMNS, "-j", self.jobs[name])
        return [line.split("|") for line in self.slurm.run("env", "SLURM_TIME_FORMAT=%s", *asked).splitlines()]


def got(url: str) -> Any:
    with urlopen(url, timeout=30) as answer:
        text = answer.read().decode()
    return json.loads(text) if answer.headers["Content-Type"] == "application/json" else text


@pytest.fixture(scope="module")
def scene(pair_of_nodes: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    slurm, home, port = pair_of_nodes, tmp_path_factory.mktemp("home"), free_port()
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(slurm.conf)
    settings = home / "agent.yaml"
    settings.write_text(SETTINGS.format(jobs=slurm.jobs, home=home))
    url = f"http://127.0.0.1:{port}"
    server = Program(home, "serve", "--listen", f"127.0.0.1:{port}")
    programs = [server]
    try:
        wait_until(lambda: answers(f"{url}/api/nodes"), what="the server answers")
        token = home / "store" / "token"
        given = ("--token-file", str(token)) if token.exists() else ()
        programs.append(Program(home, "agent", "--settings", str(settings), "--url", f"{url}/ingest", *given))
        jobs = submitted(slurm)
        scene = Scene(slurm, jobs, url, home, {})
        slurm.run("scontrol", "update", f"JobId={jobs['timeout']}", "EndTime=now+1")
        wait_until(lambda: scene.named("waiting"), 60, "the job that waits is listed")
        scene = scene._replace(waiting=scene.named("waiting")[0])
        slurm.run("scontrol", "requeue", jobs["requeued"])
        slurm.run("scancel", jobs["cancelled"], user="alice")
        finish(slurm, jobs)
        names = [name for name in jobs if name not in ("held", "waiting")]
        wait_until(lambda: all(ended(scene, name) for name in names), 90, "all jobs have ended here, too")
        yield scene
    finally:
        for program in reversed(programs):
            print(program.stop()[1])
        del os.environ["SLURM_CONF"]
        if before is not None:
            os.environ["SLURM_CONF"] = before


def submitted(slurm: Slurm) -> dict[str, str]:
    jobs: dict[str, str] = {}

    def submit(name: str, user: str, script: str, *options: str) -> None:
        jobs[name] = slurm.submit(user, script, "-J", name, "--mem=100M", *options)

    submit("timeout", "alice", "sleep 600", "--time=5")
    submit("cancelled", "alice", "sleep 600")
    submit("requeued", "alice", '[ "$SLURM_RESTART_COUNT" ] && sleep 3 || sleep 600', "--requeue")
    submit("burner", "alice", f"/usr/bin/python3 -I -S - <<'E'\n{BURN}E", "--account=physics")
    submit("hog", "bob", f'exec /usr/bin/python3 -I -S -c "{HOG}"', "--mem=60M")
    submit("failing", "bob", "sleep 2\nexit 3")
    submit("array", "bob", "sleep 1", f"--array=0-{TASKS - 1}")
    submit("steps", "alice", "srun -J one -n2 sleep 3\nsrun -J two -n1 sh -c 'sleep 2; exit 7'\ntrue", "-n2")
    submit("nodes", "alice", "srun sleep 8", "-N2", "--ntasks-per-node=1", "--gres=gpu:a100:1", "--time=10")
    submit("held", "bob", "true", "--hold")
    submit("waiting", "bob", "true", f"--dependency=afterok:{jobs['timeout']}")
    for name in ("timeout", "cancelled", "requeued", "nodes"):
        slurm.wait(jobs[name], "RUNNING")
    return jobs


def ended(scene: Scene, name: str) -> bool:
    found = scene.named(name)
    lives = 2 if name == "requeued" else 1
    return len(found) == lives and all(job["batch"] and job["batch"].get("ended") for job in found)


NAMES = ("burner", "hog", "timeout", "failing", "cancelled", "array", "steps", "nodes", "requeued")


@pytest.mark.parametrize("name", NAMES)
def test_job_is_shown_as_sacct_has_it(scene: Scene, name: str) -> None:
    number = scene.jobs[name]
    lines = sorted((line for line in scene.accounted(name) if line[0] == number), key=lambda line: float(line[3]))
    found = scene.named(name)
    assert len(found) == len(lines)
    stats = scene.get(f"/api/jobs?jobid={number}")["data"]
    for line, job in zip(lines, found, strict=True):
        _, state, submit, start, end, code, asked, given, tres, nodes, limit, _ = line
        batch = job["batch"]
        assert (job["state"], batch["state"]) == ("ended", state.split()[0])
        assert [batch["submit"], batch["start"], batch["ended"]] == [float(submit), float(start), float(end)]
        assert (job["started"], job["elapsed"]) == (float(start), float(end) - float(start))
        assert f"{batch['exit_code']}:{batch['exit_signal']}" == code
        assert (job["reserved"]["cores"]["requested"], job["reserved"]["cores"]["given"]) == (int(asked), int(given))
        memory = next(word[4:-1] for word in tres.split(",") if word.startswith("mem="))
        assert job["reserved"]["memory"]["given"] == int(memory) * MIB
        assert (batch["node_count"], batch["qos"], batch["partition"]) == (int(nodes), "normal", "normal")
        assert (job["reserved"]["time"]["requested"] is None) == (limit == "UNLIMITED")
        (told,) = [one for one in stats if one["startts"] == str(int(start) * 1000)]
        assert (told["state"], told["exitcode"], told["endts"]) == (state.split()[0], code, str(int(end) * 1000))
        assert (told["user"], told["nnodes"], told["ncpus"]) == (job["owner"], nodes, given)
        page = scene.get(f"/job/{quote(job['key'], safe='')}")
        assert f"<b>{batch['state']}</b>" in page
        assert f"<bdi>{code}</bdi>" in page


@pytest.mark.parametrize("name", NAMES)
def test_command_line_shows_state_exit_code_and_steps(scene: Scene, name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "jobsight", "job", scene.named(name)[-1]["key"]],
        env={**os.environ, "JOBSIGHT_HOME": str(scene.home)}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    batch = scene.named(name)[-1]["batch"]
    assert (
        f"slurm says {batch['state']}, exit code and signal {batch['exit_code']}:{batch['exit_signal']}"
        in done.stdout
    )
    steps = [
        line.split()[0] for line in done.stdout.splitlines() if line.startswith(("batch ", "extern ", "0 ", "1 "))
    ]
    assert {"batch", "extern"} <= set(steps)


def test_sampled_cpu_time_and_memory_are_what_the_job_used(scene: Scene) -> None:
    truth = json.loads((scene.slurm.base / "work" / f"{scene.jobs['burner']}.burned").read_text())
    (job,) = scene.named("burner")
    assert job["source"] == "cgroup"
    assert job["cpu_time"] == pytest.approx(truth["cpu"], rel=0.02)
    assert job["batch"]["cpu_time"] == pytest.approx(job["cpu_time"], rel=0.02)
    assert job["memory_peak"] == pytest.approx(truth["anon"], rel=0.05)
    assert job["memory_limit"] == 100 * MIB


def test_every_step_has_its_row(scene: Scene) -> None:
    steps = {step["step"]: step for step in scene.whole("steps")["steps"]}
    assert set(steps) == {"batch", "extern", "0", "1"}
    assert (steps["0"]["name"], steps["0"]["state"], steps["0"]["tasks"], steps["0"]["exit_code"]) == (
        "one",
        "COMPLETED",
        2,
        0,
    )
    assert (steps["1"]["name"], steps["1"]["state"], steps["1"]["exit_code"]) == ("two", "FAILED", 7)
    assert all(step["cpu_time_seen"] is not None and step["memory"] for step in steps.values())


def test_each_run_of_a_requeued_job_is_its_own(scene: Scene) -> None:
    first, second = scene.named("requeued")
    assert (first["batch"]["state"], second["batch"]["state"]) == ("REQUEUED", "COMPLETED")
    seen = {"cgroup"}
    wait_until(lambda: {job["source"] for job in scene.named("requeued")} == seen, 120, "both runs were seen to run")
    assert first["started"] + first["elapsed"] <= second["started"]


def test_array_is_as_many_jobs_known_by_their_index(scene: Scene) -> None:
    wanted = [f"{scene.jobs['array']}_{index}" for index in range(TASKS)]
    found = [scene.named(name) for name in wanted]
    assert [len(jobs) for jobs in found] == [1] * TASKS
    assert {jobs[0]["batch"]["state"] for jobs in found} == {"COMPLETED"}


def test_job_on_two_nodes_knows_what_it_was_given_on_each(scene: Scene) -> None:
    (job,) = scene.named("nodes")
    given = job["batch"]["given"]
    assert sum(len(part["nodes"].split(",")) for part in given) >= 1
    assert {part["memory"] for part in given} == {100 * MIB}
    assert all(part["devices"].startswith("gpu:a100:") and part["cores"] for part in given)
    assert (job["reserved"]["gpus"]["requested"], job["reserved"]["gpus"]["given"]) == (2, 2)


def test_job_that_waits_is_pending_and_says_why(scene: Scene) -> None:
    job = scene.waiting
    assert (job["state"], job["owner"], job["elapsed"]) == ("pending", "bob", 0)
    assert job["batch"]["dependency"].startswith(f"afterok:{scene.jobs['timeout']}")
    assert time.time() > job["batch"]["submit"] > time.time() - 600


def test_killed_for_memory_is_said_so(scene: Scene) -> None:
    found = scene.whole("hog")
    assert found["verdict"].startswith("It was killed for using more memory than it was given.")
    assert found["summary"]["memory_limit"] == 60 * MIB
