"""Which job a control group belongs to: one table of path grammars.

`*` is any part of one path component, `{job}` the job's id. The same grammar reads a process's cgroup path and
finds the job's directory in the tree, so the two cannot disagree.
"""

import re
from collections.abc import Callable
from typing import NamedTuple


class Grammar(NamedTuple):
    """One scheduler's way to name a job's control group."""

    scheduler: str
    template: str


GRAMMARS = (
    # Slurm, cgroup v1: `slurm`, or `slurm_<node>` where several slurmd share a host.
    Grammar("slurm", "slurm*/uid_*/job_{job}"),
    # Slurm, cgroup v2: `slurmstepd.scope` or `<node>_slurmstepd.scope`, under system.slice or a delegated root.
    Grammar("slurm", "system.slice/*slurmstepd.scope/job_{job}"),
    Grammar("slurm", "*slurmstepd.scope/job_{job}"),
    Grammar("docker", "docker/{job}"),
    Grammar("docker", "system.slice/docker-{job}.scope"),
    Grammar("podman", "machine.slice/libpod-{job}.scope"),
    Grammar("podman", "libpod_parent/libpod-{job}"),
    # A service is a job of the machine; a desktop program is one of its user.
    Grammar("systemd", "system.slice/{job}.service"),
    Grammar("systemd", "user.slice/user-*.slice/user@*.service/app.slice/{job}.service"),
    Grammar("systemd", "user.slice/user-*.slice/user@*.service/app.slice/{job}.scope"),
)


class JobGroup(NamedTuple):
    """A job as its control group names it."""

    scheduler: str
    job: str
    path: str
    """Of the job's own group, below the hierarchy's mount, without a leading slash."""


def component(part: str) -> str:
    """One path component of a template as a regular expression."""
    return re.escape(part).replace(r"\*", "[^/]*").replace(r"\{job\}", "(?P<job>[^/]+)")


_PATTERNS = tuple(
    (grammar, re.compile("/?(?P<path>" + "/".join(map(component, grammar.template.split("/"))) + ")(?:/|$)"))
    for grammar in GRAMMARS
)


def job_of(path: str) -> JobGroup | None:
    """The job of one cgroup path such as `/slurm/uid_1001/job_8/step_0/task_0`."""
    for grammar, pattern in _PATTERNS:
        if found := pattern.match(path):
            return JobGroup(grammar.scheduler, shown(grammar, found["job"]), found["path"])
    return None


def job_of_process(text: str) -> JobGroup | None:
    """The job of a process, from its /proc/PID/cgroup: lines `number:controllers:path`, any of which may tell."""
    seen: set[str] = set()
    for line in text.splitlines():
        path = line.split(":", 2)[-1]
        if path in seen or path == "/":
            continue
        seen.add(path)
        if group := job_of(path):
            return group
    return None


def groups(names: Callable[[str], list[str]]) -> list[JobGroup]:
    """All job groups of one hierarchy; `names` lists a directory below its mount."""
    found: dict[str, JobGroup] = {}
    for grammar in GRAMMARS:
        paths = [""]
        for part in grammar.template.split("/"):
            pattern = re.compile(component(part))
            paths = [
                f"{path}/{name}".lstrip("/") for path in paths for name in names(path) if pattern.fullmatch(name)
            ]
        for path in paths:
            if path not in found and (group := job_of(path)):
                found[path] = group
    return list(found.values())


def shown(grammar: Grammar, job: str) -> str:
    """The id people use: containers are known by the first twelve digits."""
    return job[:12] if grammar.scheduler in ("docker", "podman") else job
