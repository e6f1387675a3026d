"""Turns messages into jobs as they arrive: one sample of one node after the other.

The ledger remembers each node's last sample, so that what comes next can be set against it. A message that comes
after later ones is stored, marked as late and not counted here: `analyse.recount` does it soon.
"""

from collections import defaultdict
from collections.abc import Container
from typing import NamedTuple

from jobsight.analyse import held
from jobsight.analyse.batch import SOURCES, batches
from jobsight.analyse.growth import Ident, gains
from jobsight.analyse.inventory import Inventory
from jobsight.analyse.job import Job, Part
from jobsight.analyse.last import RECENT, Last, Said, Since, comes_late, interval_of, since_last
from jobsight.analyse.register import DEFAULT_EVERY, Known, Register
from jobsight.analyse.sample import Name, column, groups, idents, labels, rows_by_job, totals
from jobsight.analyse.usage import Usage, of_group, of_processes
from jobsight.ingest.accept import Accepted
from jobsight.store.protocol import FRESH

# What is set against the sample before.
SAMPLED = ("process", "cgroup", "gpu")


class Stamped(NamedTuple):
    """A usage row with its place and time."""

    cluster: str
    node: str
    boot: str
    time: float
    usage: Usage


class Ledger:
    """All nodes' last samples and the jobs they are about."""

    def __init__(self, known: Known) -> None:
        self._register = Register(known)
        # By cluster, node and collector, then by boot: two machines of one name must not look like endless reboots.
        self._last: dict[tuple[str, str, str], dict[str, Last]] = defaultdict(dict)
        self._inventory = Inventory()
        # What each node's last allocation messages say of its jobs, which may not be known yet: they come first.
        self._said: dict[tuple[str, str], list[Said]] = {}
        self._usage: list[Stamped] = []
        self._touched: dict[str, Job] = {}
        self._late: list[Accepted] = []
        self._doubts: set[tuple[str, str, float]] = set()

    def take(self, sample: Accepted) -> None:
        """Count one message that went well."""
        if sample.collector == "hardware":
            since = self._inventory.learn(sample)
            if since is not None and self._newest(sample) >= since:
                self._late.append(sample)
        if sample.collector == "allocation":
            self._take_allocation(sample)
        if sample.collector in SOURCES:
            self._take_batches(sample)
        if sample.collector not in SAMPLED:
            return
        boots = self._last[sample.cluster, sample.node, sample.collector]
        if comes_late(sample, boots):
            self._late.append(sample)
            return
        last = boots.setdefault(sample.boot, Last())
        if sample.collector == "process":
            self._take_processes(sample, last)
        elif sample.collector == "cgroup":
            self._take_groups(sample, last)
        else:
            self._take_cards(sample, last)
        last.move_on(sample)
        for boot in [boot for boot, other in boots.items() if sample.time - other.time > FRESH * other.every]:
            if boot != sample.boot:
                self._end(boots.pop(boot), sample, kept=set())

    def restore(self, sample: Accepted) -> None:
        """Remember a sample that was counted in an earlier life."""
        if sample.collector == "hardware":
            self._inventory.learn(sample)
            return
        last = self._last[sample.cluster, sample.node, sample.collector].setdefault(sample.boot, Last())
        last.move_on(sample)
        if sample.collector == "process":
            last.totals = totals(sample, idents(sample), {})
        elif sample.collector == "cgroup":
            last.groups = groups(sample, {})
        else:
            last.cards = held.counters(sample)
        last.jobs = {name: self._register.counted(sample, name).key for name in _names(sample)}

    def emptied(self) -> tuple[list[Stamped], list[Job]]:
        """Hand over what was made since the last call."""
        for job in self._touched.values():
            job.settle()
        made = self._usage, list(self._touched.values())
        self._usage, self._touched = [], {}
        if self._register.full:
            lasts = (last for boots in self._last.values() for last in boots.values())
            self._register.keep_only({key for last in lasts for key in last.jobs.values()})
        return made

    def late(self) -> list[Accepted]:
        """Hand over what came too late to be counted since the last call."""
        found, self._late = self._late, []
        return found

    def doubts(self) -> list[tuple[str, str, str, float, str]]:
        """Hand over marks of where the scheduler knows of another life than the one that was counted into."""
        found, self._doubts = self._doubts, set()
        return [(cluster, node, "", time, "process") for cluster, node, time in sorted(found)]

    def oldest(self, cluster: str, node: str, but: Container[str] = ()) -> float | None:
        """When the first of the jobs began that are on a node now, but for some; None if it has no other."""
        keys = {key for last in self._lasts(cluster, node) for key in last.jobs.values()}
        jobs = [job for key in keys if key not in but and (job := self._register.by_key(key))]
        began = [part.began for job in jobs for part in job.parts if part.node == node and part.began is not None]
        return min(began, default=None)

    def _lasts(self, cluster: str, node: str) -> list[Last]:
        found = (self._last.get((cluster, node, collector), {}) for collector in SAMPLED)
        return [last for boots in found for last in boots.values()]

    def _newest(self, sample: Accepted) -> float:
        return max((last.time for last in self._lasts(sample.cluster, sample.node)), default=0.0)

    def _take_allocation(self, sample: Accepted) -> None:
        place = sample.cluster, sample.node
        said = Said(sample.time, sample.every or DEFAULT_EVERY, labels(sample))
        recent = [other for other in self._said.get(place, []) if said.time - other.time <= RECENT]
        self._said[place] = sorted([*recent, said], key=lambda other: other.time)
        unseen = set(said.labels)
        for last in self._lasts(*place):
            unseen -= last.jobs.keys()
            for name in said.labels.keys() & last.jobs.keys():
                job = self._register.by_key(last.jobs[name])
                found = said.of(name, last.time)
                if job is not None and found and job.describe(found):
                    self._touched[job.key] = job
        if unseen and self._newest(sample) > said.time:
            # They may have ended: who counts again will know.
            self._late.append(sample)

    def _take_batches(self, sample: Accepted) -> None:
        """What a scheduler says of its jobs. None of it depends on when it comes."""
        found = list(batches(sample))
        numbers: dict[str, list[str]] = defaultdict(list)
        for scheduler, batch in found:
            if not self._register.knows(sample.cluster, scheduler, batch):
                numbers[scheduler] += [batch.job, *([batch.sluid] if batch.sluid else [])]
        for scheduler, some in numbers.items():
            self._register.fetch(sample.cluster, scheduler, some)
        for scheduler, batch in found:
            job, new = self._register.told(sample.cluster, scheduler, batch)
            over = job.batch is not None and job.batch.over
            if job.tell(batch):
                self._touched[job.key] = job
            if new or (not over and job.batch and job.batch.over):
                self._doubts.update(self._register.mixed(job))

    def _take_processes(self, sample: Accepted, last: Last) -> None:
        everyone = idents(sample)
        now = totals(sample, everyone, last.totals)
        gained = gains(last.totals, now)
        owners, commands, states = (column(sample, name) for name in ("owner", "command", "state"))
        since, machine = since_last(sample, last), self._inventory.at(sample)
        jobs: dict[Name, str] = {}
        for name, rows in rows_by_job(sample).items():
            members = [everyone[row] for row in rows]
            dead = _dead(sample, rows)
            if dead and name not in last.jobs:
                continue  # nobody waits for it: it ended before it was ever seen
            job, began = None, None
            if not last.totals.keys().isdisjoint(members):
                job = self._register.by_key(last.jobs.get(name))
            if job is None:
                began = sample.time - sample.uptime + min(ident.started for ident in members)
                job = self._begun(sample, name, members, began)
            if not dead:
                jobs[name] = job.key
            self._describe(sample, name, job)
            job.add_owners(owners[row] for row in rows)
            used = [gained[ident] for ident in members]
            interval = interval_of(since, None if began is None else sample.time - began, known=name in last.jobs)
            part = self._enter(sample, since, job, of_processes(job.key, interval, sample, rows, used, machine))
            part.add_commands([commands[row] for row in rows], used)
            if "Z" in states:
                part.zombies_peak = max(part.zombies_peak or 0, sum(states[row] == "Z" for row in rows))
            if began is not None:
                part.begin(began)
        self._end(last, sample, kept=set(jobs.values()))
        last.totals, last.jobs = now, jobs

    def _begun(self, sample: Accepted, name: Name, members: list[Ident], began: float) -> Job:
        """The job of processes none of which was there before."""
        # A session is named by its first process: one that began later leads another session.
        leads = name[0] == "session" and any(str(ident.pid) == name[1] for ident in members)
        return self._register.job(sample, name, began, exact=True, first=leads)

    def _take_groups(self, sample: Accepted, last: Last) -> None:
        now = groups(sample, last.groups)
        since, machine = since_last(sample, last), self._inventory.at(sample)
        jobs: dict[Name, str] = {}
        for name, group in now.items():
            job = self._continued(sample, last, name)
            jobs[name] = job.key
            known = last.jobs.get(name) == job.key
            self._describe(sample, name, job)
            before = last.groups.get(name, {}) if known else {}
            usage = of_group(job.key, interval_of(since, None, known=known), before, group, machine)
            part = self._enter(sample, since, job, usage)
            part.add_group(before, group)
            if not known:
                part.begin(sample.time)
        self._end(last, sample, kept=set(jobs.values()))
        last.groups, last.jobs = now, jobs

    def _take_cards(self, sample: Accepted, last: Last) -> None:
        since = since_last(sample, last)
        jobs: dict[Name, str] = {}
        for name, cards in held.looks(sample).items():
            if name is None:
                continue
            job = self._continued(sample, last, name)
            jobs[name] = job.key
            age = None if job.guessed else sample.time - job.started
            interval = interval_of(since, age, known=last.jobs.get(name) == job.key)
            part = self._enter(sample, since, job, held.of_cards(job.key, interval, cards, last.cards))
            if part.began is None:
                part.begin(sample.time - interval.seconds)
        self._end(last, sample, kept=set(jobs.values()))
        last.cards, last.jobs = held.counters(sample), jobs

    def _continued(self, sample: Accepted, last: Last, name: Name) -> Job:
        """The job of a name that says nothing of when it began: as a rule the one it was the last time."""
        job = self._register.by_key(last.jobs.get(name))
        if job is not None and job.batch and job.batch.over:
            # Processes know of another life of a job that was requeued since the last sample.
            seen = self._last.get((sample.cluster, sample.node, "process"), {}).get(sample.boot, Last()).jobs
            job = self._register.by_key(seen.get(name)) or job
        return job or self._register.job(sample, name, sample.time, exact=False)

    def _describe(self, sample: Accepted, name: Name, job: Job) -> None:
        for said in reversed(self._said.get((sample.cluster, sample.node), ())):
            if found := said.of(name, sample.time):
                job.describe(found)
                return

    def _enter(self, sample: Accepted, since: Since, job: Job, usage: Usage) -> Part:
        part = job.part(sample.node, usage.source)
        before = part.time
        part.add(sample.time, usage)
        if sample.time >= job.seen:
            job.seen = sample.time
        elif before >= job.seen or len(job.parts) == 1:
            # Not the latest there ever was: a clock that was ahead once must not hold a job in the future.
            job.seen = max(part.time for part in job.parts)
        job.every = part.every = since.every
        self._touched[job.key] = job
        self._usage.append(Stamped(sample.cluster, sample.node, sample.boot, sample.time, usage))
        return part

    def _end(self, last: Last, sample: Accepted, kept: set[str]) -> None:
        """Jobs of the last sample that this one no longer has."""
        for key in set(last.jobs.values()) - kept:
            job = self._register.by_key(key)
            if job is not None:
                job.part(sample.node, sample.collector).alive = False
                self._touched[job.key] = job


def _names(sample: Accepted) -> list[Name]:
    """The jobs that a sample shows to be there."""
    if sample.collector == "gpu":
        return held.names(sample)
    return [name for name, rows in rows_by_job(sample).items() if not _dead(sample, rows)]


def _dead(sample: Accepted, rows: list[int]) -> bool:
    """Nothing but zombies: it has ended, and nobody has waited for it yet."""
    if sample.collector != "process":
        return False
    states = sample.columns["state"]
    return states[rows[0]] == "Z" and all(states[row] == "Z" for row in rows)
