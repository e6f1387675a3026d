"""Which job a control group belongs to: one table of path grammars.

`*` is any part of one path component, `{job}` the job's id. The same grammar reads a process's cgroup path and
finds the job's directory in the tree, so the two cannot disagree.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple


class Grammar(NamedTuple):
    """One scheduler's way to name a job's control group."""

    scheduler: str
    template: str


GRAMMARS = (
    # Slurm, cgroup v1: `slurm`, or `slurm_<node>` where several slurmd share a host.
    Grammar("slurm", "slurm*/uid_*/job_{job}"),
    Grammar("slurm", "slurm*/uid_*/{sluid}"),
    # Slurm, cgroup v2: `slurmstepd.scope` or `<node>_slurmstepd.scope`, under system.slice or a delegated root.
    # From 26.05 on the job's directory is named by its SLUID, not by its number.
    Grammar("slurm", "system.slice/*slurmstepd.scope/job_{job}"),
    Grammar("slurm", "system.slice/*slurmstepd.scope/{sluid}"),
    Grammar("slurm", "*slurmstepd.scope/job_{job}"),
    Grammar("slurm", "*slurmstepd.scope/{sluid}"),
    # PBS: its cgroup hook, by release.
    Grammar("pbs", "pbs_jobs.service/jobid/{job}"),
    Grammar("pbs", "pbspro.service/jobid/{job}"),
    Grammar("pbs", "pbspro.slice/pbspro-{job}.slice"),
    Grammar("pbs", "pbspro/{job}"),
    # LSF: `job.<number>.<pid>.<time>`.
    Grammar("lsf", "lsf/*/job.{number}.*"),
    # Grid Engine: `<job>.<task>`.
    Grammar("gridengine", "UGE/{number}.*"),
    # HTCondor names the slot, not the job.
    Grammar("htcondor", "htcondor/{job}"),
    Grammar("htcondor", "system.slice/condor.service/{job}"),
    Grammar("kubernetes", "kubepods.slice/kubepods-*.slice/kubepods-*-pod{job}.slice"),
    Grammar("kubernetes", "kubepods.slice/kubepods-pod{job}.slice"),
    Grammar("kubernetes", "kubepods/*/pod{job}"),
    Grammar("kubernetes", "kubepods/pod{job}"),
    Grammar("docker", "docker/{container}"),
    Grammar("docker", "system.slice/docker-{container}.scope"),
    Grammar("podman", "machine.slice/libpod-{container}.scope"),
    Grammar("podman", "libpod_parent/libpod-{container}"),
    # Users name groups below their own as they like, also by the number of somebody else's container.
    Grammar("podman", "user.slice/user-*.slice/user@{uid}.service/user.slice/libpod-{container}.scope"),
    Grammar("containerd", "default/{container}"),
    Grammar("containerd", "system.slice/cri-containerd-{container}.scope"),
    # A service is a job of the machine; a desktop program is one of its user, and two users may have the same: their
    # numbers are part of the names. A login's `session-2.scope` is none: it holds many sessions.
    Grammar("systemd", "system.slice/{job}.service"),
    Grammar("systemd", "user.slice/user-*.slice/user@{uid}.service/app.slice/{job}.service"),
    Grammar("systemd", "user.slice/user-*.slice/user@{uid}.service/app.slice/{job}.scope"),
)

# What stands for the job in a template. A SLUID is `s` and thirteen digits of Crockford's base 32; a container has 64
# digits, of which people use twelve.
HOLES = {
    "{job}": "(?P<job>[^/]+)",
    "{number}": "(?P<job>[0-9]+)",
    "{uid}": "(?P<uid>[0-9]+)",
    "{sluid}": "(?P<job>s[0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{13})",
    "{container}": "(?P<job>[0-9a-f]{12})[0-9a-f]*",
}

# Whose groups are those of containers.
CONTAINERS = frozenset({"docker", "podman", "containerd", "kubernetes"})


class JobGroup(NamedTuple):
    """A job, or a part of one, as its control group names it."""

    scheduler: str
    job: str
    path: str
    """Of the group, below the hierarchy's mount, without a leading slash."""
    step: str = ""
    task: str = ""


def component(part: str) -> str:
    """One path component of a template as a regular expression."""
    pattern = re.escape(part).replace(r"\*", "[^/]*")
    for hole, inside in HOLES.items():
        pattern = pattern.replace(re.escape(hole), inside)
    return pattern


def _longest_literal(template: str) -> str:
    return max(re.split(r"\*|\{[a-z]+\}", template), key=len)


# A path that lacks a template's longest literal part cannot match it: most patterns are never compiled, and reading a
# path costs some looks for a text.
_LITERALS = tuple((grammar, _longest_literal(grammar.template)) for grammar in GRAMMARS)


@cache
def _whole(template: str) -> re.Pattern[str]:
    return re.compile("(?P<path>" + "/".join(map(component, template.split("/"))) + ")(?:/|$)")


@cache
def _part(part: str) -> Callable[[str], object]:
    """Whether a directory's name is one that this part of a template means."""
    return re.compile(component(part)).fullmatch if "*" in part or "{" in part else part.__eq__


def job_of(path: str) -> JobGroup | None:
    """The job of one cgroup path such as `/slurm/uid_1001/job_8/step_0/task_0`."""
    inside = path.removeprefix("/")
    for grammar, literal in _LITERALS:
        if literal in inside and (found := _whole(grammar.template).match(inside)):
            owner = found.groupdict().get("uid")
            job = f"{owner}.{found['job']}" if owner else found["job"]
            return JobGroup(grammar.scheduler, job, found["path"])
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
    """All job groups of one hierarchy; `names` lists a directory below its mount. Each directory is listed once, and
    only where some template goes on.
    """
    found: dict[str, JobGroup] = {}
    level = [("", _templates())]
    while level:
        deeper = []
        for path, templates in level:
            for name in names(path):
                inside = f"{path}/{name}" if path else name
                left = [parts[1:] for parts in templates if parts[0](name)]
                if not all(left) and (group := job_of(inside)):
                    found[inside] = group
                if going_on := [parts for parts in left if parts]:
                    deeper.append((inside, going_on))
        level = deeper
    return list(found.values())


@cache
def _templates() -> list[tuple[Callable[[str], object], ...]]:
    return [tuple(map(_part, grammar.template.split("/"))) for grammar in GRAMMARS]


STEP = re.compile(r"step_(.+)")
TASK = re.compile(r"task_(.+)")


def parts(group: JobGroup, names: Callable[[str], list[str]]) -> list[JobGroup]:
    """The steps of a Slurm job and their tasks: `step_0/task_0` in v1, `step_0/user/task_0` in v2."""
    if group.scheduler != "slurm":
        return []
    found = []
    for folder, step in _matching(names(group.path), STEP):
        inside = f"{group.path}/{folder}"
        found.append(group._replace(path=inside, step=step))
        for place in (inside, f"{inside}/user"):
            for task_folder, task in _matching(names(place), TASK):
                found.append(group._replace(path=f"{place}/{task_folder}", step=step, task=task))
    return found


def _matching(names: list[str], pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    return [(name, found[1]) for name in sorted(names) if (found := pattern.fullmatch(name))]
