"""What tells of containers, text by text."""

import json

import pytest

from jobsight.formats import container
from jobsight.formats.container import Container, Monitor, Root

ONE, OTHER = "3a9c" * 16, "b922" * 16
POD = "pod6d2a7a3c_0b5e_4d7e_9d3c_1f2e3d4c5b6a"


@pytest.mark.parametrize(
    ("path", "runtime", "number"),
    [
        (f"/docker/{ONE}", "docker", ONE),
        (f"/system.slice/docker-{ONE}.scope", "docker", ONE),
        (f"/docker/{ONE}/docker/{OTHER}", "docker", OTHER),
        (f"/machine.slice/libpod-{ONE}.scope/container", "podman", ONE),
        (f"/libpod_parent/libpod-{ONE}", "podman", ONE),
        (f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ONE}.scope", "podman", ONE),
        (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-{POD}.slice/cri-containerd-{ONE}.scope",
         "kubernetes", ONE),
        (f"/kubepods.slice/kubepods-{POD}.slice/crio-{ONE}.scope", "kubernetes", ONE),
        (f"/kubepods/besteffort/pod6d2a7a3c-0b5e-4d7e-9d3c-1f2e3d4c5b6a/{ONE}", "kubernetes", ONE),
        (f"/kubepods-besteffort-{POD}.slice:cri-containerd:{ONE}", "kubernetes", ONE),
        (f"/default/{ONE}", "containerd", ONE),
        (f"/system.slice/nerdctl-{ONE}.scope", "containerd", ONE),
        # Inside a job: the job is Slurm's, the container is Podman's.
        (f"/system.slice/slurmstepd.scope/job_8/step_0/user/task_0/libpod-{ONE}", "podman", ONE),
        # Only whoever watches over it knows whose it is.
        (f"/slurm/uid_1001/job_8/{ONE}", "", ONE),
    ],
)  # fmt: skip
def test_control_group_names_its_container(path: str, runtime: str, number: str) -> None:
    text = f"4:memory:{path}\n1:cpu:/\n0::/\n"
    assert container.of_cgroup(text) == Container(runtime, number)


@pytest.mark.parametrize(
    "path",
    ["/", "/system.slice/sshd.service", f"/machine.slice/libpod-conmon-{ONE}.scope", f"/crio-conmon-{ONE}.scope",
     f"/docker/{ONE[:40]}", f"/jobs/{ONE}0", f"/x{ONE}", "/slurm/uid_1001/job_8"],
)  # fmt: skip
def test_control_group_of_something_else_names_none(path: str) -> None:
    assert container.of_cgroup(f"0::{path}\n") is None


def test_monitor_tells_id_name_and_directory() -> None:
    line = f"/usr/bin/conmon --api-version 1 -c {ONE} -u {ONE} -r /usr/bin/runc -b /srv/c/{ONE}/userdata -n solver "
    line += "--exit-command /usr/bin/podman --exit-command-arg -n --exit-command-arg other"
    words = line.encode().split(b" ")
    assert container.of_monitor(words) == Monitor(ONE, "solver", f"/srv/c/{ONE}/userdata")


@pytest.mark.parametrize("line", ["", "conmon", "conmon -c", "conmon -c ../../etc -n x", f"conmon -u {ONE}"])
def test_monitor_without_an_id_tells_nothing(line: str) -> None:
    assert container.of_monitor(line.encode().split(b" ")) is None


@pytest.mark.parametrize(
    ("namespace", "runtime"), [("moby", "docker"), ("k8s.io", "kubernetes"), ("default", "containerd")]
)
def test_shim_tells_whose_its_container_is(namespace: str, runtime: str) -> None:
    line = (
        f"/usr/bin/containerd-shim-runc-v2 -namespace {namespace} -id {ONE} -address /run/containerd/containerd.sock"
    )
    assert container.of_shim(line.encode().split(b" ")) == runtime


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (b"A=1\0APPTAINER_CONTAINER=/img/a.sif\0APPTAINER_NAME=a.sif\0SINGULARITY_NAME=a.sif\0",
         Container("apptainer", "", "a.sif", "/img/a.sif")),
        (b"SINGULARITY_NAME=a.sif\0SINGULARITY_CONTAINER=/img/a.sif\0",
         Container("singularity", "", "a.sif", "/img/a.sif")),
        (b"CH_RUNNING=Weird Al Yankovic\0", Container("charliecloud")),
        (b"container=podman\0", Container("podman")),
        (b"container=\xff\xfe\0", None),
        (b"container=box\0HOME=/\0", None),
        (b"", None),
        (b"nonsense\0=\0", None),
    ],
)  # fmt: skip
def test_environment_tells_the_runtime(environ: bytes, expected: Container | None) -> None:
    assert container.of_environ(environ) == expected


def test_endless_name_is_cut() -> None:
    found = container.of_environ(b"APPTAINER_CONTAINER=/" + b"x" * 100_000)
    assert found is not None
    assert len(found.image) == container.LONGEST


MACHINE = """\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 27 8:3 / /home rw,relatime - ext4 /dev/sda3 rw
41 27 8:4 /data /srv/my\\040data rw,relatime - xfs /dev/sda4 rw
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("67 44 254:0 /srv/images/box / rw,relatime - ext4 /dev/vda rw", "/srv/images/box"),
        ("67 44 8:3 /ann/box / rw,relatime master:1 - ext4 /dev/sda3 rw", "/home/ann/box"),
        ("67 44 8:4 /data/box / rw,relatime - xfs /dev/sda4 rw", "/srv/my data/box"),
        # A part of a filesystem that this machine shows nowhere.
        ("67 44 8:4 /database / rw,relatime - xfs /dev/sda4 rw", ""),
        ("67 44 9:9 /box / rw,relatime - ext4 /dev/sdz rw", ""),
    ],
)
def test_root_directory_is_named_as_the_machine_names_it(line: str, expected: str) -> None:
    root = container.root_of(f"{line}\n68 67 0:41 / /proc rw - proc proc rw\n")
    assert root is not None
    assert container.place(root, MACHINE) == expected


@pytest.mark.parametrize(
    "text",
    ["", "67 44", "67 44 0:50 / / rw - overlay overlay rw,lowerdir=/a", "67 44 0:9 /newroot / rw - tmpfs tmpfs rw",
     "67 44 254:0 / / rw - ext4 /dev/vda rw", "67 44 254:0 /box /mnt rw - ext4 /dev/vda rw"],
)  # fmt: skip
def test_root_that_lies_nowhere_is_no_directory(text: str) -> None:
    assert container.root_of(text) is None


def test_of_mounts_on_each_other_the_last_counts() -> None:
    text = "1 0 8:3 /old / rw - ext4 /dev/a rw\n2 1 8:3 /new / rw - ext4 /dev/a rw\n"
    assert container.root_of(text) == Root("8:3", "/new")


def test_storage_lists_the_image_of_each_container() -> None:
    told = {"image-name": "localhost/box:1", "name": "solver"}
    text = json.dumps([{"id": OTHER}, 5, {"id": ONE, "metadata": json.dumps(told)}])
    assert container.of_storage(text, ONE) == Container("", ONE, "solver", "localhost/box:1")
    assert container.of_storage(text, "c" * 64) is None


@pytest.mark.parametrize("text", ["", "[", "{}", "null", "[" * 100_000, '[{"id": 1}]', '{"Config": []}'])
def test_damaged_files_of_engines_tell_nothing(text: str) -> None:
    assert container.of_storage(text, ONE) is None
    assert container.of_docker(text) == Container()
    assert container.of_bundle(text) == Container()


def test_docker_keeps_name_and_image() -> None:
    text = json.dumps({"Name": "/solver", "Config": {"Image": "box:1", "Env": ["KEY=secret"]}})
    assert container.of_docker(text) == Container("", "", "solver", "box:1")
    kept = container.public("var/lib/docker/containers/x/config.v2.json", text.encode())
    assert b"secret" not in kept
    assert container.of_docker(kept.decode()) == Container("", "", "solver", "box:1")


@pytest.mark.parametrize("notes", [container.CONTAINERD_NOTES, container.CRIO_NOTES], ids=["containerd", "crio"])
def test_bundle_of_kubernetes_tells_pod_and_image(notes: tuple[str, ...]) -> None:
    values = dict(zip(notes, ("lab", "solver-7", "main", "registry.example/box:1"), strict=True))
    text = json.dumps({"annotations": {**values, "other": "x"}, "process": {"env": ["KEY=secret"]}})
    expected = Container("", "", "lab/solver-7/main", "registry.example/box:1")
    assert container.of_bundle(text) == expected
    kept = container.public(f"run/x/{ONE}/config.json", text.encode())
    assert b"secret" not in kept
    assert container.of_bundle(kept.decode()) == expected
