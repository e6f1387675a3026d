"""Containers as they look from outside, on machines made of files."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobsight import catalogue
from jobsight.collect.process import Options, Process
from jobsight.host import Host

STAT = "{pid} ({command}) S {parent} {pid} {pid} 0 -1 4194560 1 0 0 0 {ticks} 0 0 0 20 0 1 0 {pid} 4096 1 0 0\n"
ID = "3a9c" * 16
MACHINE_USERS = "         0          0 4294967295\n"
OWN_USERS = "         0       1001          1\n         1     100000      65536\n"
MOUNTS = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
CONMON = f"/usr/bin/conmon -c {ID} -u {ID} -b /srv/c/vfs-containers/{ID}/userdata -n solver"


class Machine:
    """A tree in which processes can be put."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.owners: dict[str, int] = {}
        self.put("etc/passwd", "root:x:0:\nann:x:1001:\n")
        self.put("machine.json", json.dumps({"node": "n1", "uptime": 100_000.0, "page": 4096}))
        self.process(1, "init", 0, ticks=0)
        (root / "proc/self").symlink_to("1")

    def put(self, path: str, text: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def process(self, pid: int, command: str, parent: int = 1, **more: Any) -> None:
        """`more`: files of the process, and `uid` and `ticks`."""
        self.owners[f"proc/{pid}"] = more.pop("uid", 0)
        stat = STAT.format(pid=pid, command=command, parent=parent, ticks=more.pop("ticks", 500))
        files = {"stat": stat, "cgroup": "0::/\n", "uid_map": MACHINE_USERS, "mountinfo": MOUNTS} | more
        for name, text in files.items():
            self.put(f"proc/{pid}/{name}", text.replace(" ", "\0") if name == "cmdline" else text)

    def host(self) -> Host:
        self.put("owners.json", json.dumps(self.owners))
        return Host(str(self.root))

    def rows(self, host: Host | None = None, **options: Any) -> dict[int, Process]:
        return {row.pid: row for row in catalogue.collector("process").rows(host or self.host(), Options(**options))}

    def told(self, pid: int) -> tuple[str | None, ...]:
        row = self.rows()[pid]
        return row.container, row.container_id, row.container_name, row.image


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_docker_tells_name_and_image(machine: Machine) -> None:
    machine.process(20, "python", cgroup=f"0::/system.slice/docker-{ID}.scope\n", ticks=0)
    told = {"Name": "/solver", "Config": {"Image": "box:1"}}
    machine.put(f"var/lib/docker/containers/{ID}/config.v2.json", json.dumps(told))
    assert machine.told(20) == ("docker", ID[:12], "solver", "box:1")


def test_kubernetes_tells_pod_and_image(machine: Machine) -> None:
    path = f"/kubepods.slice/kubepods-podab_cd.slice/cri-containerd-{ID}.scope"
    machine.process(20, "python", cgroup=f"0::{path}\n", ticks=0)
    notes = {"io.kubernetes.cri.sandbox-name": "solver-7", "io.kubernetes.cri.image-name": "example/box:1"}
    place = f"run/containerd/io.containerd.runtime.v2.task/k8s.io/{ID}/config.json"
    machine.put(place, json.dumps({"annotations": notes}))
    assert machine.told(20) == ("kubernetes", ID[:12], "solver-7", "example/box:1")
    assert (machine.rows()[20].scheduler, machine.rows()[20].job) == ("kubernetes", "ab_cd")


def test_rootful_podman_tells_name_and_image_wherever_it_stores_them(machine: Machine) -> None:
    machine.process(19, "conmon", cmdline=CONMON, status="Name:\tconmon\nUid:\t0\t0\t0\t0\nGid:\t0\n")
    machine.process(20, "python", 19, cgroup=f"0::/machine.slice/libpod-{ID}.scope\n", ticks=0)
    told = [{"id": ID, "metadata": json.dumps({"image-name": "localhost/box:1", "name": "solver"})}]
    machine.put("srv/c/vfs-containers/containers.json", json.dumps(told))
    assert machine.told(20) == ("podman", ID[:12], "solver", "localhost/box:1")
    assert machine.told(19) == (None, None, None, None)


def test_root_in_a_container_is_not_the_system(machine: Machine) -> None:
    machine.process(20, "python", cgroup=f"0::/docker/{ID}\n")
    machine.process(21, "sshd")
    assert machine.rows(exclude_uids=("0-999",)).keys() == {20}
    assert machine.rows(exclude_users=("root",)).keys() == set()


@pytest.mark.parametrize(
    ("uid", "numbers"), [(1001, "1001 1001 1001 1001"), (0, "1001 0 0 0")], ids=["own", "setuid"]
)
def test_file_that_a_user_names_is_not_opened(machine: Machine, uid: int, numbers: str) -> None:
    machine.process(19, "conmon", cmdline=CONMON, uid=uid, uid_map=OWN_USERS, status=f"Uid:\t{numbers}\n")
    machine.process(20, "python", 19, uid=1001, uid_map=OWN_USERS)
    told = [{"id": ID, "metadata": json.dumps({"image-name": "somebody's"})}]
    machine.put("srv/c/vfs-containers/containers.json", json.dumps(told))

    class Watched(Host):
        opened: list[str]

        def piece(self, path: str, size: int = 4096) -> bytes:
            self.opened.append(path)
            return super().piece(path, size)

    machine.host()
    host = Watched(str(machine.root))
    host.opened = []
    row = machine.rows(host)[20]
    assert (row.container, row.container_id, row.container_name, row.image) == ("podman", ID[:12], "solver", None)
    assert [path for path in host.opened if not path.startswith("proc/")] == []


def test_container_inside_a_job_leaves_the_job_the_scheduler_s(machine: Machine) -> None:
    path = f"/system.slice/slurmstepd.scope/job_8/step_0/user/task_0/libpod-{ID}"
    machine.process(20, "python", cgroup=f"0::{path}\n", ticks=0, uid=1001)
    row = machine.rows()[20]
    assert (row.scheduler, row.job, row.owner) == ("slurm", "8", "ann")
    assert (row.container, row.container_id) == ("podman", ID[:12])


@pytest.mark.parametrize(("runtime", "word"), [("docker", "moby"), ("containerd", "default")])
def test_container_put_into_a_job_by_its_group_alone_is_known_by_its_monitor(
    machine: Machine, runtime: str, word: str
) -> None:
    machine.process(19, "containerd-shim", cmdline=f"/usr/bin/containerd-shim-runc-v2 -namespace {word} -id {ID}")
    machine.process(20, "python", 19, cgroup=f"0::/slurm/uid_1001/job_8/{ID}\n", ticks=0)
    machine.process(21, "python", 1, cgroup=f"0::/slurm/uid_1001/job_9/{ID}\n", ticks=0)
    assert machine.told(20)[:2] == (runtime, ID[:12])
    assert machine.told(21)[:2] == (None, None), "a group of that name that nobody watches over is no container"


@pytest.mark.parametrize(
    "users", [MACHINE_USERS, "      1001       1001          1\n"], ids=["setuid", "unprivileged"]
)
@pytest.mark.parametrize("title", ["Apptainer", "Singularity"])
def test_apptainer_is_known_by_its_parent_and_environment(machine: Machine, users: str, title: str) -> None:
    image = f"{title.upper()}_CONTAINER=/img/a.sif\0{title.upper()}_NAME=a.sif\0"
    machine.process(18, "starter-suid", cmdline=f"{title} runtime parent", uid=1001)
    machine.process(19, "bash", 18, uid=1001, uid_map=users, environ=image)
    machine.process(20, "python", 19, uid=1001, uid_map=users, environ=image)
    assert machine.told(20) == (title.lower(), None, "a.sif", "/img/a.sif")
    assert machine.told(18)[0] is None


def test_program_that_is_only_called_so_contains_nothing(machine: Machine) -> None:
    machine.process(18, "starter", cmdline="./starter --all", uid=1001)
    machine.process(20, "python", 18, uid=1001, environ="APPTAINER_CONTAINER=/img/a.sif\0")
    assert machine.told(20) == (None, None, None, None)


def test_inherited_word_of_another_runtime_does_not_count(machine: Machine) -> None:
    machine.process(18, "bwrap", uid=1001)
    mounts = "30 29 254:0 /srv/box / rw - ext4 /dev/vda rw\n"
    environ = "APPTAINER_CONTAINER=/img/a.sif\0"
    machine.process(20, "python", 18, uid=1001, uid_map=OWN_USERS, environ=environ, mountinfo=mounts)
    assert machine.told(20) == ("bubblewrap", None, None, "/srv/box")


def test_number_given_out_by_a_container_is_its_owner_s(machine: Machine) -> None:
    machine.process(20, "postgres", uid=100_032, uid_map=OWN_USERS)
    machine.process(21, "stranger", uid=4711)
    machine.process(22, "remapped", uid=165_536, uid_map="0 165536 65536\n")
    rows = machine.rows()
    assert [rows[pid].owner for pid in (20, 21, 22)] == ["ann", "4711", "165536"]


def test_image_that_is_not_for_us_is_said_to_be_forbidden_every_time(machine: Machine) -> None:
    class Closed(Host):
        def piece(self, path: str, size: int = 4096) -> bytes:
            if path.endswith("/environ"):
                raise PermissionError(13, "no", path)
            return super().piece(path, size)

        def read_bytes(self, path: str) -> bytes:
            if path.endswith("/mountinfo"):
                raise PermissionError(13, "no", path)
            return super().read_bytes(path)

    machine.process(20, "python", uid=1001, uid_map=OWN_USERS)
    machine.host()
    host = Closed(str(machine.root))
    for _ in range(3):
        row = machine.rows(host)[20]
        assert (row.container, row.image) == ("namespace", None)
        assert host.missed()["image"] == "forbidden"


def test_process_in_no_container_costs_one_look_a_turn(machine: Machine) -> None:
    class Counting(Host):
        asked: list[str]

        def piece(self, path: str, size: int = 4096) -> bytes:
            if path.endswith(("uid_map", "environ", "mountinfo", "cmdline")):
                self.asked.append(path)
            return super().piece(path, size)

    machine.process(20, "python", uid=1001)
    machine.process(21, "quiet", uid=1001, ticks=50)
    machine.host()
    host = Counting(str(machine.root))
    host.asked = []
    for count in range(60):
        machine.put("proc/20/stat", STAT.format(pid=20, command="python", parent=1, ticks=500 + count))
        machine.put("proc/21/stat", STAT.format(pid=21, command="quiet", parent=1, ticks=count))
        machine.rows(host)
    assert host.asked.count("proc/20/uid_map") <= 2
    assert [path for path in host.asked if path != "proc/20/uid_map"] in ([], ["proc/self/uid_map"])
