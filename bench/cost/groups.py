"""Control groups such as Slurm makes for its jobs, on whatever this machine has: v2, or v1 hierarchies."""

import contextlib
import os
import time
from typing import Self

ROOT = "/sys/fs/cgroup"
WANTED = ("memory", "cpuacct", "cpuset", "freezer")
# Far above the numbers of a real cluster, and apart for every bench that runs: nobody else's group is ours to remove.
FIRST_JOB = 900_000_001
APART = 1000
PATIENCE = 10.0


class Groups:
    """Makes groups and removes those it made, and no others."""

    def __init__(self) -> None:
        self._made: list[str] = []
        self._mounts = _mounts() if os.geteuid() == 0 else []

    @property
    def kind(self) -> str:
        """For people: what the processes of the farm are put into."""
        if not self._mounts:
            return "no cgroups (needs root)"
        return (
            "cgroup v2" if self._mounts == [ROOT] else f"cgroup v1 ({', '.join(map(os.path.basename, self._mounts))})"
        )

    def job(self, number: int, uid: int) -> list[str]:
        """The `cgroup.procs` files of a job's only task."""
        job = f"job_{FIRST_JOB + os.getpid() * APART + number}"
        if self._mounts == [ROOT]:
            parts = ["system.slice", "slurmstepd.scope", job, "step_0", "user", "task_0"]
        else:
            parts = ["slurm", f"uid_{uid}", job, "step_0", "task_0"]
        return [os.path.join(self._make(mount, parts), "cgroup.procs") for mount in self._mounts]

    def _make(self, mount: str, parts: list[str]) -> str:
        path = mount
        for part in parts:
            above, path = path, os.path.join(path, part)
            with contextlib.suppress(FileExistsError):
                os.mkdir(path)
                self._made.append(path)
                _inherit(above, path)
        return path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end = time.monotonic() + PATIENCE
        while self._made:
            try:
                os.rmdir(self._made[-1])
            except OSError:
                # A process that has ended may still be on its way out of its group.
                if not _inhabited(self._made[-1]):
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.05)
                    continue
            self._made.pop()


def _inhabited(path: str) -> bool:
    """Whether somebody else has made groups in it meanwhile."""
    return any(entry.is_dir() for entry in os.scandir(path))


def _mounts() -> list[str]:
    if os.path.exists(f"{ROOT}/cgroup.controllers"):
        return [ROOT]
    names = sorted(os.listdir(ROOT)) if os.path.isdir(ROOT) else []
    # `cpu,cpuacct` is one hierarchy with two names, and `cpuacct` then a link to it.
    real = {os.path.realpath(f"{ROOT}/{name}") for name in names if set(WANTED) & set(name.split(","))}
    return sorted(path for path in real if os.path.exists(f"{path}/cgroup.procs"))


def _inherit(above: str, path: str) -> None:
    """A v1 cpuset takes no process before it has been told its CPUs and its memory."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if os.path.exists(f"{path}/{name}") and not os.path.exists(f"{path}/cgroup.controllers"):
            with open(f"{above}/{name}") as before, open(f"{path}/{name}", "w") as file:
                file.write(before.read())
