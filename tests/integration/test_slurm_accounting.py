"""A real Slurm with accounting and two nodes: what `slurmjob`, `slurmqueue` and `slurmnode` say of jobs that end in
every way, against what Slurm says itself.
"""

import contextlib
import json
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jobsight import catalogue
from jobsight.agent.schedule import Schedule
from jobsight.agent.service import Agent
from jobsight.clock import SystemClock
from jobsight.collect.slurmjob import Batchjob
from jobsight.collect.slurmqueue import Slurmqueue
from jobsight.drivers.calls import Calls
from jobsight.formats import nodelist
from jobsight.host import Host
from jobsight.schema.message import Message
from jobsight.settings import from_values
from tests.conftest import wait_until
from tests.integration.slurm import PATH, Slurm, running_pair  # noqa: F401

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parent.parent.parent / "src"
MIB = 2**20
TASKS = 20
HOSTILE = "x\n7\nRUNNING|\x1f\x1b[2J"
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL")

BURN = """\
import os, time
while time.process_time() < 3:
    pass
with open(f"{os.environ['SLURM_JOB_ID']}.burned", "w") as file:
    file.write(str(time.process_time()))
"""
HOG = "x = bytearray(300 << 20); x[::4096] = b'x' * len(x[::4096])"


class Seen(NamedTuple):
    """The jobs by what they are for, and what the collectors said while some of them lived."""

    jobs: dict[str, str]
    queue: list[Slurmqueue]
    running: list[Batchjob]


def collected(name: str, host: Host | None = None, **options: Any) -> list[Any]:
    found = catalogue.collector(name)
    assert found.options
    return found.rows(host or Host(), found.options(here=True, **options))


@pytest.fixture(scope="module")
def seen(pair_of_nodes: Slurm) -> Iterator[Seen]:
    """All jobs at once. Those that wait for another, are held or run for long are looked at alive."""
    slurm = pair_of_nodes
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(slurm.conf)
    jobs: dict[str, str] = {}

    def submit(name: str, user: str, script: str, *options: str) -> None:
        jobs[name] = slurm.submit(user, script, "-J", name, "--mem=100M", *options)

    try:
        submit("timeout", "alice", "sleep 600", "--time=5")
        submit("cancelled", "alice", "sleep 600")
        submit("requeued", "alice", '[ "$SLURM_RESTART_COUNT" ] || sleep 600', "--requeue")
        submit("burner", "alice", f"python3 - <<'E'\n{BURN}E", "--account=physics", "--comment=a|b")
        submit("hog", "bob", f'exec python3 -c "{HOG}"', "--mem=60M")
        submit("failing", "bob", "exit 3")
        submit("array", "bob", "sleep 1", f"--array=0-{TASKS - 1}")
        submit("steps", "alice", "srun -J one -n2 sleep 1\nsrun -J 'tw|o' -n1 sh -c 'exit 7'\ntrue", "-n2")
        submit("nodes", "alice", "srun sleep 12", "-N2", "--ntasks-per-node=1", "--gres=gpu:a100:1", "--time=10")
        jobs["hostile"] = slurm.submit("bob", "true", "-J", HOSTILE, "--mem=50M")
        submit("held", "bob", "true", "--hold")
        submit("waiting", "bob", "true", f"--dependency=afterok:{jobs['timeout']}")
        for name in ("timeout", "cancelled", "requeued", "nodes"):
            slurm.wait(jobs[name], "RUNNING")
        slurm.run("scontrol", "update", f"JobId={jobs['timeout']}", "EndTime=now+1")
        slurm.run("scontrol", "requeue", jobs["requeued"])
        queue, running = collected("slurmqueue"), collected("slurmjob")
        slurm.run("scancel", jobs["cancelled"], user="alice")
        finish(slurm, jobs)
        yield Seen(jobs, queue, running)
    finally:
        del os.environ["SLURM_CONF"]
        if before is not None:
            os.environ["SLURM_CONF"] = before


def finish(slurm: Slurm, jobs: dict[str, str]) -> None:
    """Wait until the database knows how all ended but those that never begin."""
    told = 0.0

    def begun_again() -> bool:
        nonlocal told
        # A requeued job waits for two minutes unless it is told not to; told all the time it is put off every time.
        state = slurm.state(jobs["requeued"])
        if state == "PENDING" and time.monotonic() - told > 10:
            told = time.monotonic()
            with contextlib.suppress(AssertionError):  # it has begun meanwhile
                slurm.run("scontrol", "update", f"JobId={jobs['requeued']}", "StartTime=now")
        return state == "COMPLETED"

    wait_until(begun_again, 150, "the requeued job has run again")
    numbers = [number for name, number in jobs.items() if name not in ("held", "waiting")]

    def known() -> bool:
        asked = ("sacct", "-X", "-n", "-P", "-o", "State", "-j", ",".join(numbers))
        states = [line.split()[0] for line in slurm.run(*asked).splitlines() if line]
        return len(states) == len(numbers) + TASKS - 1 and set(states) <= set(ENDED)

    wait_until(known, 90, "all jobs have ended")
    slurm.run("scancel", jobs["held"], jobs["waiting"])


@pytest.fixture(scope="module")
def rows(seen: Seen) -> list[Batchjob]:
    return collected("slurmjob")


@pytest.fixture
def job(seen: Seen, rows: list[Batchjob]) -> Callable[..., Batchjob]:
    def find(name: str, step: str | None = None) -> Batchjob:
        found = [row for row in rows if row.job == seen.jobs[name] and row.step == step]
        assert len(found) == 1, found
        return found[0]

    return find


@pytest.mark.parametrize(
    ("name", "state", "code", "signal"),
    [
        ("burner", "COMPLETED", 0, 0),
        ("hog", "OUT_OF_MEMORY", 0, 125),
        ("timeout", "TIMEOUT", 0, 0),
        ("failing", "FAILED", 3, 0),
        ("cancelled", "CANCELLED", 0, 0),
        ("steps", "COMPLETED", 0, 0),
        ("nodes", "COMPLETED", 0, 0),
        ("hostile", "COMPLETED", 0, 0),
    ],
)
def test_job_ended_as_it_did(job: Callable[..., Batchjob], name: str, state: str, code: int, signal: int) -> None:
    row = job(name)
    assert (row.state, row.exit_code, row.exit_signal) == (state, code, signal)
    assert 0 < (row.submit or 0) <= (row.start or 0) <= (row.ended or 0)
    assert row.ended is not None
    assert row.start is not None
    assert row.elapsed == row.ended - row.start
    assert (row.scheduler, row.partition, row.qos, row.entry is None) == ("slurm", "normal", "normal", False)


def test_every_job_and_step_is_told_as_sacct_tells_it(pair_of_nodes: Slurm, rows: list[Batchjob]) -> None:
    """By another way: its JSON, which has other names and other units."""
    told = json.loads(pair_of_nodes.run("sacct", "--allusers", "--duplicates", "--json", "--starttime=now-1hour"))[
        "jobs"
    ]
    found = {(row.job, row.entry, row.step): row for row in rows}
    assert len(found) == len(rows), "a row is there twice"
    compared: set[Any] = set()
    for one in told:
        number = str(one["job_id"])
        matching = [
            row
            for row in rows
            if row.job == number and row.step is None and row.start == (one["time"]["start"] or None)
        ]
        assert len(matching) == 1, number
        whole = matching[0]
        compared.add((number, whole.entry, None))
        assert (whole.state, whole.account, whole.owner) == (
            one["state"]["current"],
            one["account"],
            one["association"]["user"],
        )
        assert (whole.submit, whole.ended) == (one["time"]["submission"], one["time"]["end"] or None)
        assert (whole.name, whole.partition) == (one["name"], one["partition"])
        for step in one["steps"]:
            name = str(step["step"]["id"])
            row = found[number, whole.entry, name]
            compared.add((number, whole.entry, name))
            used = step["time"]["total"]
            assert (row.state, row.start, row.ended) == (step["state"], step["time"]["start"], step["time"]["end"])
            assert row.cpu_time == pytest.approx(used["seconds"] + used["microseconds"] / 1e6, abs=0.0011)
            assert (row.name, row.nodes) == (step["step"]["name"], step["nodes"]["range"])
            assert row.owner == whole.owner
            amounts = {item["type"]: item["count"] for item in step["tres"]["allocated"] if item["type"] != "gres"}
            assert (row.cpus, row.memory) == (amounts["cpu"], amounts["mem"] * MIB)
    assert compared == set(found)


def test_json_by_setting_gives_the_same_rows(rows: list[Batchjob]) -> None:
    told = {(row.job, row.start, row.step): row for row in collected("slurmjob", json=True)}
    assert told.keys() == {(row.job, row.start, row.step) for row in rows}
    for row in rows:
        other = told[row.job, row.start, row.step]
        for name in (
            "state",
            "owner",
            "name",
            "submit",
            "ended",
            "cpus",
            "memory",
            "memory_peak",
            "read",
            "time_limit",
        ):
            assert getattr(other, name) == getattr(row, name), (row.job, row.step, name)
        if other.exit_code is not None:
            assert (other.exit_code, other.exit_signal) == (row.exit_code, row.exit_signal), (other, row)


def test_cpu_time_is_what_the_job_burned(pair_of_nodes: Slurm, job: Callable[..., Batchjob], seen: Seen) -> None:
    burned = float((pair_of_nodes.base / "work" / f"{seen.jobs['burner']}.burned").read_text())
    whole, script = job("burner"), job("burner", "batch")
    assert whole.cpu_time == pytest.approx(burned, rel=0.05)
    assert (whole.cpu_user or 0) + (whole.cpu_system or 0) == pytest.approx(whole.cpu_time, abs=0.002)
    assert script.cpu_time == pytest.approx(whole.cpu_time, abs=0.02)
    assert script.memory_peak


def test_array_is_as_many_jobs(seen: Seen, rows: list[Batchjob]) -> None:
    tasks = [row for row in rows if row.array_job == seen.jobs["array"] and row.step is None]
    assert sorted(row.array_index or 0 for row in tasks) == list(range(TASKS))
    assert {row.state for row in tasks} == {"COMPLETED"}
    assert len({row.job for row in tasks}) == TASKS
    steps = [row for row in rows if row.array_job == seen.jobs["array"] and row.step == "batch"]
    assert sorted(row.job for row in steps) == sorted(row.job for row in tasks)


def test_every_step_is_its_own_row(
    pair_of_nodes: Slurm, job: Callable[..., Batchjob], rows: list[Batchjob], seen: Seen
) -> None:
    assert {row.step for row in rows if row.job == seen.jobs["steps"]} == {None, "batch", "extern", "0", "1"}
    first, second = job("steps", "0"), job("steps", "1")
    assert (first.name, first.state, first.exit_code, first.tasks) == ("one", "COMPLETED", 0, 2)
    assert (second.name, second.state, second.exit_code, second.tasks) == ("tw|o", "FAILED", 7, 1)
    # Whether Slurm hears of the step's end before the job's is its own affair: it may say 0 for good.
    asked = ("sacct", "-X", "-n", "-P", "-o", "DerivedExitCode", "-j", seen.jobs["steps"])
    assert job("steps").worst_exit_code == int(pair_of_nodes.run(*asked).partition(":")[0])
    assert first.submit == second.submit == job("steps").submit


def test_requested_and_given_are_told_apart_from_each_other(
    pair_of_nodes: Slurm, job: Callable[..., Batchjob], seen: Seen
) -> None:
    row = job("nodes")
    assert nodelist.expand(row.nodes or "") == pair_of_nodes.nodes
    assert (row.node_count, row.cpus, row.memory, row.gpus) == (2, 2, 200 * MIB, 2)
    assert (row.requested_cpus, row.requested_memory, row.requested_nodes, row.requested_gpus) == (2, 200 * MIB, 2, 2)
    assert (row.gpu_types, row.time_limit, row.unlimited) == ("a100=2", 600.0, False)
    hog = job("hog")
    assert (hog.memory, hog.requested_memory, hog.cpus, hog.gpus) == (60 * MIB, 60 * MIB, 1, None)


def test_who_cancelled_is_known(job: Callable[..., Batchjob]) -> None:
    assert job("cancelled").cancelled_by == pwd.getpwnam("alice").pw_uid


def test_each_life_of_a_requeued_job_is_its_own(seen: Seen, rows: list[Batchjob]) -> None:
    lives = sorted(
        (row for row in rows if row.job == seen.jobs["requeued"] and row.step is None), key=lambda row: row.start or 0
    )
    assert [row.state for row in lives] == ["REQUEUED", "COMPLETED"]
    assert len({row.entry for row in lives}) == 2
    assert len({row.submit for row in lives}) == 2, "the submission tells the two apart as well"


def test_name_of_the_users_making_shifts_nothing(job: Callable[..., Batchjob]) -> None:
    row = job("hostile")
    assert (row.name, row.owner, row.account, row.memory) == (HOSTILE, "bob", "biology", 50 * MIB)


def test_running_job_has_no_end_and_no_noughts(seen: Seen) -> None:
    (row,) = [row for row in seen.running if row.job == seen.jobs["cancelled"] and row.step is None]
    assert (row.state, row.ended, row.cpu_time, row.exit_code) == ("RUNNING", None, None, None)
    assert (row.owner, row.cpus, row.memory) == ("alice", 1, 100 * MIB)


def test_queue_says_why_jobs_wait_and_what_running_ones_were_given(pair_of_nodes: Slurm, seen: Seen) -> None:
    queued = {row.job: row for row in seen.queue if row.part == "queued"}
    assert queued[seen.jobs["held"]].reason == "JobHeldUser"
    waiting = queued[seen.jobs["waiting"]]
    assert (waiting.state, waiting.reason) == ("PENDING", "Dependency")
    assert (waiting.dependency or "").startswith(f"afterok:{seen.jobs['timeout']}")
    given = [row for row in seen.queue if row.part == "given" and row.job == seen.jobs["nodes"]]
    assert sorted(name for row in given for name in nodelist.expand(row.nodes or "")) == pair_of_nodes.nodes
    assert {row.memory for row in given} == {100 * MIB}
    assert all(row.devices in ("gpu:a100:0", "gpu:a100:1") and row.cores for row in given)


def test_nodes_that_are_alike_share_a_row(pair_of_nodes: Slurm) -> None:
    def idle() -> bool:
        return pair_of_nodes.run("sinfo", "-h", "-o", "%T").strip() == "idle"

    wait_until(idle, 60, "all nodes are idle again")
    (row,) = collected("slurmnode")
    assert nodelist.expand(row.nodes) == pair_of_nodes.nodes
    assert (row.node_count, row.state, row.flags, row.partitions) == (2, "IDLE", None, "normal")
    assert (row.cpus, row.memory, row.gpus, row.cpus_given, row.gpus_given) == (8, 8000 * MIB, 2, 0, 0)
    last = pair_of_nodes.nodes[-1]
    pair_of_nodes.run("scontrol", "update", f"NodeName={last}", "State=DRAIN", "Reason=bad dimm, State=DOWN\nsee #42")
    drained = next(row for row in collected("slurmnode") if row.flags)
    assert (drained.nodes, drained.state, drained.flags, drained.reason_by) == (last, "IDLE", "DRAIN", "root")
    assert drained.reason == "bad dimm, State=DOWN\nsee #42"
    pair_of_nodes.run("scontrol", "update", f"NodeName={last}", "State=RESUME")


def test_agent_sends_a_row_once_and_goes_on_after_a_restart(seen: Seen, tmp_path: Path) -> None:
    settings = from_values(
        {"collect": {"slurmjob": {"here": True}}, "lock": str(tmp_path / "agent.lock")}, only=("slurmjob",)
    )
    sent: list[Message] = []

    class Sink:
        def send(self, message: Message) -> None:
            sent.append(message)

        def close(self) -> None:
            pass

    def numbers(message: Message) -> set[str]:
        return set(message.rows.get("job", ()))

    def run(host: Host, times: int) -> list[Message]:
        agent = Agent(settings, host, SystemClock(), [Sink()])
        begun = len(sent)
        for _ in range(times):
            agent.schedule = Schedule({"slurmjob": 60.0}, 0.0)
            agent.step()
        agent.close()
        return sent[begun:]

    host = Host()
    messages = run(host, 6)
    assert {message.status for message in messages} == {"ok"}
    # A day back in four slices; then all was sent.
    # What was cancelled before it could have started is not in Slurm's accounting.
    ever = {number for name, number in seen.jobs.items() if name not in ("held", "waiting")}
    assert numbers(messages[4]) | numbers(messages[3]) >= ever
    assert numbers(messages[5]) == set()
    assert host.keep(Calls).count == 6 + 2, "one call a run, and two columns that this release refused"
    again = run(Host(), 1)
    assert numbers(again[0]) >= ever, "the last minutes, all of it once more"


def sampled(slurm: Slurm, *rights: str) -> tuple[set[str], str]:
    """The jobs a user without a name in Slurm sees, and the way it was asked."""
    copy = slurm.base / "work" / "src"
    if not copy.exists():
        # Where everybody can read it, for the system's own Python: ours may be in a home that is closed to others.
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copy)
    changed = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *rights)
    done = subprocess.run(
        [*changed, "/usr/bin/python3", "-B", "-m", "jobsight", "sample", "slurmjob", "agent", "--format=jsonl"],
        env={"PATH": PATH, "SLURM_CONF": str(slurm.conf), "PYTHONPATH": str(copy), "JOBSIGHT_HOME": "/nonexistent"},
        cwd=slurm.base / "work", capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    jobs, agent = map(json.loads, done.stdout.splitlines())
    assert (jobs["collector"], jobs["status"]) == ("slurmjob", "ok")
    return set(jobs["rows"].get("job", ())), agent["rows"]["calls_way"][0]


def test_user_without_rights_sees_what_slurm_shows_and_the_agent_says_so(pair_of_nodes: Slurm, seen: Seen) -> None:
    found, way = sampled(pair_of_nodes)
    assert found.isdisjoint(seen.jobs.values())
    assert way == "as nobody, who may not see everything"


def test_capability_to_become_slurm_shows_everything(pair_of_nodes: Slurm, seen: Seen) -> None:
    found, way = sampled(pair_of_nodes, "--inh-caps=+setuid,+setgid", "--ambient-caps=+setuid,+setgid")
    assert found >= {seen.jobs["burner"], seen.jobs["hog"]}
    assert way == "setpriv to slurm"
