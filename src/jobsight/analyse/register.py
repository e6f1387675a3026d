"""Which job a node means by a name. Numbers come back: schedulers and kernels use them again.

A name goes on meaning the same job while one of its processes lives on, or while what now bears it began before
that job was last seen. Otherwise it is another job.
"""

from typing import Protocol

from jobsight.analyse.job import LOCAL, Job
from jobsight.analyse.sample import Name
from jobsight.ingest.accept import Accepted

# A scheduler's number that comes back after this long a silence is another job: its nodes may start it at
# different times and may be heard late. A session's number is one kernel's affair.
SILENCE = 3600.0
LOCAL_SILENCE = 1.0
DEFAULT_EVERY = 30.0


class Known(Protocol):
    """Where earlier jobs are found."""

    def latest_job(self, cluster: str, scheduler: str, job: str, scope: str) -> Job | None:
        """The newest job of that name."""


class Register:
    """The jobs being counted."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._by_key: dict[str, Job] = {}
        self._by_name: dict[tuple[str, Name, str], Job] = {}

    def by_key(self, key: str | None) -> Job | None:
        return self._by_key.get(key) if key else None

    def job(self, sample: Accepted, name: Name, began: float, *, exact: bool, first: bool = False) -> Job:
        """The job of a name whose oldest part began at `began`; not `exact` if that is only the latest it can be.
        `first`: that part is the one with which a job of this name begins, so an earlier job cannot have it.
        """
        scheduler, number = name
        scope = f"{sample.node}/{sample.boot}" if scheduler in LOCAL else ""
        found = self._by_name.get((sample.cluster, name, scope)) or self._known.latest_job(
            sample.cluster, scheduler, number, scope
        )
        silence = LOCAL_SILENCE if scheduler in LOCAL else SILENCE
        another = found is not None and first and not found.guessed and began > found.started + LOCAL_SILENCE
        if found is None or another or began > found.seen + silence:
            found = self._new(sample, name, scope, began)
            found.guessed = not exact
        if exact:
            found.started = began if found.guessed else min(found.started, began)
            found.guessed = False
        self._by_key[found.key] = found
        self._by_name[sample.cluster, name, scope] = found
        return found

    def keep_only(self, keys: set[str]) -> None:
        """Forget the others: the store has them."""
        self._by_key = {key: job for key, job in self._by_key.items() if key in keys}
        self._by_name = {place: job for place, job in self._by_name.items() if job.key in keys}

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
