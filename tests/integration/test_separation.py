"""Whose CPU time it was, with no batch system: real processes, through collector, wire and ledger, against wait4.

The actors have a process namespace of their own. Its first process is the stage: it samples, and everybody descends
from it, so that what it and its children used, as the kernel tells it in the end, is the whole.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jobsight import catalogue
from jobsight.agent.run import run
from jobsight.analyse.job import Job
from jobsight.analyse.ledger import Ledger
from jobsight.host import Host
from jobsight.ingest.accept import Accepted, accept
from jobsight.schema.message import Origin
from jobsight.schema.wire import encode

pytestmark = pytest.mark.slow

STAGE = Path(__file__).parent / "stage.py"
ALICE, BOB = "61001", "61002"
# Of a process the kernel tells whole ticks, cut off: two of its own, two of its children's.
TICKS = 0.04


class Play(NamedTuple):
    """What a stage gave: jobs as the ledger has them, and the truth."""

    jobs: list[Job]
    roles: dict[str, dict[str, Any]]
    used: dict[int, float]
    """CPU time by pid, ended children that were waited for included."""
    total: float

    def job(self, role: str) -> Job:
        """The one job of an actor's session."""
        (found,) = (job for job in self.jobs if job.id == str(self.roles[role]["session"]))
        return found


class Shelf:
    """Jobs that the ledger has handed over, as a store keeps them."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}

    def latest_job(self, cluster: str, scheduler: str, job: str, scope: str, until: float) -> Job | None:
        place = (cluster, scheduler, job, scope)
        known = [kept for kept in self.jobs.values() if kept.started <= until]
        found = [kept for kept in known if (kept.cluster, kept.scheduler, kept.id, kept.scope) == place]
        return max(found, key=lambda kept: kept.started, default=None)

    def named_jobs(self, cluster: str, scheduler: str, numbers: Sequence[str]) -> list[Job]:
        kept = [job for job in self.jobs.values() if job.cluster == cluster and job.scheduler == scheduler]
        return [job for job in kept if job.id in numbers]


def counted(lines: list[bytes]) -> list[Job]:
    """All jobs of some messages, as the server counts them."""
    shelf = Shelf()
    ledger = Ledger(shelf)
    for line in lines:
        message = accept(line)
        assert isinstance(message, Accepted), message
        assert message.status == "ok", message.error
        ledger.take(message)
        shelf.jobs |= {job.key: job for job in ledger.emptied()[1]}
    return list(shelf.jobs.values())


def cpu(job: Job) -> float:
    (part,) = job.parts
    assert part.source == "process"
    assert part.cpu_time is not None
    return part.cpu_time


def lacking(what: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}: the separation of jobs must be tested")
    pytest.skip(f"{what.upper()}: THE SEPARATION OF JOBS GOES UNTESTED")


def play(*scene: str, proc: str = "hidepid=0") -> Play:
    if os.geteuid() != 0:
        lacking("not root, so there can be no namespace and no second user")
    if shutil.which("unshare") is None:
        lacking("no unshare")
    mounted = f'mount -t proc -o {proc} proc /proc && exec "$0" "$@"'
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--propagation", "private",
               "sh", "-c", mounted, sys.executable, str(STAGE), *scene]  # fmt: skip
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    *lines, truth = done.stdout.splitlines()
    told = json.loads(truth)
    used = {int(pid): seconds for pid, seconds in told["used"].items()}
    return Play(counted(lines), told["roles"], used, told["total"])


def test_everybody_gets_what_was_theirs() -> None:
    """Two users, one of them with two sessions, a pipeline, a daemon: all at once."""
    found = play("crowd")
    roles = found.roles
    sessions = {
        "alice": ["alice"],
        "alice again": ["alice again"],
        "bob": ["bob"],
        "shell": ["shell", "left", "middle", "right"],
        "starter": ["starter"],
        "daemon": ["daemon"],
    }
    for leader, members in sessions.items():
        assert {roles[member]["session"] for member in members} == {roles[leader]["session"]}
        truth = found.used[roles[leader]["pid"]]
        assert truth > 0.3, leader
        assert cpu(found.job(leader)) == pytest.approx(truth, rel=0.02, abs=TICKS * len(members)), leader
        assert found.job(leader).part("vm", "process").processes_peak == len(members), leader
        assert not found.job(leader).alive
    assert len({roles[leader]["session"] for leader in sessions}) == len(sessions)
    owners = {leader: found.job(leader).owner for leader in sessions}
    assert owners == {
        "alice": ALICE,
        "alice again": ALICE,
        "bob": BOB,
        "shell": BOB,
        "starter": ALICE,
        "daemon": ALICE,
    }
    # A pipeline is one job, though its members are in process groups of their own.
    assert len({roles[member]["group"] for member in sessions["shell"]}) == 4
    # Nobody else was there but the stage.
    assert {job.id for job in found.jobs} == {"1", *(str(roles[leader]["session"]) for leader in sessions)}


def test_what_jobs_used_adds_up_to_all_that_was_used() -> None:
    """Each is waited for by somebody: the pipeline by its shell, shells and the daemon by the stage, which is init.
    None of it may be counted with the heir as well.
    """
    found = play("crowd")
    assert sum(map(cpu, found.jobs)) == pytest.approx(found.total, rel=0.02, abs=TICKS * len(found.roles))


@pytest.mark.parametrize("between", ["a sample between", "no sample between"])
def test_a_session_number_that_comes_back_is_another_users_job(between: str) -> None:
    found = play("reuse", between, "after a while")
    assert found.roles["first"]["pid"] == found.roles["second"]["pid"] == found.roles["second"]["session"]
    both = [job for job in found.jobs if job.id == str(found.roles["first"]["pid"])]
    by_owner = {job.owner: cpu(job) for job in both}
    assert by_owner == {
        ALICE: pytest.approx(found.roles["first"]["used"], rel=0.02, abs=TICKS),
        BOB: pytest.approx(found.roles["second"]["used"], rel=0.02, abs=TICKS),
    }
    assert len(both) == len({job.key for job in both}) == 2
    assert sum(map(cpu, found.jobs)) == pytest.approx(found.total, rel=0.02, abs=TICKS * 3)


@pytest.mark.parametrize("between", ["a sample between", "no sample between"])
def test_a_session_number_that_comes_back_at_once_is_another_users_job_too(between: str) -> None:
    found = play("reuse", between, "at once")
    both = [job for job in found.jobs if job.id == str(found.roles["first"]["pid"])]
    assert {job.owner: cpu(job) for job in both} == {
        ALICE: pytest.approx(found.roles["first"]["used"], rel=0.02, abs=TICKS),
        BOB: pytest.approx(found.roles["second"]["used"], rel=0.02, abs=TICKS),
    }
    assert len({job.key for job in both}) == 2


def test_a_process_number_that_comes_back_within_a_job_counts_twice_for_it() -> None:
    found = play("again")
    assert found.roles["first"]["pid"] == found.roles["second"]["pid"]
    truth = found.used[found.roles["leader"]["pid"]]
    assert truth > 1.5
    assert cpu(found.job("leader")) == pytest.approx(truth, rel=0.02, abs=TICKS * 3)
    assert sum(map(cpu, found.jobs)) == pytest.approx(found.total, rel=0.02, abs=TICKS * 4)


@pytest.mark.parametrize("proc", ["hidepid=0", "hidepid=1", "hidepid=2"])
def test_what_a_parent_inherits_is_not_counted_again_where_root_is_hidden(proc: str) -> None:
    found = play("heirs", proc=proc)
    job = found.job("parent")
    assert job.owner == ALICE
    assert cpu(job) == pytest.approx(found.roles["parent"]["used"], rel=0.02, abs=TICKS * 3)


class Then:
    """A clock that stands."""

    def __init__(self, wall: float) -> None:
        self._wall = wall

    def wall(self) -> float:
        return self._wall

    def steady(self) -> float:
        return 0.0


STAT = "{pid} (work) R 1 {pid} {pid} 0 -1 4194560 1 0 0 0 {ticks} 0 0 0 20 0 1 0 5000 4096 385 0 0 0 0 0\n"


def booted(root: Path, boot: str, now: float, ticks: int) -> bytes:
    """A message of a machine a minute after its boot. Whatever its boot, process 300 started in its 50th second."""
    texts = {
        "machine.json": json.dumps({"node": "n1", "uptime": 60.0, "page": 4096}),
        "owners.json": json.dumps({"proc/300": 61001}),
        "proc/sys/kernel/random/boot_id": boot,
        "proc/self/stat": STAT.format(pid=1, ticks=0),
        "proc/300/stat": STAT.format(pid=300, ticks=ticks),
        "proc/300/cgroup": "0::/\n",
    }
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    host = Host(str(root))
    try:
        message = run(catalogue.collector("process"), None, host, Origin("fox", "n1", host.boot()), Then(now), 30.0)
    finally:
        host.close()
    return encode(message)


@pytest.mark.parametrize("pause", [70.0, 86400.0], ids=["a quick reboot", "a day later"])
def test_the_same_numbers_after_a_reboot_are_another_job(tmp_path: Path, pause: float) -> None:
    now = 1_700_000_000.0
    jobs = counted(
        [
            booted(tmp_path / "one", "11111111-0000-0000-0000-000000000000", now, ticks=800),
            booted(tmp_path / "two", "22222222-0000-0000-0000-000000000000", now + pause, ticks=200),
        ]
    )
    assert sorted((job.id, job.owner, cpu(job)) for job in jobs) == [("300", ALICE, 2.0), ("300", ALICE, 8.0)]
    assert len({job.key for job in jobs}) == 2
