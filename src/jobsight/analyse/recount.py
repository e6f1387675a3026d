"""Counts messages again from stored rows: those that came after later ones, or all of a time.

A node is replayed from where none of the jobs in question had begun there to where the last of them has ended,
through the same ledger that counts messages as they arrive, and what it yields takes the place of what was there. So
the result is that of messages that came in order, and doing it twice gives the same.

Other nodes are not touched: a job is the sum of its parts, and only this node's part is made again. A job that began
before the oldest rows that are left cannot be counted again, and is left alone.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import convert

from jobsight.analyse.job import Job
from jobsight.analyse.keeper import entry
from jobsight.analyse.late import due
from jobsight.analyse.ledger import Ledger, Stamped
from jobsight.analyse.place import Place, places
from jobsight.analyse.replay import EVER, MEASURED, before, messages, spans
from jobsight.analyse.sequence import in_order
from jobsight.analyse.stretch import Past, Stretch, stay, stretch
from jobsight.ingest.accept import Accepted
from jobsight.store.protocol import Change, Store

# Nodes replayed together: each looks at the same files. So many, and so many seconds of all of them.
TOGETHER = 50
SECONDS = 20 * 86400.0


class Recounted(NamedTuple):
    """What was done."""

    nodes: int = 0
    jobs: int = 0
    left: frozenset[str] = frozenset()
    """Jobs that were left alone: rows they are made of are gone."""

    def and_also(self, other: "Recounted") -> "Recounted":
        return Recounted(self.nodes + other.nodes, self.jobs + other.jobs, self.left | other.left)


def _silent(done: int, total: int) -> None:
    """For those who do not want to know."""


def recount(store: Store, progress: Callable[[int, int], None] = _silent) -> Recounted:
    """Count what is marked in `late`. Nothing is digested while some nodes are replayed."""
    found = Recounted()
    waiting = places(store)
    total = len(waiting)
    while waiting:
        together, waiting = _taken(waiting)
        with store.still() as free:
            if not free:
                return found
            found = found.and_also(_counted(store, together))
        progress(total - len(waiting), total)
    return found


def _taken(waiting: list[Place]) -> tuple[list[Place], list[Place]]:
    """Some places of one cluster, and the rest."""
    together: list[Place] = []
    seconds = 0.0
    for place in [place for place in waiting if place.cluster == waiting[0].cluster][:TOGETHER]:
        seconds += min(place.last - place.first, SECONDS)
        if together and seconds > SECONDS:
            break
        together.append(place)
    return together, [place for place in waiting if place not in together]


def _counted(store: Store, together: list[Place]) -> Recounted:
    while True:
        work = _Recount(store, together)
        work.play()
        wider = [work.widened(place) for place in together]
        if wider == together:
            return work.finish()
        together = wider


class Replay:
    """How far one node has been counted again."""

    def __init__(self, found: Stretch, ledger: Ledger) -> None:
        self.place, self.since, self.left = found.place, found.since, found.left
        self.until = found.until
        self._end = max(found.until, found.place.last)
        self.done = False
        self._ledger = ledger
        self._after: dict[str, int] = {}

    def take(self, message: Accepted) -> None:
        if self.done or (message.collector in MEASURED and message.time < self.since):
            return
        self._ledger.take(message)
        if message.collector in MEASURED:
            self.until = max(self.until, message.time)
            number = self._after.get(message.collector, 0)
            self._after[message.collector] = number + (message.time > self._end)
            self.done = min(self._after.values()) > 1 and self._settled()

    def _settled(self) -> bool:
        """Whether what comes next was counted right the first time: it and what it was set against came in order, and
        no job that is on the node now was there when something came late.
        """
        oldest = self._ledger.oldest(self.place.cluster, self.place.node, self.left)
        return oldest is None or oldest > self.place.last


class _Recount:
    """Some nodes of one cluster counted again, in one ledger: they may share jobs."""

    def __init__(self, store: Store, together: list[Place]) -> None:
        horizon = max(store.horizon(table) for table in (*MEASURED, "run"))
        found = [stretch(store, place, horizon) for place in together]
        self._store = store
        self._old = {(key, item.place.node) for item in found for key in item.again}
        self._ledger = Ledger(Past(store, self._old))
        self._replays = {item.place.node: Replay(item, self._ledger) for item in found}
        self._cluster = together[0].cluster
        self._usage: list[Stamped] = []
        self._jobs: dict[str, Job] = {}

    def widened(self, place: Place) -> Place:
        """Up to where jobs end of which nobody knew that they were there so early: they must be counted whole."""
        ends = []
        for key, node in self._made() - self._old:
            stored = self._store.job(key) if node == place.node else None
            if stored is not None and (found := stay(convert(stored, Job), node)):
                ends.append(found[1])
        return place._replace(last=max([place.last, *ends]))

    def finish(self) -> Recounted:
        made = self._made()
        documents = {key: self._document(key, made) for key in sorted({key for key, _ in made | self._old})}
        changes = [self._change(replay, made, documents) for replay in self._replays.values()]
        self._store.change(changes)
        left = frozenset(key for replay in self._replays.values() for key in replay.left)
        return Recounted(len(changes), sum(len(item.jobs) for item in changes), left)

    def _made(self) -> set[tuple[str, str]]:
        return {(key, node) for key, job in self._jobs.items() for node in self._counted(key, job)}

    def play(self) -> None:
        """Feed each with its node's messages until it has seen enough."""
        for replay in self._replays.values():
            for message in in_order(before(self._store, self._cluster, replay.place.node, replay.since)):
                if message.collector == "allocation":
                    self._ledger.take(message)
                else:
                    self._ledger.restore(message)
        self._ledger.emptied()
        since = min(replay.since for replay in self._replays.values())
        for span in spans(self._store, self._cluster, list(self._replays), since, EVER):
            playing = [node for node, replay in self._replays.items() if not replay.done]
            if not playing:
                return
            for message in in_order(messages(self._store, self._cluster, playing, span)):
                self._replays[message.node].take(message)
            usage, jobs = self._ledger.emptied()
            self._usage += usage
            self._jobs |= {job.key: job for job in jobs}

    def _counted(self, key: str, job: Job) -> list[str]:
        """The nodes on which a job was counted whole: it was there when something came late, or before that, but not
        only before all that was replayed.
        """
        here = {node: found for node in job.nodes if node in self._replays and (found := stay(job, node))}
        return [
            node
            for node, (began, ended) in here.items()
            if began <= self._replays[node].place.last
            and ended >= self._replays[node].since
            and key not in self._replays[node].left
        ]

    def _document(self, key: str, made: set[tuple[str, str]]) -> Job | None:
        """A job as it is now: parts that were counted again, and others as they were; None if nothing is left."""
        again = self._jobs.get(key)
        stored = self._store.job(key)
        before = convert(stored, Job) if stored else None
        parts = [part for part in (again.parts if again else []) if (key, part.node) in made]
        others = [] if before is None else before.parts
        parts += [part for part in others if (key, part.node) not in made | self._old]
        job = again or before
        if job is None or not (parts or job.batch):
            return None
        job.parts = parts
        job.settle()
        return job

    def _change(self, replay: Replay, made: set[tuple[str, str]], documents: dict[str, Job | None]) -> Change:
        """What is different on one node. A document goes with the first of its nodes."""
        node = replay.place.node
        keys = sorted(key for key, place in made | self._old if place == node)
        usage = [row for row in self._usage if row.node == node and (row.usage.job_key, node) in made]
        mine = {key: documents.pop(key) for key in keys if key in documents}
        return Change(
            self._cluster,
            node,
            replay.since,
            replay.until,
            keys,
            [(row.cluster, row.node, row.boot, row.time, *row.usage) for row in usage],  # type: ignore[misc]
            self._due(replay, keys, usage),
            [entry(job) for job in mine.values() if job is not None],
            [key for key, job in mine.items() if job is None],
            replay.place.marks,
        )

    def _due(self, replay: Replay, keys: list[str], usage: list[Stamped]) -> list[tuple[Any, ...]]:
        """Hours in which rows go or come."""
        going = self._store.query(
            "SELECT cluster, time, seconds FROM usage WHERE cluster = ? AND node = ? AND list_contains(?, job_key)",
            [self._cluster, replay.place.node, keys],
            (replay.since, replay.until),
        )
        return due([*going, *((row.cluster, row.time, row.usage.seconds) for row in usage)], "recount")
