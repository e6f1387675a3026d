"""Turns messages into jobs as they arrive: one sample of one node after the other.

The ledger remembers each node's last sample, so that what comes next can be set against it. A message older than
the last one is kept in the store and not counted here: counters lose nothing by it, only resolution.
"""

from collections import defaultdict
from typing import Any, NamedTuple

from jobsight.analyse.growth import Ident, Total, gains
from jobsight.analyse.job import Job
from jobsight.analyse.register import DEFAULT_EVERY, Known, Register
from jobsight.analyse.sample import Name, groups, idents, labels, rows_by_job, totals
from jobsight.analyse.usage import Interval, Machine, Usage, of_group, of_processes
from jobsight.ingest.accept import Accepted
from jobsight.store.protocol import FRESH, SLACK


class Stamped(NamedTuple):
    """A usage row with its place and time."""

    cluster: str
    node: str
    boot: str
    time: float
    usage: Usage


class Said(NamedTuple):
    """What a node's last allocation message said of its jobs."""

    time: float
    every: float
    labels: dict[Name, dict[str, Any]]

    def of(self, name: Name, time: float) -> dict[str, Any] | None:
        """What it says of a job at about this time: numbers come back, and a node may have stopped to tell."""
        return self.labels.get(name) if abs(time - self.time) <= FRESH * self.every + SLACK else None


class Last:
    """The last sample of one boot of a node by one collector."""

    def __init__(self) -> None:
        self.clock = 0.0
        self.time = 0.0
        self.every = DEFAULT_EVERY
        self.totals: dict[Ident, Total] = {}
        self.groups: dict[Name, dict[str, Any]] = {}
        self.jobs: dict[Name, str] = {}

    def move_on(self, sample: Accepted) -> None:
        self.every = every(sample, self)
        self.clock, self.time = clock(sample), sample.time


def clock(sample: Accepted) -> float:
    """What orders and spaces a boot's samples: seconds since boot, which nobody sets ahead or back."""
    return sample.uptime or sample.time


def every(sample: Accepted, last: Last) -> float:
    """Seconds between samples: as the sender says, or as they come where it is run by hand or by cron."""
    return sample.every or (clock(sample) - last.clock if last.clock else DEFAULT_EVERY)


class Ledger:
    """All nodes' last samples and the jobs they are about."""

    def __init__(self, known: Known) -> None:
        self._register = Register(known)
        # By cluster, node and collector, then by boot: two machines of one name must not look like endless reboots.
        self._last: dict[tuple[str, str, str], dict[str, Last]] = defaultdict(dict)
        self._machines: dict[tuple[str, str], Machine] = defaultdict(Machine)
        # What each node's last allocation message says of its jobs, which may not be known yet: it comes first.
        self._said: dict[tuple[str, str], Said] = {}
        self._usage: list[Stamped] = []
        self._touched: dict[str, Job] = {}

    def take(self, sample: Accepted) -> None:
        """Count one message that went well."""
        if sample.collector == "hardware":
            self._take_machine(sample)
        if sample.collector == "allocation":
            self._said[sample.cluster, sample.node] = Said(sample.time, sample.every or DEFAULT_EVERY, labels(sample))
        if sample.collector not in ("process", "cgroup"):
            return
        boots = self._last[sample.cluster, sample.node, sample.collector]
        last = boots.setdefault(sample.boot, Last())
        if clock(sample) <= last.clock:
            return
        if sample.collector == "process":
            self._take_processes(sample, last)
        else:
            self._take_groups(sample, last)
        last.move_on(sample)
        for boot in [boot for boot, other in boots.items() if sample.time - other.time > FRESH * other.every]:
            if boot != sample.boot:
                self._end(boots.pop(boot), sample, kept=set())

    def restore(self, sample: Accepted) -> None:
        """Remember a sample that was counted in an earlier life."""
        if sample.collector == "hardware":
            self._take_machine(sample)
            return
        last = self._last[sample.cluster, sample.node, sample.collector].setdefault(sample.boot, Last())
        last.move_on(sample)
        if sample.collector == "process":
            last.totals = totals(sample, {})
        else:
            last.groups = groups(sample, {})
        last.jobs = {
            name: self._register.job(sample, name, sample.time, exact=False).key
            for name, rows in rows_by_job(sample).items()
            if not _dead(sample, rows)
        }

    def emptied(self) -> tuple[list[Stamped], list[Job]]:
        """Hand over what was made since the last call."""
        made = self._usage, list(self._touched.values())
        self._usage, self._touched = [], {}
        lasts = (last for boots in self._last.values() for last in boots.values())
        self._register.keep_only({key for last in lasts for key in last.jobs.values()})
        return made

    def _take_machine(self, sample: Accepted) -> None:
        if sample.count:
            machine = Machine(sample.columns["cpus"][0], sample.columns["memory"][0])
            self._machines[sample.cluster, sample.node] = machine

    def _take_processes(self, sample: Accepted, last: Last) -> None:
        now = totals(sample, last.totals)
        gained = gains(last.totals, now)
        jobs: dict[Name, str] = {}
        for name, rows in rows_by_job(sample).items():
            members = idents(sample, rows)
            dead = _dead(sample, rows)
            if dead and name not in last.jobs:
                continue  # nobody waits for it: it ended before it was ever seen
            job = None
            if any(ident in last.totals for ident in members):
                job = self._register.by_key(last.jobs.get(name))
            if job is None:
                booted = sample.time - sample.uptime
                began = booted + min(ident.started for ident in members)
                # A session is named by its first process: one that began later leads another session.
                leads = name[0] == "session" and any(str(ident.pid) == name[1] for ident in members)
                job = self._register.job(sample, name, began, exact=True, first=leads)
            if not dead:
                jobs[name] = job.key
            self._describe(sample, name, job)
            job.add_owners(sample.columns["owner"][row] for row in rows)
            for row, ident in zip(rows, members, strict=True):
                job.add_command(sample.columns["command"][row], gained[ident].cpu)
            interval = _interval(sample, last, job, known=name in last.jobs)
            machine = self._machines[sample.cluster, sample.node]
            used = [gained[ident] for ident in members]
            self._enter(sample, last, job, of_processes(job.key, interval, sample, rows, used, machine))
        self._end(last, sample, kept=set(jobs.values()))
        last.totals, last.jobs = now, jobs

    def _take_groups(self, sample: Accepted, last: Last) -> None:
        now = groups(sample, last.groups)
        jobs: dict[Name, str] = {}
        for name, group in now.items():
            job = self._register.by_key(last.jobs.get(name))
            job = job or self._register.job(sample, name, sample.time, exact=False)
            jobs[name] = job.key
            self._describe(sample, name, job)
            interval = _interval(sample, last, job, known=name in last.jobs)
            machine = self._machines[sample.cluster, sample.node]
            self._enter(sample, last, job, of_group(job.key, interval, last.groups.get(name, {}), group, machine))
            job.part(sample.node, "cgroup").group_peak = group["memory_peak"]
        self._end(last, sample, kept=set(jobs.values()))
        last.groups, last.jobs = now, jobs

    def _describe(self, sample: Accepted, name: Name, job: Job) -> None:
        said = self._said.get((sample.cluster, sample.node))
        if said is not None and (found := said.of(name, sample.time)):
            job.describe(found)

    def _enter(self, sample: Accepted, last: Last, job: Job, usage: Usage) -> None:
        job.part(sample.node, usage.source).add(sample.time, usage)
        # Not the latest there ever was: a clock that was ahead once must not hold a job in the future.
        job.seen = max(part.time for part in job.parts)
        job.every = every(sample, last)
        self._touched[job.key] = job
        self._usage.append(Stamped(sample.cluster, sample.node, sample.boot, sample.time, usage))

    def _end(self, last: Last, sample: Accepted, kept: set[str]) -> None:
        """Jobs of the last sample that this one no longer has."""
        for key in set(last.jobs.values()) - kept:
            job = self._register.by_key(key)
            if job is not None:
                job.part(sample.node, sample.collector).alive = False
                self._touched[job.key] = job


def _dead(sample: Accepted, rows: list[int]) -> bool:
    """Nothing but zombies: it has ended, and nobody has waited for it yet."""
    return sample.collector == "process" and all(sample.columns["state"][row] == "Z" for row in rows)


def _interval(sample: Accepted, last: Last, job: Job, *, known: bool) -> Interval:
    """The interval that ends now: since the last sample, or since the job began if that was later.

    Nobody knows how long a control group had been there that is seen with its node for the first time: what it
    used until now counts, over no time at all.
    """
    if job.guessed and not last.clock:
        return Interval(0.0, 0.0)
    since_sample = clock(sample) - last.clock if last.clock else float("inf")
    since_start = max(0.0, sample.time - job.started)
    seconds = since_sample if known else min(since_sample, since_start)
    pace = every(sample, last)
    gap = since_sample > FRESH * pace
    return Interval(seconds, min(seconds, pace) if gap else seconds)
