"""Answers about real jobs of a real Slurm whose truth is known: how a program scales, how two nodes share its work,
what it used on both together, and whether what is suggested for next time suffices.

Two agents stand for two nodes: each is shown the control groups of one. A third sees both, as where two of Slurm's
nodes share a machine.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from tests.conftest import Program, answers, free_port, wait_until
from tests.integration.slurm import Slurm, running_pair  # noqa: F401

pytestmark = pytest.mark.slow

MIB = 2**20
SERIAL, PARALLEL = 3.0, 6.0
TRIES = 2
BURN = """\
import json, os, sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
def until(name):
    return not os.path.exists(f"{os.environ['SLURM_JOB_NAME']}.{name}")
def tell(**facts):
    place = f"{os.environ['SLURM_JOB_ID']}.{os.environ.get('SLURM_PROCID', 0)}.told"
    with open(place + ".new", "w") as file:
        json.dump(facts, file)
    os.rename(place + ".new", place)
"""
PROGRAMS = {
    "scaled": f"""
with open(os.environ["SLURM_JOB_ID"] + ".pid", "w") as file:
    file.write(str(os.getpid()) + chr(10))
while not os.path.exists(os.environ["SLURM_JOB_ID"] + ".go"):
    time.sleep(0.02)
began = time.time()
burn({SERIAL})
middle = time.time()
children = []
for _ in range(2):
    children.append(os.fork())
    if not children[-1]:
        burn({PARALLEL} / 2)
        os._exit(0)
for child in children:
    os.waitpid(child, 0)
tell(serial=middle - began, parallel=time.time() - middle)
""",
    "even": """
burn(5)
tell(cpu=time.process_time())
while until("stop"):
    time.sleep(0.1)
""",
    "uneven": """
while until("stop"):
    burn(0.1) if os.environ["SLURM_NODEID"] == "0" else time.sleep(0.1)
tell(cpu=time.process_time())
while until("leave"):
    time.sleep(0.1)
""",
    "fitting": """
block = bytearray(150 << 20)
block[::4096] = b"x" * len(block[::4096])
end = time.process_time() + 3
while time.process_time() < end or until("stop"):
    pass
tell(cpu=time.process_time())
""",
}
SETTINGS = """\
cluster: {cluster}
node: {node}
lock: {home}/{name}.lock
spool: {{path: {home}/{name}.spool}}
collect:
  process: {{enabled: {process}, every: 1s}}
  cgroup: {{every: 1s}}
  allocation: {{every: 1s, path: {jobs}}}
  slurmjob: {{enabled: {slurm}, here: true, every: 3s, survey: 3s, history: 10m}}
  slurmqueue: {{enabled: false}}
"""
# Other nodes' groups look empty to whoever is started so.
COVER = """
for folder in /sys/fs/cgroup/*/slurm_"$0" /sys/fs/cgroup/system.slice/"$0"_slurmstepd.scope; do
  [ -d "$folder" ] && { mount -t tmpfs none "$folder" || exit 1; }
done
exec "$@"
"""


class Agent(Program):
    """An agent that is not shown the control groups of one of Slurm's nodes."""

    def __init__(self, home: Path, hidden: str, *arguments: str) -> None:
        program = [sys.executable, "-m", "jobsight", "agent", *arguments]
        self.process = subprocess.Popen(
            ["unshare", "-m", "--propagation", "private", "sh", "-c", COVER, hidden, *program],
            env={**os.environ, "JOBSIGHT_HOME": str(home)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip


class Scene(NamedTuple):
    """A cluster that is watched, and where to ask."""

    slurm: Slurm
    url: str

    @property
    def work(self) -> Path:
        return self.slurm.base / "work"

    def submit(self, name: str, *options: str, start: str = "") -> str:
        (self.work / f"{name}.py").write_text(BURN + PROGRAMS[name])
        script = f"{start} /usr/bin/python3 -I -S {name}.py\ntrue"
        return self.slurm.submit("alice", script, "-J", name, *options)

    def told(self, number: str, task: int = 0) -> Any:
        return json.loads((self.work / f"{number}.{task}.told").read_text())

    def until_told(self, number: str, tasks: int = 1, seconds: float = 90) -> None:
        paths = [self.work / f"{number}.{task}.told" for task in range(tasks)]
        wait_until(lambda: all(path.exists() for path in paths), seconds, f"job {number} has done its work")

    def go(self, number: str) -> None:
        """Let it begin, before all others: what else this machine does would make it look as if it did not scale."""
        pid = self.work / f"{number}.pid"
        wait_until(lambda: pid.exists() and pid.read_text().endswith("\n"), 60, f"job {number} is there")
        with contextlib.suppress(OSError):  # a machine may have no groups of sessions, or give nobody precedence
            Path(f"/proc/{int(pid.read_text())}/autogroup").write_text("-19")
            os.setpriority(os.PRIO_PROCESS, int(pid.read_text()), -19)
        self.signal(number, "go")

    def signal(self, name: str, what: str) -> None:
        (self.work / f"{name}.{what}").touch()

    def job(self, number: str, cluster: str = "apart") -> dict[str, Any]:
        """All that is known of it; empty if nothing is."""
        keys = [one["key"] for one in self._get(f"/api/v1/named/{number}") if one["cluster"] == cluster]
        found: dict[str, Any] = self._get(f"/api/v1/job/{quote(keys[0], safe='')}") if keys else {}
        return found

    def scaling(self, number: str) -> dict[str, Any]:
        key = self.job(number)["summary"]["key"]
        found: dict[str, Any] = self._get(f"/api/v1/scaling/{quote(key, safe='')}")
        return found

    def _get(self, path: str) -> Any:
        with urlopen(f"{self.url}{path}", timeout=30) as answer:
            return json.load(answer)

    def until_seen(self, number: str, samples: int, cluster: str = "apart") -> None:
        def seen() -> bool:
            found = self.job(number, cluster)
            return bool(found) and len(found["series"]["cpu"]["start"]) >= samples

        wait_until(seen, 90, f"job {number} was seen {samples} times")

    def until_ended(self, number: str) -> dict[str, Any]:
        def over() -> bool:
            found = self.job(number)
            return bool(found) and found["summary"]["state"] == "ended" and bool(found["summary"]["batch"])

        wait_until(over, 90, f"the end of job {number} is known")
        return self.job(number)


@pytest.fixture(scope="module")
def scene(pair_of_nodes: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    slurm, home, port = pair_of_nodes, tmp_path_factory.mktemp("home"), free_port()
    url = f"http://127.0.0.1:{port}"
    programs = [Program(home, "serve", "--listen", f"127.0.0.1:{port}")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(slurm.conf))
        try:
            # Slurm makes a node's control groups with its first job.
            slurm.wait(slurm.submit("alice", "srun true", "-N2"), "COMPLETED")
            wait_until(lambda: answers(f"{url}/api/nodes"), what="the server answers")
            first, second = slurm.nodes
            token = home / "store" / "token"
            for name, hidden, more in (
                (first, second, {"cluster": "apart", "process": "true", "slurm": "true"}),
                (second, first, {"cluster": "apart", "process": "false", "slurm": "false"}),
                ("whole", "nobody", {"cluster": "whole", "process": "true", "slurm": "false"}),
            ):
                settings = home / f"{name}.yaml"
                settings.write_text(SETTINGS.format(name=name, node=name, home=home, jobs=slurm.jobs, **more))
                given = ("--token-file", str(token)) if token.exists() else ()
                programs.append(Agent(home, hidden, "--settings", str(settings), "--url", f"{url}/ingest", *given))
            yield Scene(slurm, url)
        finally:
            for program in reversed(programs):
                print(program.stop()[1])


def test_serial_part_of_a_program_is_found_and_two_sizes_make_no_law(scene: Scene) -> None:
    place, truth = ("-w", scene.slurm.node), SERIAL / (SERIAL + PARALLEL)
    numbers = [scene.submit("scaled", "-c1", *place, start="taskset -c 0")]
    scene.go(numbers[0])
    scene.until_told(numbers[0])
    quiet = False
    for _ in range(TRIES):
        numbers.append(scene.submit("scaled", "-c2", *place))
        scene.go(numbers[-1])
        scene.until_told(numbers[-1])
        times = scene.told(numbers[-1])
        print(f"on two cores: {times}")
        # Whether this machine had two cores to give is known to the program itself.
        quiet = times["serial"] < 1.3 * SERIAL and PARALLEL / times["parallel"] > 1.6
        if quiet:
            break
    for number in numbers:
        scene.until_ended(number)
    found = scene.scaling(numbers[-1])
    once = found["once"]
    assert truth <= once["serial_high"], "a machine that is busy with other things makes a program look more serial"
    if quiet:
        assert once["serial_low"] <= truth
    assert (once["cpus"], once["serial_high"] - once["serial_low"] < 0.8) == (2, True)
    count = len(numbers)
    assert [run["cores"] for run in found["runs"]] == [1] + [2] * (count - 1)
    assert found["law"] is None
    assert found["refused"] == f"There are {count} finished runs of python3 named scaled by alice; a law takes 4."


def test_job_on_two_nodes_used_what_both_used(scene: Scene) -> None:
    number = scene.submit("even", "-N2", "--ntasks-per-node=1", start="srun")
    scene.until_told(number, 2)
    for cluster in ("apart", "whole"):
        wait_until(lambda c=cluster: bool(scene.job(number, c)), 60, "it has been seen")  # type: ignore[misc]
        # What was used before the program said so has been sampled when two more samples have come.
        before = scene.job(number, cluster)["summary"]["seen"]
        wait_until(lambda c=cluster, b=before: scene.job(number, c)["summary"]["seen"] > b + 1, 60, "more samples")  # type: ignore[misc]
    scene.signal("even", "stop")
    used = [scene.told(number, task)["cpu"] for task in (0, 1)]
    apart, whole = scene.until_ended(number), scene.job(number, "whole")
    parts = {share["node"]: share["cpu_time"] for share in apart["answers"]["balance"]["nodes"]}
    assert parts.keys() == set(scene.slurm.nodes)
    assert apart["summary"]["cpu_time"] == pytest.approx(sum(parts.values()))
    # Slurm's own programs are in the groups too, and use a little.
    for total in (apart["summary"]["cpu_time"], whole["summary"]["cpu_time"]):
        assert sum(used) * 0.98 <= total <= sum(used) + 2.0
    assert min(parts.values()) >= 0.98 * min(used)
    assert apart["answers"]["binding"]["resource"] != "busiest node"


def test_node_that_waits_for_the_other_is_found(scene: Scene) -> None:
    number = scene.submit("uneven", "-N2", "--ntasks-per-node=1", start="srun")
    scene.until_seen(number, 8)
    scene.signal("uneven", "stop")
    scene.until_told(number, 2)
    scene.signal("uneven", "leave")
    job = scene.until_ended(number)
    first, second = scene.slurm.nodes
    found = job["answers"]
    assert found["binding"]["resource"] == "busiest node"
    assert f"The busiest of 2 nodes binds: {first} did" in job["verdict"]
    assert found["balance"]["idle"] == [second]
    assert found["balance"]["imbalance"] > 0.4
    assert "--nodes=1" in [line["option"] for line in found["request"]["lines"]]


def test_what_is_suggested_suffices_when_it_is_submitted_again(scene: Scene) -> None:
    number = scene.submit("fitting", "-c4", "--mem=800M", "--time=60", "-w", scene.slurm.node)
    # Not by time: a machine that is busy is sampled late.
    scene.until_seen(number, 10)
    scene.signal("fitting", "stop")
    scene.until_told(number)
    job = scene.until_ended(number)
    request = job["answers"]["request"]
    assert request["refused"] == ""
    assert request["sure"]
    asked = {line["option"].partition("=")[0]: line["value"] for line in request["lines"]}
    assert asked["--cpus-per-task"] == 1
    assert 150 * MIB < asked["--mem"] < 800 * MIB
    assert 0 < asked["--time"] < 3600
    script = "\n".join([*job["answers"]["script"], "/usr/bin/python3 -I -S fitting.py"])
    again = scene.slurm.submit("alice", script, "-J", "fitting")
    scene.until_told(again)
    ended = scene.until_ended(again)["summary"]["batch"]
    assert (ended["state"], ended["exit_code"]) == ("COMPLETED", 0)
    # It was given what the lines say, and no more.
    words = scene.slurm.run("sacct", "-X", "-n", "-P", "-o", "AllocTRES", "-j", again).strip().split(",")
    given = dict(word.split("=", 1) for word in words)
    assert (given["cpu"], given["node"]) == ("1", "1")
    assert given["mem"] == f"{int(asked['--mem']) // MIB}M"
