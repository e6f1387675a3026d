"""Ten thousand processes of five milliseconds each: hardly one is ever sampled, the job's control group has them all.

Nobody in the job waits for them, as it is with programs that go into the background, so no parent inherits what they
used. Whoever inherits orphans outside the job adds it up instead, by wait4: that is the truth.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobsight.analyse.job import Job
from jobsight.analyse.ledger import Ledger
from jobsight.ingest.accept import Accepted, accept
from tests.analyse.conftest import Nothing
from tests.conftest import Program, wait_until

CGROUP = Path("/sys/fs/cgroup")
COUNT, WORKERS, SECONDS = 10_000, 2, 0.005

# argv: how many, how long, and the groups to enter. Each worker has one short life at a time: its end is that of a
# pipe which only that one has. It is forked by somebody who ends at once, and so becomes the reaper's.
CROWD = """
import ctypes, json, os, sys, time
count, workers, seconds, groups = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]
PR_SET_CHILD_SUBREAPER = 36
assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1) == 0
def live():
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    os._exit(0)
def work():
    os.setsid()
    for group in groups:
        with open(f"{group}/cgroup.procs", "w") as file:
            file.write(str(os.getpid()))
    for _ in range(count // workers):
        over, alive = os.pipe()
        pid = os.fork()
        if not pid:
            if not os.fork():
                live()
            os._exit(0)
        os.close(alive)
        os.waitpid(pid, 0)
        os.read(over, 1)
        os.close(over)
    os._exit(0)
started = [os.fork() or work() for _ in range(workers)]
short, others, ended = 0.0, 0.0, 0
while True:
    try:
        pid, status, usage = os.wait4(-1, 0)
    except ChildProcessError:
        break
    assert status == 0
    if pid in started:
        others += usage.ru_utime + usage.ru_stime
    else:
        short += usage.ru_utime + usage.ru_stime
        ended += 1
print(json.dumps({"short": short, "others": others, "ended": ended}))
"""


@pytest.fixture
def groups() -> Iterator[list[Path]]:
    """A job's control group where CPU time is counted, as Slurm would make it."""
    number = 5_000_000 + os.getpid()
    unified = (CGROUP / "cgroup.controllers").exists()
    group = CGROUP / (f"slurmstepd.scope/job_{number}" if unified else f"cpuacct/slurm/uid_0/job_{number}")
    try:
        group.mkdir(parents=True)
    except OSError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"CANNOT MAKE CONTROL GROUPS HERE, SO SHORT LIVES GO UNTESTED: {error}")
    yield [group]
    wait_until(lambda: not (group / "cgroup.procs").read_text(), 20)
    for folder in (group, *list(group.parents)[:2]):
        # The folders above may be a real Slurm's, and then they are not empty.
        with contextlib.suppress(OSError):
            folder.rmdir()


def messages(tree: Path) -> list[Accepted]:
    """All of processes and control groups, in the order of their time."""
    found = []
    for file in tree.rglob("*.jsonl"):
        for line in file.read_bytes().splitlines():
            message = accept(line)
            assert isinstance(message, Accepted), message
            found.append(message)
    return sorted(found, key=lambda message: message.time)


def job_of(sent: list[Accepted], number: str) -> Job:
    ledger = Ledger(Nothing())
    for message in sent:
        if message.status == "ok":
            ledger.take(message)
    (job,) = (job for job in ledger.emptied()[1] if job.id == number)
    return job


def samples(tree: Path) -> int:
    """How often control groups were sampled."""
    return sum(file.read_bytes().count(b"\n") for file in tree.rglob("cgroup-*.jsonl"))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_control_group_has_the_short_lives_that_sampling_misses(
    start: Callable[..., Program], tmp_path: Path, groups: list[Path]
) -> None:
    settings = tmp_path / "agent.yaml"
    settings.write_text(
        f"sinks: [directory: {{path: {tmp_path}/tree}}]\n"
        "collect: {process: {every: 1s}, cgroup: {every: 1s}}\n"
    )  # fmt: skip
    agent = start("agent", "--settings", str(settings))
    tree = tmp_path / "tree"
    wait_until(lambda: samples(tree), what="the agent samples")
    command = [sys.executable, "-I", "-S", "-c", CROWD, str(COUNT), str(WORKERS), str(SECONDS), *map(str, groups)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=500)
    truth = json.loads(done.stdout)
    assert truth["ended"] == COUNT
    assert truth["short"] >= COUNT * SECONDS

    enough = samples(tree) + 3
    wait_until(lambda: samples(tree) >= enough, what="samples after the end")
    assert agent.stop()[0] == 0
    number = groups[0].name.removeprefix("job_")
    job = job_of(messages(tree), number)
    parts = {part.source: part for part in job.parts}
    counted, sampled = parts["cgroup"].cpu_time, parts["process"].cpu_time
    assert counted is not None
    assert sampled is not None
    assert (job.scheduler, job.id) == ("slurm", number)
    assert counted >= 0.98 * truth["short"]
    assert counted == pytest.approx(truth["short"] + truth["others"], rel=0.02)
    assert sampled < 0.5 * counted, "processes alone would have told it"
