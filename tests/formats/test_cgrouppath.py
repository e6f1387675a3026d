import pytest

from jobsight.formats import cgrouppath
from jobsight.formats.cgrouppath import JobGroup

LONG = "b92202ddc078a88a1a4a414441aaf2c5a657d0de0e76d04746c3a0e949e26fe7"


@pytest.mark.parametrize(
    ("path", "scheduler", "job", "group"),
    [
        ("/slurm/uid_1001/job_8", "slurm", "8", "slurm/uid_1001/job_8"),
        ("/slurm/uid_1001/job_8/step_0", "slurm", "8", "slurm/uid_1001/job_8"),
        ("/slurm/uid_0/job_4711/step_batch/task_0", "slurm", "4711", "slurm/uid_0/job_4711"),
        ("/slurm/uid_0/job_4711/step_extern/task_0", "slurm", "4711", "slurm/uid_0/job_4711"),
        # Debian's slurmd, and several slurmd on one host.
        ("/slurm_vm/uid_1001/job_8/step_1/task_0", "slurm", "8", "slurm_vm/uid_1001/job_8"),
        ("/slurm_n-04.fox/uid_1/job_9", "slurm", "9", "slurm_n-04.fox/uid_1/job_9"),
        (
            "/system.slice/slurmstepd.scope/job_1/step_0/user/task_0",
            "slurm",
            "1",
            "system.slice/slurmstepd.scope/job_1",
        ),
        (
            "/system.slice/node1_slurmstepd.scope/job_1/step_batch/slurm",
            "slurm",
            "1",
            "system.slice/node1_slurmstepd.scope/job_1",
        ),
        ("/slurmstepd.scope/job_123", "slurm", "123", "slurmstepd.scope/job_123"),
        ("/n1_slurmstepd.scope/job_123/step_7", "slurm", "123", "n1_slurmstepd.scope/job_123"),
        (f"/docker/{LONG}", "docker", LONG[:12], f"docker/{LONG}"),
        (f"/docker/{LONG}/init.scope", "docker", LONG[:12], f"docker/{LONG}"),
        (f"/system.slice/docker-{LONG}.scope", "docker", LONG[:12], f"system.slice/docker-{LONG}.scope"),
        (f"/machine.slice/libpod-{LONG}.scope", "podman", LONG[:12], f"machine.slice/libpod-{LONG}.scope"),
        (f"/machine.slice/libpod-{LONG}.scope/container", "podman", LONG[:12], f"machine.slice/libpod-{LONG}.scope"),
        (f"/libpod_parent/libpod-{LONG}", "podman", LONG[:12], f"libpod_parent/libpod-{LONG}"),
        # A user's own, who may have chosen that number: it is not the one of the machine's container.
        (
            f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{LONG}.scope/container",
            "podman",
            f"1000.{LONG[:12]}",
            f"user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{LONG}.scope",
        ),
        ("/system.slice/sshd.service", "systemd", "sshd", "system.slice/sshd.service"),
        (
            "/system.slice/systemd-udevd.service/udev",
            "systemd",
            "systemd-udevd",
            "system.slice/systemd-udevd.service",
        ),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox-77.scope",
            "systemd",
            "1000.app-firefox-77",
            "user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox-77.scope",
        ),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service/worker",
            "systemd",
            "1000.jupyter",
            "user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service",
        ),
        # A path without the leading slash, as it is below a mount.
        ("slurm/uid_1001/job_8/step_0", "slurm", "8", "slurm/uid_1001/job_8"),
    ],
)
def test_path_names_its_job(path: str, scheduler: str, job: str, group: str) -> None:
    assert cgrouppath.job_of(path) == JobGroup(scheduler, job, group)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "/init.scope",
        "/user.slice",
        "/user.slice/user-1000.slice/session-3.scope",
        "/user.slice/user-1000.slice/user@1000.service/init.scope",
        "/system.slice",
        "/slurm",
        "/slurm/uid_1001",
        "/slurm/uid_1001/system",
        "/system.slice/node1_slurmstepd.scope/system",
        "/system.slice/slurmstepd.scope",
        "/libpod_parent/conmon",
        "/docker",
        "/docker/",
        "/slurm/uid_1001/job_",
        "/other/slurm/uid_1001/job_8",
        "/host_session",
    ],
)
def test_path_that_names_no_job_gives_none(path: str) -> None:
    assert cgrouppath.job_of(path) is None


@pytest.mark.parametrize(
    ("text", "job"),
    [
        ("0::/system.slice/slurmstepd.scope/job_1/step_0/user/task_0\n", "1"),
        ("9:name=systemd:/\n6:freezer:/slurm_vm/uid_1001/job_8/step_1\n1:cpu:/\n0::/\n", "8"),
        # Only one controller may know: jobacct_gather's, or the one that tracks.
        ("4:memory:/slurm/uid_1/job_7/step_0/task_0\n0::/\n", "7"),
        ("11:cpu,cpuacct:/slurm/uid_1/job_7\n0::/\n", "7"),
        # A session on the unified tree, a job on another.
        ("5:memory:/slurm/uid_1/job_7\n0::/user.slice/user-1.slice/session-3.scope\n", "7"),
        ("0::/\n", None),
        ("0::/user.slice/user-1.slice/session-3.scope\n", None),
        ("", None),
        ("nonsense", None),
        ("0:", None),
        # Colons belong to the path.
        ("0::/system.slice/dev:a:b.service\n", "dev:a:b"),
    ],
)
def test_process_belongs_to_the_job_any_of_its_hierarchies_names(text: str, job: str | None) -> None:
    group = cgrouppath.job_of_process(text)
    assert (group and group.job) == job


def test_tree_is_searched_with_the_same_grammar_and_each_group_is_found_once() -> None:
    tree = {
        "": ["slurm", "system.slice", "docker", "cpu.stat"],
        "slurm": ["uid_1001", "uid_1002", "tasks"],
        "slurm/uid_1001": ["job_8", "job_9", "job_", "cgroup.procs"],
        "slurm/uid_1002": [],
        "system.slice": ["sshd.service", "n1_slurmstepd.scope", "docker-0123456789abcd.scope", "cpu.stat"],
        "system.slice/n1_slurmstepd.scope": ["job_3", "system"],
        "docker": ["0123456789abcdef"],
    }
    asked: list[str] = []

    def names(path: str) -> list[str]:
        asked.append(path)
        return tree.get(path, [])

    found = {(group.scheduler, group.job, group.path) for group in cgrouppath.groups(names)}
    assert found == {
        ("slurm", "8", "slurm/uid_1001/job_8"),
        ("slurm", "9", "slurm/uid_1001/job_9"),
        ("slurm", "3", "system.slice/n1_slurmstepd.scope/job_3"),
        ("docker", "0123456789ab", "system.slice/docker-0123456789abcd.scope"),
        ("docker", "0123456789ab", "docker/0123456789abcdef"),
        ("systemd", "sshd", "system.slice/sshd.service"),
    }
    assert len(cgrouppath.groups(names)) == len(found)
    assert all(cgrouppath.job_of(f"/{path}/step_0") for _, _, path in found)


@pytest.mark.parametrize(
    ("path", "scheduler", "job"),
    [
        ("/system.slice/slurmstepd.scope/s0123456789ABC/step_0/user/task_0", "slurm", "s0123456789ABC"),
        ("/slurm_n1/uid_1001/s0123456789ABC/step_batch", "slurm", "s0123456789ABC"),
        ("/pbs_jobs.service/jobid/123.server", "pbs", "123.server"),
        ("/pbspro/123.server", "pbs", "123.server"),
        ("/lsf/fox/job.4711.9000.1794700000", "lsf", "4711"),
        ("/UGE/4711.1", "gridengine", "4711"),
        ("/htcondor/condor_slot1_1@n1", "htcondor", "condor_slot1_1@n1"),
        ("/kubepods/burstable/pod12ab-34/deadbeef", "kubernetes", "12ab-34"),
        ("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12ab_34.slice", "kubernetes", "12ab_34"),
    ],
)
def test_job_of_other_schedulers_is_known_by_its_path(path: str, scheduler: str, job: str) -> None:
    found = cgrouppath.job_of(path)
    assert found is not None
    assert (found.scheduler, found.job) == (scheduler, job)


@pytest.mark.parametrize("name", ["s0123456789ABI", "s0123456789AB", "x0123456789ABC", "snapshot-of-job"])
def test_directory_that_is_no_sluid_is_no_job(name: str) -> None:
    assert cgrouppath.job_of(f"/slurmstepd.scope/{name}") is None


def test_steps_and_tasks_are_parts_of_their_job_in_both_layouts() -> None:
    tree = {
        "slurm/uid_1/job_8": ["step_0", "step_batch", "memory.stat"],
        "slurm/uid_1/job_8/step_0": ["task_0", "user"],
        "slurm/uid_1/job_8/step_0/user": ["task_1"],
    }
    job = cgrouppath.JobGroup("slurm", "8", "slurm/uid_1/job_8")
    found = cgrouppath.parts(job, lambda path: tree.get(path, []))
    assert [(part.step, part.task) for part in found] == [("0", ""), ("0", "0"), ("0", "1"), ("batch", "")]
    assert found[2].path == "slurm/uid_1/job_8/step_0/user/task_1"
    assert cgrouppath.parts(job._replace(scheduler="docker"), lambda path: tree.get(path, [])) == []
