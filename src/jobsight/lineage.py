"""Whose a process was that is gone: what can be told from its exit record, which names its parent and not its job.

It belongs to the job it was sampled in, else to its parent's: of the parent that lives, or of the one that ended
after it and whose own record says whose child that was. Parents that start things for others tell nothing. What
cannot be told is unknown, never guessed.
"""

from collections.abc import Iterable
from typing import NamedTuple

from jobsight.collector import ParseError
from jobsight.formats import cgrouppath, procstat
from jobsight.formats.taskstats import MICROSECONDS, SAME, Task
from jobsight.host import Host
from jobsight.roster import CGROUP, YOUTH

# Scheduler and id.
Job = tuple[str, str]
UNKNOWN: Job = ("unknown", "")

# PF_EXITING in the flags field of a process.
EXITING = 0x4
# Ancestors that ended together.
DEEPEST = 100

# What they start lives elsewhere: in a session or a control group of its own.
LAUNCHERS = frozenset((
    "systemd", "init", "login", "su", "sshd", "sshd-session", "cron", "crond", "atd", "tmux: server", "screen",
    "slurmd", "pbs_mom", "sge_execd", "condor_starter", "kubelet", "dockerd", "containerd", "containerd-shim",
    "conmon", "runc", "crun",
))  # fmt: skip


class Member(NamedTuple):
    """A process that was sampled alive."""

    pid: int
    started: float
    parent: int
    job: Job


class Sample:
    """What the last sample of processes knows: whose each one is, and which children live apart from their parent."""

    def __init__(self, members: Iterable[Member] = ()) -> None:
        self.members = {member.pid: member for member in members}
        self.apart: dict[int, set[Job]] = {}
        for member in self.members.values():
            above = self.members.get(member.parent)
            if above is None or above.job != member.job:
                self.apart.setdefault(member.parent, set()).add(member.job)


class Home(NamedTuple):
    """A parent: where it belongs, None if that is not known yet, and what it is."""

    job: Job | None
    uid: int = 0
    command: str = ""
    started: float = 0.0


class Lineage:
    """Places processes that ended, batch by batch."""

    def __init__(self) -> None:
        self._sample = Sample()
        # Parents that were seen alive. Each is forgotten after its own record came.
        self._homes: dict[int, Home] = {}
        # Children of parents that are gone and whose own record has not come yet.
        self._waiting: list[Task] = []
        # The batch at hand: who ended, whose they were, parents looked at, and whose all of one parent and user are.
        self._ended: dict[int, Task] = {}
        self._jobs: dict[int, Job] = {}
        self._looked: dict[int, Home] = {}
        self._broods: dict[tuple[int, int], Job] = {}
        # The one before: two that end at once on two CPUs may come in either order.
        self._earlier: dict[int, tuple[Job, Task]] = {}

    def look_around(self, sample: Sample) -> None:
        """A new sample; parents may have moved since they were looked at."""
        self._sample = sample
        self._homes.clear()

    def doubt(self) -> None:
        """Records were lost, those of parents maybe among them: their numbers may be others' by now."""
        self._homes.clear()

    def placed(self, host: Host, ended: list[Task], now: float) -> list[tuple[Job, Task]]:
        """Processes with their jobs, of this batch and left over from the last. A parent's record comes after its
        child's: what one batch cannot place the next one can, or nobody.
        """
        before, self._waiting = self._waiting, []
        self._ended = {task.group: task for task in (*before, *ended)}
        self._jobs, self._looked, self._broods = {}, {}, {}
        found = [(self._job(host, task, now) or UNKNOWN, task) for task in before]
        members, homes, broods = self._sample.members, self._homes, self._broods
        for task in ended:
            job = broods.get((task.parent, task.uid))
            if job is None or task.group in members or task.group in homes:
                job = self._job(host, task, now)
            if job is None:
                self._waiting.append(task)
            else:
                found.append((job, task))
        self._earlier = {task.group: (job, task) for job, task in found}
        for pid in homes.keys() & self._ended.keys():
            del homes[pid]
        return found

    def _job(self, host: Host, task: Task, now: float, depth: int = 0) -> Job | None:
        """None if its parent has just gone and must be heard of first."""
        job = self._jobs.get(task.group) or self._own(task, now)
        if job is None:
            job = inherited(self._above(host, task, now, depth), task.uid)
            if job is not None:
                self._broods[task.parent, task.uid] = job
        if job is not None:
            self._jobs[task.group] = job
        return job

    def _own(self, task: Task, now: float) -> Job | None:
        """If it was seen alive itself."""
        member = self._sample.members.get(task.group)
        if member is not None and abs(now - task.elapsed / MICROSECONDS - member.started) < SAME:
            return member.job
        home = self._homes.get(task.group)
        return home.job if home is not None else None

    def _above(self, host: Host, task: Task, now: float, depth: int) -> Home:
        """The parent, ended or alive."""
        pid = task.parent
        if pid <= 1:
            return Home(UNKNOWN)
        ended = self._ended.get(pid)
        if ended is not None and depth < DEEPEST:
            return Home(self._job(host, ended, now, depth + 1), ended.uid, ended.command)
        if pid in self._earlier:
            job, ended = self._earlier[pid]
            return Home(job, ended.uid, ended.command)
        home = self._looked.get(pid)
        if home is None:
            home = self._looked[pid] = self._look(host, pid, now)
        return home

    def _look(self, host: Host, pid: int, now: float) -> Home:
        """At a parent that should be alive."""
        home = self._homes.get(pid)
        # A young one may yet be moved to its job's control group.
        if home is None or home.started > now - YOUTH:
            seen = living(host, pid)
            if seen.job is None:
                return home or seen
            if self._sample.apart.get(pid, set()) - {seen.job}:
                seen = seen._replace(job=UNKNOWN)
            home = self._homes[pid] = seen
        return home


def inherited(home: Home, uid: int) -> Job | None:
    """The job of a child of this parent. Where root's rights were given up for somebody's, it was started for that
    one, most often in a session of its own; in a batch system's job or a container it stays.
    """
    if home.job is None:
        return None
    handed_over = home.uid == 0 and uid != 0 and home.job[0] in ("session", "systemd")
    return UNKNOWN if handed_over or home.command in LAUNCHERS else home.job


def living(host: Host, pid: int) -> Home:
    """A process that lives; with no job if it is gone, or going."""
    try:
        # In this order: the control group of one that is going reads as none.
        text = host.piece(f"proc/{pid}/cgroup", CGROUP)
        uid = host.uid(f"proc/{pid}")
        stat = procstat.parse(host.piece(f"proc/{pid}/stat"))
    except OSError:
        return Home(None)
    except ParseError:
        return Home(UNKNOWN)
    if stat.state in ("Z", "X") or stat.flags & EXITING:
        return Home(None)
    if stat.flags & procstat.KERNEL_THREAD:
        return Home(UNKNOWN)
    group = cgrouppath.job_of_process(text.decode("utf-8", "backslashreplace"))
    job = (group.scheduler, group.job) if group else ("session", str(stat.session or stat.process_group or pid))
    return Home(job, uid, stat.command, stat.started)
