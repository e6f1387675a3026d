"""From when on a node must be replayed, and which of its jobs that concerns."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import convert

from jobsight.analyse.job import Job
from jobsight.analyse.place import Place
from jobsight.store.protocol import JobQuery, Store


class Stretch(NamedTuple):
    """A node's time in which every job in question lies whole, as far as it was there."""

    place: Place
    since: float
    until: float
    again: frozenset[str]
    """Jobs that are counted again."""
    left: frozenset[str]
    """Jobs that cannot be: they began before the rows that are left."""


def stretch(store: Store, place: Place, horizon: float) -> Stretch:
    """Back from the first message in question until no job that was there later had begun."""
    since = place.first
    while True:
        query = JobQuery(node=place.node, since=since, until=place.last, limit=10**9)
        stays = {}
        for document in store.jobs(query, place.last):
            job = convert(document, Job)
            found = stay(job, place.node) if job.cluster == place.cluster else None
            if found and found[0] <= place.last and found[1] >= since:
                stays[job.key] = found
        earliest = min((began for began, _ in stays.values() if began >= horizon), default=since)
        if earliest >= since:
            break
        since = earliest
    again = frozenset(key for key, (began, _) in stays.items() if began >= horizon)
    until = max((stays[key][1] for key in again), default=since)
    return Stretch(place, max(since, horizon), until, again, frozenset(stays.keys() - again))


def stay(job: Job, node: str) -> tuple[float, float] | None:
    """From when to when a job was on a node."""
    parts = [part for part in job.parts if part.node == node]
    began = [job.started if part.began is None else part.began for part in parts]
    return (min(began), max(part.time for part in parts)) if parts else None


class Past:
    """Earlier jobs as a replay may know them: without what it is about to count. See `analyse.register.Known`."""

    def __init__(self, store: Store, again: set[tuple[str, str]]) -> None:
        self._store, self._again = store, again

    def latest_job(self, cluster: str, scheduler: str, job: str, scope: str, until: float) -> Job | None:
        document = self._store.latest(cluster, scheduler, job, scope, until)
        return self._without(convert(document, Job)) if document else None

    def named_jobs(self, cluster: str, scheduler: str, numbers: Sequence[str]) -> list[Job]:
        found = (self._without(convert(item, Job)) for item in self._store.named(cluster, scheduler, numbers))
        return [job for job in found if job is not None]

    def _without(self, found: Job) -> Job | None:
        """None if nothing is left of it. What its scheduler said of it is."""
        parts = [part for part in found.parts if (found.key, part.node) not in self._again]
        if len(parts) == len(found.parts):
            return found
        if not parts and found.batch is None:
            return None
        found.parts = parts
        found.settle()
        return found
