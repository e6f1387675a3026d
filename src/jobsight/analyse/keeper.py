"""Connects the ledger with a store: what to remember at the start, what to hand over after a batch."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from jobsight import catalogue
from jobsight.analyse import lustre, lustreroll
from jobsight.analyse.capacity import Capacity
from jobsight.analyse.energy import METERS, Taking
from jobsight.analyse.job import Job
from jobsight.analyse.late import Due, Late, due, marks
from jobsight.analyse.ledger import Ledger
from jobsight.analyse.sample import WANTED
from jobsight.analyse.sequence import in_order
from jobsight.analyse.slice import SETTLES, Share, Slice
from jobsight.analyse.stint import Stint
from jobsight.analyse.tally import Tally
from jobsight.analyse.usage import Usage
from jobsight.ingest.accept import Accepted
from jobsight.schema.message import Status
from jobsight.schema.record import fields_of
from jobsight.store.counter import Entry, Jobs, Rows
from jobsight.store.embedded import Embedded
from jobsight.store.protocol import MOST_WAITING, StoreError

if TYPE_CHECKING:
    from jobsight.store.postgres import Postgres

DERIVED: dict[str, type[Any]] = {
    "usage": Usage,
    "late": Late,
    "due": Due,
    "slice": Slice,
    "share": Share,
    "tally": Tally,
    "capacity": Capacity,
    "stint": Stint,
    "energy": Taking,
    **lustre.DERIVED,
}


class Keeper:
    """See `store.counter.Counter`."""

    wanted: Mapping[str, tuple[str, ...]] = WANTED

    def __init__(self) -> None:
        self._ledger: Ledger | None = None

    def restore(self, small: Jobs, hot: Rows) -> None:
        self._ledger = Ledger(Documents(small))
        for collector in ("hardware", "process", "cgroup", "gpu"):
            for sample in last_samples(hot, collector):
                self._ledger.restore(sample)

    def count(self, messages: Sequence[Accepted]) -> tuple[dict[str, list[tuple[Any, ...]]], list[Entry]]:
        if self._ledger is None:
            raise RuntimeError("count() before restore()")
        for message in in_order(message for message in messages if message.status == Status.OK):
            self._ledger.take(message)
        usage, jobs = self._ledger.emptied()
        rows = [(row.cluster, row.node, row.boot, row.time, *row.usage) for row in usage]  # type: ignore[misc]
        derived = {
            "usage": rows,
            "late": marks(self._ledger.late()) + self._ledger.doubts(),
            "lustredue": lustreroll.marks(messages),
            "due": due((row.cluster, row.time, row.usage.seconds) for row in usage)
            # A node takes energy, too, while nothing runs; and what is read early in an hour tells of the one before.
            + due({(m.cluster, m.time, SETTLES) for m in messages if m.collector in METERS}, "energy"),
        }
        return derived, [entry(job) for job in jobs]


def entry(job: Job) -> Entry:
    """A job as it goes into a store."""
    return Entry(
        key=job.key,
        cluster=job.cluster,
        scheduler=job.scheduler,
        id=job.id,
        scope=job.scope,
        owner=job.owner,
        command=job.command,
        nodes=f" {' '.join(job.places)} ",
        started=job.started,
        seen=job.seen,
        every=job.pace,
        alive=job.alive,
        document=msgspec.json.encode(job).decode(),
        number=job.number,
        words=f" {job.number} {job.name} {job.account} ",
        account=job.account,
        waits=job.waits,
    )


class Documents:
    """See `analyse.ledger.Known`."""

    def __init__(self, small: Jobs) -> None:
        self._small = small

    def latest_job(self, cluster: str, scheduler: str, job: str, scope: str, until: float) -> Job | None:
        document = self._small.latest(cluster, scheduler, job, scope, until)
        return msgspec.convert(document, Job) if document else None

    def named_jobs(self, cluster: str, scheduler: str, numbers: Sequence[str]) -> list[Job]:
        return msgspec.convert(self._small.named(cluster, scheduler, numbers), list[Job])


def last_samples(hot: Rows, collector: str) -> list[Accepted]:
    """The last good sample of every boot of every node."""
    names = [field.name for field in fields_of(catalogue.collector(collector).record)]
    found = []
    heads = hot.heads(collector)
    if not heads:
        return []
    # One question for all of them: each looks at every file there is.
    samples: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {head[:4]: [] for head in heads}
    for row in hot.query(
        f"SELECT cluster, node, boot, time, {', '.join(names)} FROM {collector} WHERE time IN (SELECT unnest(?))",
        [sorted({head[3] for head in heads})],
    ):
        if row[:4] in samples:
            samples[row[:4]].append(row[4:])
    for cluster, node, boot, time, uptime, every in heads:
        rows = samples[cluster, node, boot, time]
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) if rows else {}
        sample = Accepted(
            b"",
            cluster,
            node,
            boot,
            collector,
            time,
            uptime or 0.0,
            every,
            Status.OK,
            0.0,
            None,
            {},
            len(rows),
            columns,
        )
        found.append(sample)
    return [sample for sample in found if sample.count or collector != "hardware"]


def open_store(path: str, most: int = MOST_WAITING) -> Embedded:
    """The embedded store with its analysis. With `most` bytes waiting to be digested it takes no more."""
    return Embedded(path, Keeper(), DERIVED, most)


def open_database(url: str, most: int = MOST_WAITING) -> "Postgres":
    """The store in PostgreSQL with its analysis; `most` as above."""
    try:
        from jobsight.store.postgres import Postgres
    except ImportError:
        raise StoreError("the client for PostgreSQL is not installed: pip install 'jobsight[postgres]'") from None
    return Postgres(url, Keeper(), DERIVED, most=most)
