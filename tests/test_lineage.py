"""Whose a process was: what parents tell, which of them tell nothing, and what is never guessed."""

import json
from pathlib import Path

import pytest

from jobsight.formats.taskstats import MICROSECONDS, Task
from jobsight.host import Host
from jobsight.lineage import UNKNOWN, Job, Lineage, Member, Sample

NOW = 5000.0
SLURM = "4:memory:/slurm/uid_1001/job_8/step_0\n"


def ended(pid: int, parent: int, uid: int = 0, command: str = "sh", lived: float = 0.1) -> Task:
    return Task(pid, True, True, parent, uid, command, int(lived * MICROSECONDS), 2, 1, 1, 0, 0, 4096)


class Machine(Host):
    """A machine whose processes come and go as a test wants it, and that notes what was read."""

    def __init__(self, root: Path) -> None:
        (root / "machine.json").write_text(json.dumps({"uptime": NOW}))
        super().__init__(str(root))
        self.read_so_far: list[str] = []

    def piece(self, path: str, size: int = 4096) -> bytes:
        self.read_so_far.append(path)
        return super().piece(path, size)

    def live_on(
        self, pid: int, session: int, cgroup: str = "0::/\n", *, uid: int = 0, command: str = "sh", **more: int | str
    ) -> None:
        folder = Path(self.root) / f"proc/{pid}"
        folder.mkdir(parents=True, exist_ok=True)
        state, flags, started = more.get("state", "S"), more.get("flags", 4194304), more.get("started", 100)
        line = (
            f"{pid} ({command}) {state} 1 {pid} {session} 0 -1 {flags} 1 0 0 0 4 7 0 0 20 0 1 0 {started}00 40 38 0 0"
        )
        (folder / "stat").write_text(line)
        (folder / "cgroup").write_text(cgroup)
        self._owners[f"proc/{pid}"] = uid

    def die(self, pid: int) -> None:
        folder = Path(self.root) / f"proc/{pid}"
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def jobs(lineage: Lineage, machine: Machine, *tasks: Task, now: float = NOW) -> dict[int, Job]:
    return {task.group: job for job, task in lineage.placed(machine, list(tasks), now)}


def test_child_belongs_to_the_job_of_its_living_parent(machine: Machine) -> None:
    machine.live_on(10, 10)
    machine.live_on(20, 20, SLURM, uid=1001)
    found = jobs(Lineage(), machine, ended(11, 10), ended(21, 20, uid=1001))
    assert found == {11: ("session", "10"), 21: ("slurm", "8")}


def test_family_that_ended_together_belongs_to_the_one_that_lives(machine: Machine) -> None:
    machine.live_on(10, 10)
    found = jobs(Lineage(), machine, ended(13, 12), ended(12, 11), ended(11, 10))
    assert found == dict.fromkeys((11, 12, 13), ("session", "10"))


def test_child_of_a_parent_that_is_just_going_waits_for_its_record(machine: Machine) -> None:
    machine.live_on(10, 10)
    lineage = Lineage()
    assert jobs(lineage, machine, ended(12, 11)) == {}
    assert jobs(lineage, machine, ended(11, 10)) == dict.fromkeys((11, 12), ("session", "10"))
    assert jobs(lineage, machine) == {}


def test_child_of_a_parent_nobody_heard_of_is_unknown_after_one_more_batch(machine: Machine) -> None:
    lineage = Lineage()
    assert jobs(lineage, machine, ended(12, 11)) == {}
    assert jobs(lineage, machine) == {12: UNKNOWN}


def test_record_that_comes_after_its_parents_is_placed(machine: Machine) -> None:
    machine.live_on(10, 10)
    lineage = Lineage()
    jobs(lineage, machine, ended(11, 10))
    assert jobs(lineage, machine, ended(12, 11)) == {12: ("session", "10")}


@pytest.mark.parametrize("going", [{"state": "Z"}, {"flags": 4194304 + 4}])
def test_parent_that_is_going_is_not_asked_for_its_control_group(
    machine: Machine, going: dict[str, int | str]
) -> None:
    machine.live_on(10, 10, **going)  # type: ignore[arg-type]
    assert jobs(Lineage(), machine, ended(11, 10)) == {}


@pytest.mark.parametrize("command", ["sshd", "systemd", "containerd-shim", "conmon"])
def test_launcher_tells_nothing_of_what_it_starts(machine: Machine, command: str) -> None:
    machine.live_on(10, 10, "1:name=systemd:/system.slice/some.service\n", command=command)
    found = jobs(Lineage(), machine, ended(12, 11), ended(11, 10))
    assert found == {11: UNKNOWN, 12: UNKNOWN}


def test_child_of_init_or_of_the_kernel_is_unknown(machine: Machine) -> None:
    machine.live_on(1, 1)
    machine.live_on(40, 0, flags=0x00200000)
    assert jobs(Lineage(), machine, ended(11, 1), ended(12, 40)) == {11: UNKNOWN, 12: UNKNOWN}


def test_parent_with_a_child_in_another_job_tells_nothing(machine: Machine) -> None:
    machine.live_on(10, 10, command="runtime")
    machine.live_on(20, 20)
    lineage = Lineage()
    lineage.look_around(
        Sample(
            [
                Member(10, 100.0, 1, ("session", "10")),
                Member(15, 100.0, 10, ("docker", "0123456789ab")),
                Member(20, 100.0, 1, ("session", "20")),
                Member(25, 100.0, 20, ("session", "20")),
            ]
        )
    )
    assert jobs(lineage, machine, ended(11, 10), ended(21, 20)) == {11: UNKNOWN, 21: ("session", "20")}


def test_parent_that_is_not_sampled_tells_nothing_if_a_child_lives_elsewhere(machine: Machine) -> None:
    machine.live_on(10, 10, command="runtime")
    lineage = Lineage()
    lineage.look_around(Sample([Member(15, 100.0, 10, ("docker", "0123456789ab"))]))
    assert jobs(lineage, machine, ended(11, 10)) == {11: UNKNOWN}


def test_what_root_starts_for_somebody_is_that_ones_unless_it_is_in_a_batch_job(machine: Machine) -> None:
    machine.live_on(10, 10)
    machine.live_on(20, 20, SLURM)
    found = jobs(Lineage(), machine, ended(11, 10, uid=1001), ended(12, 10), ended(21, 20, uid=1001))
    assert found == {11: UNKNOWN, 12: ("session", "10"), 21: ("slurm", "8")}


def test_process_that_was_sampled_belongs_where_it_was_seen(machine: Machine) -> None:
    machine.live_on(10, 10)
    lineage = Lineage()
    lineage.look_around(Sample([Member(11, NOW - 60, 10, ("slurm", "8"))]))
    assert jobs(lineage, machine, ended(11, 10, lived=60)) == {11: ("slurm", "8")}


def test_sampled_process_that_had_the_same_number_is_another(machine: Machine) -> None:
    machine.live_on(10, 10)
    lineage = Lineage()
    lineage.look_around(Sample([Member(11, NOW - 900, 9, ("slurm", "8"))]))
    assert jobs(lineage, machine, ended(11, 10, lived=1)) == {11: ("session", "10")}


def test_parent_is_read_once_until_the_next_sample(machine: Machine) -> None:
    machine.live_on(10, 10)
    lineage = Lineage()
    for pid in range(100, 200):
        jobs(lineage, machine, ended(pid, 10))
    assert machine.read_so_far == ["proc/10/cgroup", "proc/10/stat"]
    machine.live_on(10, 10, SLURM)
    assert jobs(lineage, machine, ended(200, 10)) == {200: ("session", "10")}
    lineage.look_around(Sample())
    assert jobs(lineage, machine, ended(201, 10)) == {201: ("slurm", "8")}


def test_young_parent_is_read_each_time_and_remembered_when_it_is_gone(machine: Machine) -> None:
    machine.live_on(10, 10, started=4990)
    lineage = Lineage()
    assert jobs(lineage, machine, ended(11, 10)) == {11: ("session", "10")}
    machine.live_on(10, 10, SLURM, started=4990)
    assert jobs(lineage, machine, ended(12, 10)) == {12: ("slurm", "8")}
    machine.die(10)
    # Its own parent is somebody else's.
    machine.live_on(5, 5)
    assert jobs(lineage, machine, ended(13, 10), ended(10, 5)) == dict.fromkeys((13, 10), ("slurm", "8"))


def test_number_of_a_parent_that_ended_is_not_taken_for_it_again(machine: Machine) -> None:
    machine.live_on(10, 10)
    lineage = Lineage()
    jobs(lineage, machine, ended(11, 10))
    machine.die(10)
    jobs(lineage, machine, ended(10, 1))
    jobs(lineage, machine)
    machine.live_on(10, 77)
    assert jobs(lineage, machine, ended(12, 10)) == {12: ("session", "77")}


def test_after_a_loss_parents_are_looked_at_anew(machine: Machine) -> None:
    machine.live_on(10, 10)
    lineage = Lineage()
    jobs(lineage, machine, ended(11, 10))
    machine.live_on(10, 77)
    lineage.doubt()
    assert jobs(lineage, machine, ended(12, 10)) == {12: ("session", "77")}


def test_records_that_name_each_other_as_parents_end(machine: Machine) -> None:
    lineage = Lineage()
    jobs(lineage, machine, ended(11, 12), ended(12, 11))
    assert jobs(lineage, machine) == {11: UNKNOWN, 12: UNKNOWN}


def test_parent_gone_without_a_word_is_looked_for_once_a_batch(machine: Machine) -> None:
    lineage = Lineage()
    jobs(lineage, machine, *(ended(pid, 10) for pid in range(100, 200)))
    assert machine.read_so_far == ["proc/10/cgroup"]
