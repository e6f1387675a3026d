"""Which job a node means by a name. Numbers come back: schedulers and kernels use them again.

A name goes on meaning the same job while one of its processes lives on, or while what now bears it began before
that job was last seen. Otherwise it is another job. Where the scheduler has told when a job ran, that decides: what
began in that time is the job's, and what began after its end is not.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from jobsight.analyse.batch import SLACK, Batch, same_life
from jobsight.analyse.job import LOCAL, Job
from jobsight.analyse.sample import Name
from jobsight.ingest.accept import Accepted

# A scheduler's number that comes back after this long a silence is another job: its nodes may start it at
# different times and may be heard late. A session's number is one kernel's affair.
SILENCE = 3600.0
LOCAL_SILENCE = 1.0
DEFAULT_EVERY = 30.0
# So many numbers are asked for at once.
MANY = 500
# Jobs that have ended and are still remembered.
FEW = 1000


class Known(Protocol):
    """Where earlier jobs are found."""

    def latest_job(self, cluster: str, scheduler: str, job: str, scope: str, until: float) -> Job | None:
        """The newest job of that name that had started by then."""

    def named_jobs(self, cluster: str, scheduler: str, numbers: Sequence[str]) -> list[Job]:
        """All jobs of these numbers that count for the whole cluster."""


class Register:
    """The jobs being counted."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._by_key: dict[str, Job] = {}
        self._by_name: dict[tuple[str, Name, str], list[Job]] = {}
        self._swept = 0

    @property
    def full(self) -> bool:
        """Whether it is worth a look which jobs have ended: to look at all of them takes its time."""
        return len(self._by_key) > 2 * self._swept + FEW

    def by_key(self, key: str | None) -> Job | None:
        return self._by_key.get(key) if key else None

    def job(self, sample: Accepted, name: Name, began: float, *, exact: bool, first: bool = False) -> Job:
        """The job of a name whose oldest part began at `began`; not `exact` if that is only the latest it can be.
        `first`: that part is the one with which a job of this name begins, so an earlier job cannot have it.
        """
        scheduler, _ = name
        scope = f"{sample.node}/{sample.boot}" if scheduler in LOCAL else ""
        silence = LOCAL_SILENCE if scheduler in LOCAL else SILENCE
        found = self._latest(sample.cluster, name, scope, began, sample.time + silence, silence)
        another = found is not None and first and not found.guessed and began > found.started + LOCAL_SILENCE
        if found is None or another or (found.batch is None and began > found.seen + silence):
            found = self._new(sample, name, scope, began)
            found.guessed = not exact
        if exact:
            found.started = began if found.guessed else min(found.started, began)
            found.guessed = False
        elif found.guessed:
            found.started = min(found.started, began)
        self._keep(found)
        return found

    def counted(self, sample: Accepted, name: Name) -> Job:
        """The job into which a sample was counted in an earlier life: what it has of this node is of that time."""
        if name[0] not in LOCAL:
            self.fetch(sample.cluster, name[0], [name[1]])
            for job in self._by_name.get((sample.cluster, name, ""), ()):
                if any(p.node == sample.node and p.time == sample.time for p in job.parts):
                    return job
        return self.job(sample, name, sample.time, exact=False)

    def told(self, cluster: str, scheduler: str, batch: Batch) -> tuple[Job, bool]:
        """The job a scheduler tells of, and whether it is new. One that was only sampled yet is it if it was there
        while this one ran, or began when it could have begun.
        """
        known = self._known_as(cluster, scheduler, batch)
        for job in known:
            if job.batch is not None and same_life(job.batch, batch):
                return job, False
        since = batch.submit if batch.start is None else batch.start
        there = [(job.started if batch.start is None else job.seen, job) for job in known if job.batch is None]
        sampled = [job for time, job in there if since is None or time >= since - SLACK]
        sampled = [job for job in sampled if batch.ended is None or job.started <= batch.ended + SLACK]
        if sampled:
            # One that seems older than this one has taken in an older process; one that does not is the better guess.
            return min(sampled, key=lambda job: (job.started < (since or 0.0) - SLACK, job.started)), False
        begun = batch.told if since is None else since
        key = f"{cluster}.{scheduler}.{batch.job}.{int(batch.submit or begun)}"
        while key in self._by_key:
            key += "+"
        job = Job(key, cluster, scheduler, batch.job, "", "", begun, batch.told, DEFAULT_EVERY, guessed=True)
        self._keep(job)
        return job, True

    def knows(self, cluster: str, scheduler: str, batch: Batch) -> bool:
        """Whether it was told of at hand: then the store need not be asked."""
        known = self._known_as(cluster, scheduler, batch)
        return any(job.batch is not None and same_life(job.batch, batch) for job in known)

    def _known_as(self, cluster: str, scheduler: str, batch: Batch) -> list[Job]:
        names = [batch.job, *([batch.sluid] if batch.sluid else [])]
        return [job for name in names for job in self._by_name.get((cluster, (scheduler, name), ""), ())]

    def fetch(self, cluster: str, scheduler: str, numbers: Iterable[str]) -> None:
        """Have what the store has of these numbers at hand."""
        wanted = list(dict.fromkeys(numbers))
        for first in range(0, len(wanted), MANY):
            for job in self._known.named_jobs(cluster, scheduler, wanted[first : first + MANY]):
                self._keep(job)

    def mixed(self, job: Job) -> list[tuple[str, str, float]]:
        """Places and times at which samples of one life of a job were taken for another's: nobody knew better."""
        lives = [other for other in self._by_name.get((job.cluster, (job.scheduler, job.id), ""), ()) if other.batch]
        found = []
        for one in lives:
            others = [other.batch for other in lives if other.batch and other is not one]
            for part in one.parts if others and one.batch else ():
                began = part.time if part.began is None else part.began
                if _belongs(one.batch, others, began) and _belongs(one.batch, others, part.time):
                    continue
                found += [(job.cluster, part.node, began), (job.cluster, part.node, part.time)]
        return found

    def _keep(self, job: Job) -> None:
        if job.key not in self._by_key:
            self._by_key[job.key] = job
            self._by_name.setdefault((job.cluster, (job.scheduler, job.id), job.scope), []).append(job)

    def _latest(self, cluster: str, name: Name, scope: str, began: float, until: float, silence: float) -> Job | None:
        """The newest job of a name that had started by `until`: a node that is heard late may mean an earlier one."""
        if name[0] not in LOCAL:
            return self._scheduled(cluster, name, began, until, silence)
        known = [job for job in self._by_name.get((cluster, name, scope), ()) if job.started <= until]
        found = max(known, key=lambda job: job.seen, default=None)
        if found is not None and began <= found.seen + silence:
            return found
        stored = self._known.latest_job(cluster, *name, scope, until)
        if stored is None or (found is not None and stored.seen <= found.seen):
            return found
        return self._by_key.get(stored.key, stored)

    def _scheduled(self, cluster: str, name: Name, began: float, until: float, silence: float) -> Job | None:
        """The same for a name that counts on all nodes: by when its scheduler says it ran, else by its silence."""
        for fetched in (False, True):
            if fetched:
                self.fetch(cluster, name[0], [name[1]])
            jobs = self._by_name.get((cluster, name, ""), ())
            # By when it began, else by when it was seen: a job may take in a process that is older than it is.
            for moment in (began, until - silence):
                told = [(job.batch.away(moment), -job.started, job) for job in jobs if job.batch]
                if near := [(away, latest, job) for away, latest, job in told if away is not None]:
                    return min(near, key=lambda item: item[:2])[2]
            sampled = [job for job in jobs if not job.batch and job.started <= until]
            found = max(sampled, key=lambda job: job.seen, default=None)
            if found is not None and began <= found.seen + silence:
                return found
        return None

    def keep_only(self, keys: set[str]) -> None:
        """Forget the others: the store has them."""
        self._by_key = {key: job for key, job in self._by_key.items() if key in keys}
        kept = {place: [job for job in jobs if job.key in keys] for place, jobs in self._by_name.items()}
        self._by_name = {place: jobs for place, jobs in kept.items() if jobs}
        self._swept = len(self._by_key)

    def _new(self, sample: Accepted, name: Name, scope: str, began: float) -> Job:
        scheduler, number = name
        place = f"{sample.node}." if scope else ""
        return Job(
            key=f"{sample.cluster}.{scheduler}.{place}{number}.{int(began)}",
            cluster=sample.cluster,
            scheduler=scheduler,
            id=number,
            scope=scope,
            owner="",
            started=began,
            seen=sample.time,
            every=sample.every or DEFAULT_EVERY,
        )


def _belongs(own: Batch | None, others: list[Batch], time: float) -> bool:
    """Whether no other life has a better claim to a time than the one it was counted into."""
    mine = own.away(time) if own else None
    return mine == 0 or not any(other.start is not None and other.away(time) == 0 for other in others)
