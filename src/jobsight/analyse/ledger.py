"""Turns messages into jobs as they arrive: one sample of one node after the other.

The ledger remembers each node's last sample, so that what comes next can be set against it. A message older than
the last one is kept in the store and not counted here: counters lose nothing by it, only resolution.
"""

from collections import defaultdict
from typing import Any, NamedTuple, Protocol

from jobsight.analyse.growth import Gain, Ident, Total, gains
from jobsight.analyse.job import FRESH, LOCAL, Job
from jobsight.analyse.usage import Usage
from jobsight.ingest.accept import Accepted
from jobsight.schema.units import Bytes, Count, Seconds

# A scheduler's number that comes back after this long a silence is another job.
SILENCE = 3600.0
DEFAULT_EVERY = 30.0

# A job as a node names it: (scheduler, id).
Name = tuple[str, str]


class Stamped(NamedTuple):
    """A usage row with its place and time."""

    cluster: str
    node: str
    boot: str
    time: float
    usage: Usage


class Known(Protocol):
    """Where earlier jobs are found."""

    def latest_job(self, cluster: str, scheduler: str, job: str, scope: str) -> Job | None:
        """The newest job of that name."""


class Last:
    """A node's last sample by one collector."""

    def __init__(self) -> None:
        self.boot = ""
        self.time = 0.0
        self.every = DEFAULT_EVERY
        self.totals: dict[Ident, Total] = {}
        self.groups: dict[Name, dict[str, Any]] = {}
        self.jobs: dict[Name, str] = {}


class Ledger:
    """All nodes' last samples and the jobs they are about."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._last: dict[tuple[str, str, str], Last] = defaultdict(Last)
        self._machines: dict[tuple[str, str], tuple[int | None, int | None]] = {}
        self._jobs: dict[str, Job] = {}
        self.usage: list[Stamped] = []
        self.touched: dict[str, Job] = {}

    def take(self, sample: Accepted) -> None:
        """Count one message that went well."""
        if sample.collector == "hardware" and sample.count:
            machine = sample.columns["cpus"][0], sample.columns["memory"][0]
            self._machines[sample.cluster, sample.node] = machine
        if sample.collector not in ("process", "cgroup"):
            return
        last = self._last[sample.cluster, sample.node, sample.collector]
        if sample.time <= last.time:
            return
        if sample.boot != last.boot:
            self._end(last, sample, keep=set())
            last.totals, last.groups, last.jobs = {}, {}, {}
        count = self._take_processes if sample.collector == "process" else self._take_groups
        count(sample, last)
        last.boot, last.time, last.every = sample.boot, sample.time, sample.every or DEFAULT_EVERY

    def restore(self, sample: Accepted) -> None:
        """Remember a sample that was counted in an earlier life."""
        last = self._last[sample.cluster, sample.node, sample.collector]
        last.boot, last.time, last.every = sample.boot, sample.time, sample.every or DEFAULT_EVERY
        if sample.collector == "hardware":
            self._machines[sample.cluster, sample.node] = (
                sample.columns["cpus"][0],
                sample.columns["memory"][0],
            )
        elif sample.collector == "process":
            last.totals = {
                ident: total for _, members in _members(sample).items() for ident, total in members.items()
            }
            last.jobs = {name: self._job(sample, name, sample.time).key for name in _members(sample)}
        elif sample.collector == "cgroup":
            last.groups = _groups(sample)
            last.jobs = {name: self._job(sample, name, sample.time).key for name in last.groups}

    def emptied(self) -> tuple[list[Stamped], dict[str, Job]]:
        """Hand over what was made since the last call."""
        made = self.usage, self.touched
        self.usage, self.touched = [], {}
        # Jobs that no last sample names will not be asked for soon; the store has them.
        wanted = {key for last in self._last.values() for key in last.jobs.values()}
        self._jobs = {key: job for key, job in self._jobs.items() if key in wanted}
        return made

    def _take_processes(self, sample: Accepted, last: Last) -> None:
        members = _members(sample)
        totals = {ident: total for group in members.values() for ident, total in group.items()}
        gained = gains(last.totals, totals)
        rows = _rows_by_job(sample)
        jobs: dict[Name, str] = {}
        for name, group in members.items():
            survivors = any(ident in last.totals for ident in group)
            earliest = sample.time - sample.uptime + min(ident.started for ident in group)
            job = self._job(sample, name, earliest, last.jobs.get(name) if survivors else None)
            jobs[name] = job.key
            columns = sample.columns
            job.owner = job.owner or columns["owner"][rows[name][0]]
            for row in rows[name]:
                ident = Ident(columns["pid"][row], columns["started"][row])
                job.add_command(columns["command"][row], gained[ident].cpu)
            seconds = _seconds(sample, last, job, name in last.jobs)
            self._enter(sample, last, job, self._process_usage(sample, job, seconds, group, gained, rows[name], last))
        self._end(last, sample, keep=set(jobs))
        last.totals, last.jobs = totals, jobs

    def _process_usage(
        self,
        sample: Accepted,
        job: Job,
        seconds: float,
        group: dict[Ident, Total],
        gained: dict[Ident, Gain],
        rows: list[int],
        last: Last,
    ) -> Usage:
        cpus, memory = self._machines.get((sample.cluster, sample.node), (None, None))
        columns = sample.columns
        own = [v for row in rows if (v := columns.get("memory_anon", [None] * sample.count)[row]) is not None]
        read = [g.read for ident in group if (g := gained[ident]).read is not None]
        written = [g.written for ident in group if (g := gained[ident]).written is not None]
        return Usage(
            job_key=job.key,
            source="process",
            seconds=Seconds(seconds),
            covered=Seconds(_covered(sample, last, seconds)),
            cpu_time=Seconds(sum(gained[ident].cpu for ident in group)),
            cpus=None if cpus is None else Count(cpus),
            memory=Bytes(sum(own)) if own else None,
            memory_limit=None if memory is None else Bytes(memory),
            threads=Count(sum(columns["threads"][row] for row in rows)),
            processes=Count(len(group)),
            read=Bytes(sum(read)) if read else None,
            written=Bytes(sum(written)) if written else None,
        )

    def _take_groups(self, sample: Accepted, last: Last) -> None:
        groups = _groups(sample)
        jobs: dict[Name, str] = {}
        cpus, memory = self._machines.get((sample.cluster, sample.node), (None, None))
        for name, now in groups.items():
            # A control group says nothing of its age: a new one began after the last sample, or at the first look.
            earliest = last.time if last.time and name not in last.jobs else sample.time
            job = self._job(sample, name, earliest, last.jobs.get(name))
            jobs[name] = job.key
            before = last.groups.get(name, {})
            seconds = _seconds(sample, last, job, name in last.jobs)
            usage = Usage(
                job_key=job.key,
                source="cgroup",
                seconds=Seconds(seconds),
                covered=Seconds(_covered(sample, last, seconds)),
                cpu_time=_gained(before, now, "cpu_time"),
                cpus=_known(now["cpus"], cpus),
                memory=now["memory_anon"],
                memory_cache=now["memory_file"],
                memory_limit=_known(now["memory_limit"], memory),
                threads=now["processes"],
                read=_gained(before, now, "read"),
                written=_gained(before, now, "written"),
                oom_kills=_gained(before, now, "oom_kills"),
            )
            self._enter(sample, last, job, usage)
            job.part(sample.node, "cgroup").group_peak = now["memory_peak"]
        self._end(last, sample, keep=set(jobs))
        last.groups, last.jobs = groups, jobs

    def _enter(self, sample: Accepted, last: Last, job: Job, usage: Usage) -> None:
        job.part(sample.node, usage.source).add(sample.time, usage)
        job.seen = max(job.seen, sample.time)
        job.every = sample.every or last.every
        self.touched[job.key] = job
        self.usage.append(Stamped(sample.cluster, sample.node, sample.boot, sample.time, usage))

    def _end(self, last: Last, sample: Accepted, keep: set[Name]) -> None:
        """Jobs of the last sample that this one no longer has."""
        for name in last.jobs.keys() - keep:
            job = self._find(last.jobs[name])
            if job is not None:
                job.part(sample.node, sample.collector).alive = False
                self.touched[job.key] = job

    def _find(self, key: str) -> Job | None:
        return self._jobs.get(key)

    def _job(self, sample: Accepted, name: Name, earliest: float, key: str | None = None) -> Job:
        """The job a node means by a name: the one it meant last time, an earlier one that goes on, or a new one."""
        if key is not None and key in self._jobs:
            return self._jobs[key]
        scheduler, number = name
        scope = f"{sample.node}/{sample.boot}" if scheduler in LOCAL else ""
        found = next((job for job in self._jobs.values() if _same(job, sample.cluster, name, scope)), None)
        found = found or self._known.latest_job(sample.cluster, scheduler, number, scope)
        silence = 1.0 if scheduler in LOCAL else SILENCE
        if found is None or earliest > found.seen + silence:
            place = f"{sample.node}." if scheduler in LOCAL else ""
            found = Job(
                key=f"{scheduler}.{place}{number}.{int(earliest)}",
                cluster=sample.cluster,
                scheduler=scheduler,
                id=number,
                scope=scope,
                owner="",
                started=earliest,
                seen=sample.time,
                every=sample.every or DEFAULT_EVERY,
            )
        found.started = min(found.started, earliest)
        self._jobs[found.key] = found
        return found


def _same(job: Job, cluster: str, name: Name, scope: str) -> bool:
    return (job.cluster, job.scheduler, job.id, job.scope) == (cluster, *name, scope)


def _seconds(sample: Accepted, last: Last, job: Job, known: bool) -> float:
    """How long the interval is that ends now: since the last sample, or since the job began if that was later."""
    if known:
        return sample.time - last.time
    began = max(job.started, last.time) if last.boot == sample.boot else job.started
    return max(0.0, sample.time - began)


def _covered(sample: Accepted, last: Last, seconds: float) -> float:
    every = sample.every or last.every
    gap = last.boot != sample.boot or sample.time - last.time > FRESH * every
    return min(seconds, every) if gap else seconds


def _rows_by_job(sample: Accepted) -> dict[Name, list[int]]:
    rows: dict[Name, list[int]] = defaultdict(list)
    names = zip(sample.columns.get("scheduler", []), sample.columns.get("job", []), strict=True)
    for row, name in enumerate(names):
        rows[name].append(row)
    return rows


def _members(sample: Accepted) -> dict[Name, dict[Ident, Total]]:
    """The processes of each job."""
    columns = sample.columns
    nothing = [None] * sample.count
    read, written = columns.get("read", nothing), columns.get("written", nothing)
    return {
        name: {
            Ident(columns["pid"][row], columns["started"][row]): Total(
                parent=columns["parent"][row],
                cpu=columns["cpu_user"][row] + columns["cpu_system"][row],
                children=columns["cpu_children"][row],
                read=read[row],
                written=written[row],
            )
            for row in rows
        }
        for name, rows in _rows_by_job(sample).items()
    }


_GROUP_COLUMNS = (
    "cpu_time", "cpus", "memory_anon", "memory_file", "memory_limit", "memory_peak", "oom_kills", "processes",
    "read", "written",
)  # fmt: skip


def _groups(sample: Accepted) -> dict[Name, dict[str, Any]]:
    nothing = [None] * sample.count
    return {
        name: {column: sample.columns.get(column, nothing)[rows[0]] for column in _GROUP_COLUMNS}
        for name, rows in _rows_by_job(sample).items()
    }


def _known(value: Any, instead: Any) -> Any:
    return instead if value is None else value


def _gained(before: dict[str, Any], now: dict[str, Any], column: str) -> Any:
    """Growth of a counter since the last sample; since it began if there was none or it started again."""
    if now[column] is None:
        return None
    earlier = before.get(column)
    return now[column] if earlier is None or now[column] < earlier else now[column] - earlier
