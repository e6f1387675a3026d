"""The recorded machines against what other programs said about them at the time: ps, podman stats, scontrol."""

import json
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


def rows(collector: str, machine: str) -> list[dict[str, Any]]:
    columns = json.loads((HERE / collector / machine / "expected.json").read_text())["rows"]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def test_processes_of_a_slurm_job_on_cgroup_v1_are_those_of_ps() -> None:
    # ps -o pid,ppid,pgid,sid,nlwp,user,rss --forest -u alice
    shown = {
        13725: (13709, 13725, 13708, 4, 132040),
        13717: (13707, 13717, 13706, 1, 1492),
        13718: (13717, 13717, 13706, 1, 1628),
        13720: (13717, 13717, 13706, 1, 1628),
        13721: (13717, 13717, 13706, 1, 1628),
        13685: (13681, 13685, 13679, 1, 2884),
        13686: (13685, 13685, 13679, 4, 7712),
        13694: (13686, 13685, 13679, 1, 1640),
        13687: (13685, 13685, 13679, 4, 7692),
        13696: (13687, 13685, 13679, 1, 1544),
    }
    found = {
        row["pid"]: (
            row["parent"],
            row["process_group"],
            row["session"],
            row["threads"],
            (row["memory_anon"] + row["memory_shared"]) // 1024,
        )
        for row in rows("process", "slurm-cgroup-v1")
        if row["owner"] == "alice"
    }
    assert found == shown


def test_everything_slurm_started_belongs_to_its_job() -> None:
    found = rows("process", "slurm-cgroup-v1")
    assert len(found) == 15
    assert {(row["scheduler"], row["job"]) for row in found} == {("slurm", "8")}
    # The four slurmstepd and the sleep of the extern step run as root.
    assert sorted(row["pid"] for row in found if row["owner"] == "root") == [13674, 13678, 13681, 13707, 13709]


def test_processes_on_cgroup_v2_belong_to_the_job_or_the_service_that_systemd_named() -> None:
    of_job = {384, 388, 391, 400, 401, 402, 407, 408, 423, 425, 435, 437, 438, 439}
    found = {row["pid"]: (row["scheduler"], row["job"]) for row in rows("process", "slurm-cgroup-v2-qemu")}
    assert {pid for pid, job in found.items() if job == ("slurm", "1")} == of_job
    assert found[332] == ("systemd", "slurmd")
    assert found[320] == ("systemd", "slurmctld")
    # `slurmstepd infinity` keeps the scope alive and belongs to no job.
    assert found[343] == ("session", "342")


def test_owners_on_cgroup_v2_are_those_of_ps() -> None:
    alice = {row["pid"] for row in rows("process", "slurm-cgroup-v2-qemu") if row["owner"] == "alice"}
    assert alice == {400, 401, 402, 407, 408, 435, 437, 438, 439}


def test_slurm_jobs_have_the_memory_they_asked_for_as_limit() -> None:
    (old,) = [row for row in rows("cgroup", "slurm-cgroup-v1") if row["step"] is None]
    new, service = [row for row in rows("cgroup", "slurm-cgroup-v2-qemu") if row["step"] is None]
    assert (old["scheduler"], old["job"], old["memory_limit"]) == ("slurm", "8", 800 * 2**20)
    assert (new["scheduler"], new["job"], new["memory_limit"], new["cpus"]) == ("slurm", "1", 300 * 2**20, 1)
    assert (service["scheduler"], service["job"], service["memory_limit"]) == ("systemd", "slurmd", None)


@pytest.mark.parametrize("machine", ["slurm-cgroup-v1", "slurm-cgroup-v2-qemu"])
def test_steps_and_tasks_have_rows_of_their_own_and_add_up(machine: str) -> None:
    found = [row for row in rows("cgroup", machine) if row["scheduler"] == "slurm"]
    whole = next(row for row in found if row["step"] is None)
    steps = {row["step"]: row for row in found if row["step"] is not None and row["task"] is None}
    assert set(steps) == {"0", "1", "batch", "extern"}
    # The files were read one after the other while the job ran: what is read later has used more.
    assert sum(step["cpu_time"] for step in steps.values()) == pytest.approx(whole["cpu_time"], rel=0.03)
    for task in (row for row in found if row["task"] is not None):
        assert 0 <= task["cpu_time"] <= steps[task["step"]]["cpu_time"] * 1.01
        assert task["memory_limit"] is None, "a task has no limit of its own"


def test_container_is_as_podman_showed_it() -> None:
    (found,) = rows("cgroup", "podman-runc-rootful")
    # podman stats: id b92202ddc078, cpu_time 37.259986ms, mem_usage 1.061MB / 268.4MB, pids 2
    assert (found["scheduler"], found["job"]) == ("podman", "b92202ddc078")
    assert found["cpu_time"] == 0.037259986
    assert round(found["memory_used"] / 1e6, 3) == 1.061
    assert round(found["memory_limit"] / 1e6, 1) == 268.4
    assert found["processes"] == 2


def test_monitor_of_a_container_is_not_in_the_container() -> None:
    found = {row["pid"]: (row["scheduler"], row["command"]) for row in rows("process", "podman-runc-rootful")}
    assert found == {20847: ("session", "conmon"), 20857: ("podman", "sleep"), 20867: ("podman", "sleep")}


def test_parts_of_a_group_add_up() -> None:
    for machine in ("slurm-cgroup-v1", "slurm-cgroup-v2-qemu", "podman-runc-rootful", "vm-cgroup-v1"):
        for row in rows("cgroup", machine):
            # Ticks of v1 are cut off, each of the two.
            assert abs(row["cpu_time"] - row["cpu_user"] - row["cpu_system"]) <= 0.02
            assert row["memory_anon"] + row["memory_file"] <= row["memory_used"] <= row["memory_peak"]


def test_io_of_other_people_is_missing_and_not_zero() -> None:
    found = rows("process", "vm-unprivileged")
    own = {row["pid"] for row in found if row["owner"] == "user1" and row["state"] != "Z"}
    assert {row["pid"] for row in found if row["read"] is not None} == own
    assert {row["pid"] for row in found if row["written"] is not None} == own
