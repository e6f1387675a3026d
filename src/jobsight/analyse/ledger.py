"""Turns messages into jobs as they arrive: one sample of one node after the other.

The ledger remembers each node's last sample, so that what comes next can be set against it. A message older than
the last one is kept in the store and not counted here: counters lose nothing by it, only resolution.
"""

from collections import defaultdict
from typing import Any, NamedTuple

from jobsight.analyse.growth import Ident, Total, gains
from jobsight.analyse.job import Job
from jobsight.analyse.register import DEFAULT_EVERY, Known, Register
from jobsight.analyse.sample import Name, groups, idents, rows_by_job, totals
from jobsight.analyse.usage import Interval, Machine, Usage, of_group, of_processes
from jobsight.ingest.accept import Accepted
from jobsight.store.protocol import FRESH


class Stamped(NamedTuple):
    """A usage row with its place and time."""

    cluster: str
    node: str
    boot: str
    time: float
    usage: Usage


class Last:
    """A node's last sample by one collector."""

    def __init__(self) -> None:
        self.boot = ""
        self.time = 0.0
        self.every = DEFAULT_EVERY
        self.totals: dict[Ident, Total] = {}
        self.groups: dict[Name, dict[str, Any]] = {}
        self.jobs: dict[Name, str] = {}

    def move_on(self, sample: Accepted) -> None:
        self.boot, self.time, self.every = sample.boot, sample.time, sample.every or DEFAULT_EVERY


class Ledger:
    """All nodes' last samples and the jobs they are about."""

    def __init__(self, known: Known) -> None:
        self._register = Register(known)
        self._last: dict[tuple[str, str, str], Last] = defaultdict(Last)
        self._machines: dict[tuple[str, str], Machine] = defaultdict(Machine)
        self._usage: list[Stamped] = []
        self._touched: dict[str, Job] = {}

    def take(self, sample: Accepted) -> None:
        """Count one message that went well."""
        if sample.collector == "hardware":
            self._take_machine(sample)
        if sample.collector not in ("process", "cgroup"):
            return
        last = self._last[sample.cluster, sample.node, sample.collector]
        if sample.time <= last.time:
            return
        if sample.boot != last.boot:
            self._end(last, sample, kept=set())
            last.totals, last.groups, last.jobs = {}, {}, {}
        if sample.collector == "process":
            self._take_processes(sample, last)
        else:
            self._take_groups(sample, last)
        last.move_on(sample)

    def restore(self, sample: Accepted) -> None:
        """Remember a sample that was counted in an earlier life."""
        if sample.collector == "hardware":
            self._take_machine(sample)
            return
        last = self._last[sample.cluster, sample.node, sample.collector]
        last.move_on(sample)
        if sample.collector == "process":
            last.totals = totals(sample)
        else:
            last.groups = groups(sample)
        last.jobs = {
            name: self._register.job(sample, name, sample.time, exact=False).key for name in rows_by_job(sample)
        }

    def emptied(self) -> tuple[list[Stamped], list[Job]]:
        """Hand over what was made since the last call."""
        made = self._usage, list(self._touched.values())
        self._usage, self._touched = [], {}
        self._register.keep_only({key for last in self._last.values() for key in last.jobs.values()})
        return made

    def _take_machine(self, sample: Accepted) -> None:
        if sample.count:
            machine = Machine(sample.columns["cpus"][0], sample.columns["memory"][0])
            self._machines[sample.cluster, sample.node] = machine

    def _take_processes(self, sample: Accepted, last: Last) -> None:
        now = totals(sample)
        gained = gains(last.totals, now)
        jobs: dict[Name, str] = {}
        for name, rows in rows_by_job(sample).items():
            members = idents(sample, rows)
            dead = all(sample.columns["state"][row] == "Z" for row in rows)
            if dead and name not in last.jobs:
                continue  # nobody waits for it: it ended before it was ever seen
            job = None
            if any(ident in last.totals for ident in members):
                job = self._register.by_key(last.jobs.get(name))
            if job is None:
                booted = sample.time - sample.uptime
                began = booted + min(ident.started for ident in members)
                job = self._register.job(sample, name, began, exact=True)
            if not dead:
                jobs[name] = job.key
            job.owner = job.owner or sample.columns["owner"][rows[0]]
            for row, ident in zip(rows, members, strict=True):
                job.add_command(sample.columns["command"][row], gained[ident].cpu)
            interval = _interval(sample, last, job, known=name in last.jobs)
            machine = self._machines[sample.cluster, sample.node]
            used = [gained[ident] for ident in members]
            self._enter(sample, job, of_processes(job.key, interval, sample, rows, used, machine))
        self._end(last, sample, kept=set(jobs.values()))
        last.totals, last.jobs = now, jobs

    def _take_groups(self, sample: Accepted, last: Last) -> None:
        now = groups(sample)
        jobs: dict[Name, str] = {}
        for name, group in now.items():
            job = self._register.by_key(last.jobs.get(name))
            job = job or self._register.job(sample, name, sample.time, exact=False)
            jobs[name] = job.key
            interval = _interval(sample, last, job, known=name in last.jobs)
            machine = self._machines[sample.cluster, sample.node]
            self._enter(sample, job, of_group(job.key, interval, last.groups.get(name, {}), group, machine))
            job.part(sample.node, "cgroup").group_peak = group["memory_peak"]
        self._end(last, sample, kept=set(jobs.values()))
        last.groups, last.jobs = now, jobs

    def _enter(self, sample: Accepted, job: Job, usage: Usage) -> None:
        job.part(sample.node, usage.source).add(sample.time, usage)
        job.seen = max(job.seen, sample.time)
        job.every = sample.every or job.every
        self._touched[job.key] = job
        self._usage.append(Stamped(sample.cluster, sample.node, sample.boot, sample.time, usage))

    def _end(self, last: Last, sample: Accepted, kept: set[str]) -> None:
        """Jobs of the last sample that this one no longer has."""
        for key in set(last.jobs.values()) - kept:
            job = self._register.by_key(key)
            if job is not None:
                job.part(sample.node, sample.collector).alive = False
                self._touched[job.key] = job


def _interval(sample: Accepted, last: Last, job: Job, *, known: bool) -> Interval:
    """The interval that ends now: since the last sample, or since the job began if that was later.

    Nobody knows how long a control group had been there that is seen with its node for the first time: what it
    used until now counts, over no time at all.
    """
    same_boot = last.boot == sample.boot
    if job.guessed and not same_boot:
        return Interval(0.0, 0.0)
    began = last.time if known else max(job.started, last.time) if same_boot else job.started
    seconds = max(0.0, sample.time - began)
    every = sample.every or last.every
    gap = not same_boot or sample.time - last.time > FRESH * every
    return Interval(seconds, min(seconds, every) if gap else seconds)
