"""Real containers on this machine: Podman with and without root, Charliecloud, bubblewrap, all of one image that has
nothing but busybox. Nothing is fetched from anywhere; all of it lies in a temporary directory.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import wait_until

PROGRAMS = ("podman", "runc", "newuidmap", "ch-run", "bwrap", "busybox")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
IMAGE = "localhost/box:1"
# Some seconds of CPU time, under a name that nothing outside has; then it stays until it has been seen.
BURN = "i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done; echo burned; sleep 300; true"
# Podman raises limits, which not every root may; crun, its usual runtime, wants one hierarchy of control groups.
RUN = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000", "--network", "host", "--rm")
OPTIONS = ("--runtime", "runc", "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file")


class Podman:
    """Podman for one user, with a store of its own."""

    def __init__(self, base: Path, user: str) -> None:
        self.user, self.home = pwd.getpwnam(user), base / user
        self.options: tuple[str, ...] = OPTIONS
        if user == "root":
            self.options += ("--root", f"{self.home}/store", "--runroot", f"{self.home}/run")
        self.environment = {
            "PATH": PATH, "HOME": str(self.home), "XDG_RUNTIME_DIR": f"{self.home}/xdg", "USER": user,
        }  # fmt: skip
        for folder in (self.home, self.home / "xdg"):
            folder.mkdir()
            os.chown(folder, self.user.pw_uid, self.user.pw_gid)
        self.names: list[str] = []

    def run(self, *words: str, given: bytes = b"") -> str:
        done = subprocess.run(
            ["podman", *self.options, *words], input=given, capture_output=True, check=False, timeout=120,
            env=self.environment, cwd=self.home, user=self.user.pw_uid, group=self.user.pw_gid, extra_groups=[],
        )  # fmt: skip
        assert done.returncode == 0, f"podman {' '.join(words)}: {done.stderr.decode(errors='replace')}"
        return done.stdout.decode().strip()

    def start(self, name: str, script: str, *more: str) -> tuple[str, int]:
        """A container that runs a script: its id, and its first process as this machine counts them."""
        self.names.append(name)
        number = self.run("run", "-d", "--name", name, *RUN, *more, IMAGE, "ash", "-c", script)
        return number, int(self.run("inspect", "-f", "{{.State.Pid}}", name))

    def burned(self, name: str) -> bool:
        return "burned" in self.run("logs", name)

    def stop(self) -> None:
        for name in self.names:
            self.run("rm", "-f", "-t", "0", name)
        # Without root one process holds the users' numbers, also when no container is left.
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.home / "xdg/libpod/tmp/pause.pid").read_text())
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not Path(f"/proc/{pid}").exists(), 10, "Podman's own process is gone")


def tree(base: Path) -> Path:
    """A directory that can be the root of a container."""
    root = base / "image"
    for folder in ("bin", "etc", "proc", "sys", "dev", "tmp", "run", "home", "mnt"):
        (root / folder).mkdir(parents=True)
    busybox = shutil.which("busybox", path=PATH)
    assert busybox
    shutil.copy(busybox, root / "bin/busybox")
    for name in ("ash", "sleep", "sh"):
        (root / "bin" / name).symlink_to("busybox")
    for name, text in (
        ("passwd", "root:x:0:0::/:/bin/ash\n"),
        ("group", "root:x:0:\n"),
        ("hosts", ""),
        ("resolv.conf", ""),
    ):
        (root / "etc" / name).write_text(text)
    return root


def packed(root: Path) -> bytes:
    return subprocess.run(["tar", "-C", str(root), "-c", "."], check=True, capture_output=True).stdout


def missing() -> str:
    """Why there can be no containers here; empty if there can."""
    if os.geteuid() != 0:
        return "ONLY ROOT CAN START THEM FOR EVERYBODY"
    lacking = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    if lacking:
        return f"{', '.join(lacking)} NOT INSTALLED, run scripts/servers"
    return "" if static("busybox") else "busybox NEEDS LIBRARIES, run scripts/servers"


def static(program: str) -> bool:
    """Whether a program needs nothing but the kernel: a loader is named where one is needed."""
    place = shutil.which(program, path=PATH)
    return place is not None and b"/ld-linux" not in Path(place).read_bytes()


def needed() -> None:
    if reason := missing():
        if os.environ.get("CI") == "true":
            pytest.fail(f"no containers: {reason}")
        pytest.skip(f"NO REAL CONTAINERS HERE, so nothing is tested with them: {reason}")


@pytest.fixture(scope="module")
def image() -> Iterator[Path]:
    """The directory of the image, in one that everybody may enter."""
    needed()
    base = Path(tempfile.mkdtemp(prefix="jobsight-box-"))
    base.chmod(0o755)
    try:
        yield tree(base)
    finally:
        shutil.rmtree(base, ignore_errors=True)


@contextlib.contextmanager
def podman(image: Path, user: str) -> Iterator[Podman]:
    engine = Podman(image.parent, user)
    try:
        engine.run("import", "-", IMAGE, given=packed(image))
        yield engine
    finally:
        engine.stop()
