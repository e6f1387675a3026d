"""What each job on this node is called and was given.

Sources: the files that the scheduler's prolog leaves in a directory (deploy/slurm), one for each job, and, for what
they do not say, /proc/PID/environ of a process in the job's control group, see proc_pid_environ(5). A prolog is the
administrator's word. An environment is the user's: it counts only if the job's number in it is the one its control
group has, and never for the owner, who is the one the process runs as.
"""

import re
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import NamedTuple

from jobsight.collect.cgroup import places, tree
from jobsight.collector import collector
from jobsight.formats import joblabels
from jobsight.formats.cgrouppath import JobGroup, job_of_process, parts
from jobsight.formats.joblabels import Labels
from jobsight.host import Host
from jobsight.prologs import job_of, prologs
from jobsight.roster import CGROUP, Roster
from jobsight.schema.record import gauge, label, record
from jobsight.schema.units import Count

# More than an environment usually has; what does not fit is as if it were not there.
ENVIRON = 262144
# So many processes of a job are looked at and so many asked in one run; of a group's list so many bytes are read.
CANDIDATES = 64
WITNESSES = 8
PROCESSES = 4096
# What the environment can add to a prolog's file.
WANTED = ("owner", "account", "partition", "name", "nodes", "cpus")

GRANT = "a prolog (deploy/slurm) tells, or CAP_SYS_PTRACE with CAP_DAC_READ_SEARCH (or root)"

Name = tuple[str, str]
"""Scheduler and job, as control groups have them."""
Pids = Callable[[], list[str]]
"""Some of a job's processes, for who wants to know."""


@record
class Allocation:
    """One job on this node: who it is and what it was given."""

    scheduler: str = label("Who named the job: slurm, pbs, lsf, gridengine.")
    job: str = label("The job's id, as its control group has it: the number, or Slurm's SLUID.", grant=GRANT)
    number: str | None = label("The number people know the job by; a SLUID stands for one, too.", default=None)
    owner: str | None = label("The user it belongs to.", default=None, grant=GRANT)
    account: str | None = label("The account it is charged to.", default=None, grant=GRANT)
    partition: str | None = label("The partition or queue it was sent to.", default=None, grant=GRANT)
    name: str | None = label("What its user called it.", default=None, grant=GRANT)
    nodes: str | None = label("All its nodes, as the scheduler writes them: n[1-3,7].", default=None, grant=GRANT)
    devices: str | None = label(
        "The devices it was given on this node, by number; only a prolog tells.", default=None
    )
    source: str = label(
        "prolog if all of this is the scheduler's word, environ if some of it is from the job's own environment."
    )
    cpus: Count | None = gauge("Logical CPUs it was given on this node.", default=None, grant=GRANT)
    restarts: Count | None = gauge("How often it was started anew; only a prolog tells.", default=None)


class Options(NamedTuple):
    """Where the prolog writes."""

    path: str = "/run/jobsight/jobs"


class Witness(NamedTuple):
    """A process that may tell of its job."""

    pid: str
    uid: int
    step: str


class Learned(NamedTuple):
    """What a process's environment said of its job."""

    labels: Labels
    refused: list[str]


class Known:
    """What was learned of the jobs that are still here: a job's environment is read once. One that does not tell is
    asked again after one run, two, four and so on: its processes may have been too young, or are none of ours.
    """

    def __init__(self) -> None:
        self.learned: dict[Name, Learned] = {}
        self.silent: dict[Name, int] = {}
        self.forbidden: set[Name] = set()

    def keep_only(self, jobs: Collection[Name]) -> None:
        self.learned = {job: found for job, found in self.learned.items() if job in jobs}
        self.silent = {job: runs for job, runs in self.silent.items() if job in jobs}
        self.forbidden.intersection_update(jobs)

    def due(self, job: Name) -> bool:
        """Whether to ask now: in its first run, its second, its fourth …"""
        runs = self.silent[job] = self.silent.get(job, 0) + 1
        return job not in self.learned and not runs & (runs - 1)


@collector("proc/self/stat")
def allocation(host: Host, options: Options) -> Iterator[Allocation]:
    known = host.keep(Known)
    jobs = running(host)
    said = {job_of(scheduler, labels, jobs): labels for scheduler, labels in prologs(host, options.path)}
    known.keep_only(jobs)
    for job in sorted(said.keys() | jobs.keys()):
        given = said.get(job, Labels())
        wanted = [field for field in WANTED if getattr(given, field) is None] if job in said else ["job"]
        if wanted and job in jobs and known.due(job):
            ask(host, job, jobs[job](), known)
        learned = known.learned.get(job) if wanted else None
        for column in learned.refused if learned else ():
            host.miss(column, "failed")
        for column in wanted if job in known.forbidden else ():
            host.miss(column, "forbidden")
        if job in said or learned:
            yield row_of(job, given, learned.labels if learned else Labels())


def running(host: Host) -> dict[Name, Pids]:
    """Jobs of batch systems, each with some of its processes. The process collector knows them by now; where it has
    not run yet, the control groups do.
    """
    roster = host.keep(Roster)
    if not roster.seen:
        return grouped(host)
    jobs: dict[Name, list[str]] = {}
    # A list made in one go: a sample that runs late, in another thread, cannot get between.
    for pid, seen in list(roster.seen.items()):
        if seen.group and seen.group.scheduler in joblabels.VARIABLES:
            jobs.setdefault((seen.group.scheduler, seen.group.job), []).append(pid)
    return {job: partial(list, pids) for job, pids in jobs.items()}


def grouped(host: Host) -> dict[Name, Pids]:
    """The same from the tree of control groups. Who asks for processes has them read, nobody else."""
    jobs: dict[Name, list[tuple[JobGroup, set[str]]]] = {}
    for group, mounts in places(host, tree(host), steps=False).items():
        if group.scheduler in joblabels.VARIABLES:
            jobs.setdefault((group.scheduler, group.job), []).append((group, mounts))
    return {job: partial(inside, host, found) for job, found in jobs.items()}


def inside(host: Host, found: list[tuple[JobGroup, set[str]]]) -> list[str]:
    """Processes of a job's own group, of its steps and of their tasks."""
    pids = []
    for group, mounts in found:
        for mount in sorted(mounts):
            steps = parts(group, lambda path, mount=mount: host.names(f"{mount}/{path}"))  # type: ignore[misc]
            for one in (group, *steps):
                pids += processes(host, f"{mount}/{one.path}/cgroup.procs")
    return pids


def ask(host: Host, job: Name, pids: list[str], known: Known) -> None:
    """Learn what a process of the job has in its environment, or that it is not for us to read."""
    known.forbidden.discard(job)
    for witness in witnesses(host, job, pids):
        try:
            environ = host.piece(f"proc/{witness.pid}/environ", ENVIRON)
        except PermissionError:
            known.forbidden.add(job)
            continue
        except OSError:
            continue
        labels, refused = joblabels.of_environ(job[0], environ, batch=witness.step in ("", "batch"))
        if job[1] in (labels.number, labels.sluid):
            known.learned[job] = Learned(labels._replace(owner=host.user(witness.uid)), refused)
            known.forbidden.discard(job)
            return


def witnesses(host: Host, job: Name, pids: list[str]) -> list[Witness]:
    """Those of the processes that are still the job's, the script's first, root's last. Root's are the scheduler's
    own, unless the job is root's; where the group names its user only that user's count.
    """
    found = []
    for pid in sorted(dict.fromkeys(pids), key=int)[:CANDIDATES]:
        try:
            text = host.piece(f"proc/{pid}/cgroup", CGROUP).decode("utf-8", "backslashreplace")
            uid = host.uid(f"proc/{pid}")
        except OSError:
            continue
        group = job_of_process(text)
        owner = re.search(r"/uid_([0-9]{1,10})/", text)
        if group and (group.scheduler, group.job) == job and (owner is None or uid == int(owner[1])):
            step = re.search(r"/step_([^/\n]+)", text)
            found.append(Witness(pid, uid, step[1] if step else ""))
    return sorted(found, key=lambda one: (one.uid == 0, one.step != "batch", one.step == "extern"))[:WITNESSES]


def processes(host: Host, path: str) -> list[str]:
    """The first processes of a group, from lines of one pid. The last line may be cut."""
    try:
        text = host.piece(path, PROCESSES)
    except PermissionError:
        host.miss("job", "forbidden")
        return []
    except OSError:
        return []
    pids = text[: text.rfind(b"\n") + 1].decode("ascii", "replace").split()
    return [pid for pid in pids[:WITNESSES] if pid.isascii() and pid.isdecimal()]


def row_of(job: Name, given: Labels, learned: Labels) -> Allocation:
    """The prolog's word first, the environment's where it says nothing."""
    labels = joblabels.merged(given, learned)
    cpus = joblabels.cpus_here(labels.cpus)
    # Who a process runs as is the kernel's word, not the environment's.
    own = labels._replace(owner=given.owner, sluid=given.sluid) == given
    return Allocation(
        scheduler=job[0],
        job=job[1],
        number=labels.number,
        owner=labels.owner,
        account=labels.account,
        partition=labels.partition,
        name=labels.name,
        nodes=labels.nodes,
        devices=labels.devices,
        source="prolog" if own else "environ",
        cpus=None if cpus is None else Count(cpus),
        restarts=None if labels.restarts is None else Count(int(labels.restarts)),
    )
