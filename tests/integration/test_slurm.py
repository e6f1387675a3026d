"""A real Slurm, and what jobsight sees of its jobs, against what Slurm and the workloads say themselves."""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import pytest

from jobsight import catalogue
from jobsight.collect.allocation import Allocation, Options
from jobsight.collect.cgroup import Cgroup
from jobsight.host import Host
from jobsight.schema.units import Count
from tests.conftest import Program, answers, free_port, wait_until
from tests.integration.slurm import Slurm, running_slurm  # noqa: F401

pytestmark = pytest.mark.slow

MIB = 2**20

# A task that holds memory, burns CPU time, says what it used and stays.
TASK = """\
import json, os, signal, sys, time
burned, held = float(sys.argv[1]), int(sys.argv[2])
block = bytearray(held << 20)
block[::4096] = b"x" * len(block[::4096])
while time.process_time() < burned:
    pass
name = ".".join(os.environ.get(key, "-") for key in ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID"))
with open("/proc/self/status") as file:
    anon = next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon:"))
with open(name + ".part", "w") as file:
    json.dump({"pid": os.getpid(), "cpu": time.process_time(), "anon": anon}, file)
os.rename(name + ".part", name + ".json")
signal.pause()
"""

# Many children that live for some 5 ms of CPU time each, and what they and their parent used.
SHORT = """\
import json, os, signal, sys, time
used = 0.0
for _ in range(int(sys.argv[1])):
    pid = os.fork()
    if not pid:
        end = time.process_time() + 0.005
        while time.process_time() < end:
            pass
        os._exit(0)
    usage = os.wait4(pid, 0)[2]
    used += usage.ru_utime + usage.ru_stime
name = os.environ["SLURM_JOB_ID"] + ".short"
with open(name + ".part", "w") as file:
    json.dump({"children": used, "own": time.process_time()}, file)
os.rename(name + ".part", name + ".json")
signal.pause()
"""


class Pair(NamedTuple):
    """Two jobs of two users at the same time, and what their tasks say they used, by step and task."""

    alice: str
    bob: str
    truth: dict[str, dict[tuple[str, str], dict[str, Any]]]


def python(slurm: Slurm, name: str, text: str) -> str:
    """A command line for a program. The system's own Python: ours may be in a home that is closed to others."""
    path = slurm.base / "work" / name
    path.write_text(text)
    path.chmod(0o644)
    return f"/usr/bin/python3 -I -S {path}"


def told(slurm: Slurm, job: str, name: str) -> Any:
    """What a task of a job has written, once it has."""
    path = slurm.base / "work" / f"{name}.json"

    def written() -> bool:
        assert slurm.state(job) in ("PENDING", "RUNNING"), slurm.output(job)
        return path.exists()

    wait_until(written, 120, f"{name} says what it used")
    return json.loads(path.read_text())


def submit_task(slurm: Slurm, user: str, *options: str) -> str:
    """A job of one small task that stays."""
    task = python(slurm, "task.py", TASK)
    return slurm.submit(user, f"exec srun {task} 0.1 10", "--ntasks=1", "--mem=100M", *options)


def end(slurm: Slurm, job: str) -> None:
    slurm.run("scancel", job)
    wait_until(lambda: not slurm.run("squeue", "-h", "-j", job), 60, f"job {job} has left")


@pytest.fixture(scope="module")
def pair(slurm: Slurm) -> Iterator[Pair]:
    task = python(slurm, "task.py", TASK)
    steps = (
        f"srun -J threads -n2 --exact --mem=200M {task} 1.5 60 &\nsrun -n2 --exact --mem=150M {task} 0.7 20 &\nwait"
    )
    alice = slurm.submit("alice", steps, "-n4", "--mem=600M", "-J", "two steps", "--account=physics")
    bob = slurm.submit("bob", f"srun -n1 {task} 1 40", "-n1", "--mem=250M", "-J", 'odd |" name')
    parts = {alice: [(step, task) for step in "01" for task in "01"], bob: [("0", "0")]}
    truth = {job: {(s, t): told(slurm, job, f"{job}.{s}.{t}") for s, t in places} for job, places in parts.items()}
    yield Pair(alice, bob, truth)
    end(slurm, alice)
    end(slurm, bob)


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host()
    yield made
    made.close()


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    """What is done here is done without privileges, as an agent may run: no other user's environment can be read."""
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def rows(name: str, host: Host, options: Any = None) -> list[Any]:
    return catalogue.collector(name).rows(host, options)


def groups(slurm: Slurm, host: Host, job: str) -> dict[tuple[str | None, str | None], Cgroup]:
    """The rows of a job's control groups, by step and task."""
    found = [row for row in rows("cgroup", host) if slurm.node in row.path and row.job == job]
    by_part = {(row.step, row.task): row for row in found}
    assert len(by_part) == len(found), "two rows of one part"
    return by_part


def allocations(slurm: Slurm, host: Host, path: str) -> dict[str, Allocation]:
    """By job; another cluster's jobs may be here too."""
    found = [row for row in rows("allocation", host, Options(path)) if row.nodes == slurm.node]
    return {row.job: row for row in found}


def test_every_process_belongs_to_the_job_slurm_says(slurm: Slurm, pair: Pair, host: Host) -> None:
    listed = [line.split()[:3] for line in slurm.run("scontrol", "listpids").splitlines()[1:]]
    pids = {int(pid): (job, step) for pid, job, step in listed if pid != "-1"}
    assert {job for job, _ in pids.values()} == {pair.alice, pair.bob}
    seen = {row.pid: row for row in rows("process", host)}
    owners = {pair.alice: "alice", pair.bob: "bob"}
    for pid, (job, step) in pids.items():
        assert (seen[pid].scheduler, seen[pid].job) == ("slurm", job)
        # What holds the extern step open is Slurm's own.
        assert seen[pid].owner == ("root" if step == "extern" else owners[job])
    others = [row for row in seen.values() if row.job in owners and row.scheduler == "slurm" and row.pid not in pids]
    assert {row.command for row in others} <= {"slurmstepd"}
    for row in others:
        # The daemon of a step says in its command line whose it is: `slurmstepd: [8.batch]`.
        assert f"[{row.job}." in Path(f"/proc/{row.pid}/cmdline").read_text()


def test_control_groups_of_job_steps_and_tasks_are_there_and_not_mixed(slurm: Slurm, pair: Pair, host: Host) -> None:
    for job, user in ((pair.alice, "alice"), (pair.bob, "bob")):
        found = groups(slurm, host, job)
        expected = {(None, None), *pair.truth[job], *((step, None) for step, _ in pair.truth[job])}
        expected |= {("batch", None), ("batch", "0"), ("extern", None), ("extern", "0")}
        assert set(found) == expected
        uid = slurm.run("id", "-u", user).strip()
        for (step, _), row in found.items():
            assert row.scheduler == "slurm"
            assert f"/job_{job}/" in f"{row.path}/"
            assert step is None or f"/step_{step}/" in f"{row.path}/"
            assert "uid_" not in row.path or f"/uid_{uid}/" in row.path


def test_control_groups_used_what_the_workload_says(slurm: Slurm, pair: Pair, host: Host) -> None:
    for job, truth in pair.truth.items():
        found = groups(slurm, host, job)
        for place, used in truth.items():
            assert found[place].cpu_time == pytest.approx(used["cpu"], rel=0.05)
            assert found[place].memory_anon == pytest.approx(used["anon"], rel=0.05)
        whole = found[None, None]
        steps = [row for (step, task), row in found.items() if step and not task]
        tasks = [row for (_, task), row in found.items() if task]
        assert whole.cpu_time is not None
        for parts in (steps, tasks):
            burned = sum(row.cpu_time or 0.0 for row in parts)
            assert burned == pytest.approx(whole.cpu_time, rel=0.03)
            assert burned <= whole.cpu_time + 0.01
            assert sum(row.memory_anon or 0 for row in parts) == pytest.approx(whole.memory_anon, rel=0.05)
        assert whole.cpu_time >= 0.98 * sum(used["cpu"] for used in truth.values())
        assert (whole.memory_peak or 0) >= sum(used["anon"] for used in truth.values())
        assert whole.oom_kills == 0


def test_limits_are_what_was_asked_for_and_none_is_none(slurm: Slurm, pair: Pair, host: Host) -> None:
    found = groups(slurm, host, pair.alice)
    assert found[None, None].memory_limit == 600 * MIB
    assert found["batch", None].memory_limit == 600 * MIB
    # Which of two concurrent steps gets which number is a matter of luck.
    assert {found[step, None].memory_limit for step in ("0", "1")} == {150 * MIB, 200 * MIB}
    assert groups(slurm, host, pair.bob)[None, None].memory_limit == 250 * MIB
    assert {row.memory_limit for (_, task), row in found.items() if task} == {None}


def test_short_lived_processes_are_counted_by_the_jobs_control_group(slurm: Slurm, host: Host) -> None:
    program = python(slurm, "short.py", SHORT)
    job = slurm.submit("bob", f"exec {program} 2000", "--ntasks=1", "--mem=100M")
    truth = told(slurm, job, f"{job}.short")
    counted = groups(slurm, host, job)[None, None].cpu_time
    end(slurm, job)
    assert truth["children"] > 9.0
    used = truth["children"] + truth["own"]
    assert counted is not None
    assert 0.98 * used <= counted <= 1.05 * used


def test_job_that_was_cancelled_is_gone_from_the_next_sample(slurm: Slurm, host: Host) -> None:
    job = submit_task(slurm, "alice")
    told(slurm, job, f"{job}.0.0")
    path = str(slurm.jobs)
    kinds = {"process": None, "cgroup": None, "allocation": Options(path)}
    before = {name: [row for row in rows(name, host, given) if row.job == job] for name, given in kinds.items()}
    assert all(before.values()), before
    end(slurm, job)
    assert slurm.state(job) == "CANCELLED"
    host.missed()
    after = {name: [row for row in rows(name, host, given) if row.job == job] for name, given in kinds.items()}
    assert after == {"process": [], "cgroup": [], "allocation": []}
    assert "failed" not in host.missed().values()
    assert not (slurm.jobs / f"slurm.{job}").exists(), "the epilog has not cleaned up"


def test_prolog_tells_whose_a_job_is_and_what_it_was_given(slurm: Slurm, pair: Pair, host: Host) -> None:
    file = slurm.jobs / f"slurm.{pair.alice}"
    assert file.stat().st_mode & 0o777 == 0o644
    assert (file.stat().st_uid, slurm.jobs.stat().st_mode & 0o777) == (0, 0o755)
    assert not [path.name for path in slurm.jobs.iterdir() if path.name.startswith(".")]
    with nobody():
        found = allocations(slurm, host, str(slurm.jobs))
    assert found[pair.alice] == Allocation(
        scheduler="slurm",
        job=pair.alice,
        number=pair.alice,
        owner="alice",
        account="physics",
        partition="normal",
        # Slurm 22.05 does not tell a prolog.
        name=None,
        nodes=slurm.node,
        source="prolog",
        cpus=Count(4),
        restarts=Count(0),
    )
    assert (found[pair.bob].owner, found[pair.bob].account) == ("bob", "biology")
    assert host.missed()["name"] == "forbidden"


def test_without_prolog_and_privilege_nothing_is_made_up(slurm: Slurm, pair: Pair, host: Host) -> None:
    with nobody():
        assert allocations(slurm, host, "/nowhere") == {}
    assert host.missed()["job"] == "forbidden"


def test_environment_tells_what_there_is_no_prolog_for(slurm: Slurm, pair: Pair, host: Host) -> None:
    found = allocations(slurm, host, "/nowhere")
    assert set(found) == {pair.alice, pair.bob}
    assert found[pair.alice] == Allocation(
        scheduler="slurm",
        job=pair.alice,
        number=pair.alice,
        owner="alice",
        account="physics",
        partition="normal",
        name="two steps",
        nodes=slurm.node,
        source="environ",
        cpus=Count(4),
    )
    assert (found[pair.bob].owner, found[pair.bob].account, found[pair.bob].cpus) == ("bob", "biology", 1)


def test_environment_fills_what_the_prolog_leaves_open(slurm: Slurm, pair: Pair, host: Host) -> None:
    found = allocations(slurm, host, str(slurm.jobs))
    assert (found[pair.alice].name, found[pair.alice].restarts) == ("two steps", 0)
    assert found[pair.alice].source == "environ"


def test_job_that_lies_about_itself_is_not_believed(slurm: Slurm, host: Host) -> None:
    """A user can change every variable; the number must be the control group's, the owner is the process's."""
    lies = "SLURM_JOB_ID=1 SLURM_JOB_USER=root SLURM_JOB_UID=0 SLURM_JOB_ACCOUNT=secret"
    task = python(slurm, "task.py", TASK)
    job = slurm.submit("bob", f"exec env {lies} {task} 0.1 10", "--ntasks=1", "--mem=100M")
    told(slurm, job, "1.-.0")
    assert job not in allocations(slurm, host, "/nowhere")
    said = allocations(slurm, host, str(slurm.jobs))[job]
    assert (said.number, said.owner, said.account, said.name) == (job, "bob", "biology", None)
    end(slurm, job)


def test_hostile_name_reaches_neither_the_next_line_nor_the_next_job(slurm: Slurm, host: Host) -> None:
    job = submit_task(slurm, "alice", "--job-name=x\nowner=root\nnumber=1\x1b[2J", "--comment=y\nowner=root")
    told(slurm, job, f"{job}.0.0")
    assert "root" not in (slurm.jobs / f"slurm.{job}").read_text()
    found = allocations(slurm, host, str(slurm.jobs))[job]
    assert (found.owner, found.number, found.name) == ("alice", job, None)
    assert host.missed()["name"] == "failed"
    end(slurm, job)


@pytest.mark.parametrize("script", ["prolog", "epilog"])
def test_scripts_never_fail_a_job(script: str, tmp_path: Path) -> None:
    """Whatever is wrong: a prolog that fails drains the node."""
    path = Path(__file__).parent.parent.parent / "deploy" / "slurm" / f"{script}.sh"
    (tmp_path / "file").write_text("no directory")
    for number in (None, "", "../../x", "8", "8; touch x"):
        for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nowhere")):
            environment = {} if number is None else {"SLURM_JOB_ID": number, "SLURM_JOB_NAME": "x" * 100_000}
            done = subprocess.run(
                [str(path), str(place)], env=environment, capture_output=True, check=False, timeout=10, cwd=tmp_path
            )
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_prolog_keeps_every_value_on_its_line_and_the_epilog_removes_it(tmp_path: Path) -> None:
    scripts = Path(__file__).parent.parent.parent / "deploy" / "slurm"
    given = {
        "SLURM_JOB_ID": "4711",
        "SLURM_JOB_SLUID": "s01KVR5WDN3B00",
        "SLURM_JOB_USER": "alice",
        "SLURM_JOB_NAME": "Größe\nowner=root\r\t%s $(id) `id` \\n -n",
        "SLURM_JOB_ACCOUNT": "x" * 5000,
        "SLURM_JOB_GPUS": "0,3",
    }
    place = tmp_path / "made" / "here"
    subprocess.run([str(scripts / "prolog.sh"), str(place)], env=given, check=True)
    assert [path.name for path in place.iterdir()] == ["slurm.4711"]
    assert (place / "slurm.4711").read_text().splitlines() == [
        "scheduler=slurm",
        "number=4711",
        "sluid=s01KVR5WDN3B00",
        "owner=alice",
        "name=Größe owner=root  %s $(id) `id` \\n -n",
        "devices=0,3",
    ]
    subprocess.run([str(scripts / "epilog.sh"), str(place)], env=given, check=True)
    assert list(place.iterdir()) == []


def test_job_list_shows_the_job_as_slurms_with_its_owner(
    slurm: Slurm, pair: Pair, start: Callable[..., Program]
) -> None:
    port = free_port()
    start("up", "--listen", f"127.0.0.1:{port}", "--every", "1")
    url = f"http://127.0.0.1:{port}"
    wait_until(lambda: answers(f"{url}/api/nodes"), what="the server answers")
    began = time.time()

    def job(number: str) -> dict[str, Any]:
        with urlopen(f"{url}/api/v1/jobs?text={number}", timeout=30) as answer:
            listed = json.load(answer)
        return next((found for found in listed if found["id"] == number and found["seen"] > began + 2), {})

    for number, owner in ((pair.alice, "alice"), (pair.bob, "bob")):
        wait_until(lambda number=number: job(number), 60, f"job {number} is listed")  # type: ignore[misc]
        assert (job(number)["scheduler"], job(number)["owner"]) == ("slurm", owner)
        burned = sum(used["cpu"] for used in pair.truth[number].values())
        assert job(number)["cpu_time"] == pytest.approx(burned, rel=0.1)
