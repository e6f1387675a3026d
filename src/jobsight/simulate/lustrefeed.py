"""The messages that the servers of a simulated Lustre file system send, with the truth about it.

    feed = Feed(Servers(osts=4, mdts=1), invented(seed=1, begin=..., end=..., users=20, nodes=16, jobs=60))
    for message in feed.messages(begin, end): ...       # lustremdt, lustreost and lustrescan of each server
    feed.targets[0].work                                # what was done, by identifier and operation

Entries go the way they go on a server (`drivers.lustre`), but for the text: `simulate.lustretree` has that. Six hours
of the file system above, 33 000 rows, take some 3 s. `of_jobs(cluster.truths)` gives the jobs of a simulated cluster.
"""

from collections.abc import Iterator
from math import ceil
from random import Random
from typing import Any, NamedTuple

from jobsight.collect.lustremdt import Lustremdt
from jobsight.collect.lustreost import Lustreost
from jobsight.collect.lustrescan import Lustrescan
from jobsight.drivers.lustre import Reading, Scan, account_of
from jobsight.drivers.lustrememory import Moment, Past
from jobsight.drivers.lustreoptions import Options
from jobsight.drivers.lustrerow import Layout
from jobsight.drivers.lustrestate import State
from jobsight.formats.lustreentry import Entry, Operation, columns_of
from jobsight.schema.message import Message, Origin, Status
from jobsight.schema.record import columns
from jobsight.simulate.lustreclient import FORMAT, LOGIN, NO_FAULTS, Faults, identifier, sent
from jobsight.simulate.lustretarget import BYTES, NONE, OPERATIONS, Account, Meter, Target
from jobsight.simulate.lustretext import size_of
from jobsight.simulate.lustrework import FILE, Use

OPTIONS = Options()
RECORDS: dict[str, type[Any]] = {"mdt": Lustremdt, "ost": Lustreost}


class Servers(NamedTuple):
    """A file system, and how it is watched."""

    cluster: str = "demo"
    name: str = "scratch"
    mdts: int = 1
    osts: int = 4
    per_server: int = 2
    every: float = 120.0
    interval: float = 600.0
    start: bool = True
    """Whether the servers say when an entry began: since 2.15."""
    faults: Faults = NO_FAULTS
    seed: int = 1
    since: float = 0.0
    """When it began to be watched: what was done before is in no counter."""


class Span(NamedTuple):
    """A time in which something went on."""

    begin: float
    end: float


class Server:
    """One machine with targets of one kind."""

    def __init__(self, name: str, kind: str, targets: list[Target]) -> None:
        self.name = name
        self.kind = kind
        self.targets = targets
        self.layout = Layout(RECORDS[kind])
        self.state = State()


class Feed:
    """Walks forward only."""

    def __init__(self, servers: Servers, uses: list[Use]) -> None:
        self._wish = servers
        self._coming = sorted(uses, key=lambda use: use.start, reverse=True)
        self._active: list[Use] = []
        self._chance = Random(f"{servers.seed}/lustre/feed")  # noqa: S311
        counts = {"mdt": servers.mdts, "ost": servers.osts}
        made = {
            kind: [Target(f"{servers.name}-{kind.upper()}{n:04x}", kind, 0.0, servers.interval) for n in range(count)]
            for kind, count in counts.items()
        }
        self.targets: list[Target] = [*made["mdt"], *made["ost"]]
        self._made = made
        self.servers = [
            Server(f"{'mds' if kind == 'mdt' else 'oss'}{1 + at // servers.per_server}", kind, list_of)
            for kind in made
            for at in range(0, len(made[kind]), servers.per_server)
            for list_of in [made[kind][at : at + servers.per_server]]
        ]
        self._done = 0.0

    def messages(self, since: float, until: float) -> Iterator[Message]:
        """What all servers send at the multiples of the interval from `since` to before `until`."""
        every = self._wish.every
        time = ceil(max(since, self._wish.since) / every) * every
        while time < until:
            self._work(max(self._done, time - every), time)
            self._done = time
            for server in self.servers:
                yield from self._scan(server, time)
            time += every

    def _work(self, begin: float, end: float) -> None:
        """What everybody does in between."""
        while self._coming and self._coming[-1].start < end:
            self._active.append(self._coming.pop())
        self._active = [use for use in self._active if use.end > begin]
        for use in self._active:
            self._use(use, max(begin, use.start), min(end, use.end))

    def _use(self, use: Use, begin: float, end: float) -> None:
        chance, at = self._chance, Span(begin, end - 1e-3)
        form = FORMAT if use.client.job or use.client.uid == 0 else LOGIN
        first = use.client.uid + len(use.client.job) * 7 + sum(map(ord, use.client.job))
        names = max(0, round(use.opens * (end - begin)))
        moved = {"read": use.read(end) - use.read(begin), "write": use.written(end) - use.written(begin)}
        osts = self._made["ost"]
        stripes = [osts[(first + number) % len(osts)] for number in range(min(use.stripes, len(osts)))]
        for operation, amount in moved.items():
            share = int(amount / len(stripes)) if stripes else 0
            if share > 0:
                names += 1 + share // FILE
                for target in stripes:
                    raw = sent(form, use.client, "ost", self._wish.faults, chance)
                    self._move(target, raw, operation, share, use.request, at)
        if use.client.uid == 0:
            for target in self.targets:
                target.log(identifier(form, use.client), "statfs", at.end, usecs=30, since=at.begin)
        elif names and self._made["mdt"]:
            mdt = self._made["mdt"][first % len(self._made["mdt"])]
            self._names(mdt, sent(form, use.client, "mdt", self._wish.faults, chance), names, at)

    def _move(self, target: Target, raw: bytes, operation: str, amount: int, request: int, at: Span) -> None:
        whole, rest = divmod(amount, request)
        usecs = 300 + request // 2000
        if whole:
            target.log(raw, operation, at.end, request, whole, usecs, at.begin)
        if rest:
            target.log(raw, operation, at.end, rest, 1, 300 + rest // 2000, at.begin)

    def _names(self, target: Target, raw: bytes, names: int, at: Span) -> None:
        for operation, times, usecs in (("open", names, 120), ("close", names, 60), ("getattr", 2 * names, 25),
                                        ("unlink", names // 10, 200), ("setattr", names // 20, 90)):  # fmt: skip
            if times:
                target.log(raw, operation, at.end, 1, times, usecs, at.begin)

    def _scan(self, server: Server, time: float) -> Iterator[Message]:
        now = Moment(time, time)
        rows: list[Any] = []
        scans: list[Any] = []
        reading = Reading(server.layout, OPTIONS)
        for target in server.targets:
            scan = Scan(target.name, server.kind, "files", time)
            past = server.state.target(target.name)
            past.begin(now, target.interval)
            for account in target.accounts.values():
                row = self._told(reading, account, scan, past)
                rows += [] if row is None else [row]
            target.close(time)
            past.finish()
            scan.interval, scan.duration = target.interval, 0.01
            scan.size = 2300 * scan.entries
            sums = {name: _operation(name, meter) for name, meter in target.totals.items()}
            scans.append(account_of(Lustrescan, scan, sums))
        yield self._message(server, f"lustre{server.kind}", time, rows)
        yield self._message(server, "lustrescan", time, scans)

    def _told(self, reading: Reading, account: Account, scan: Scan, past: Past) -> Any:
        life = past.entries.get(account.raw)
        if life is not None and life.mark == account.version and life.told > OPTIONS.again:
            life.turn = past.turn
            scan.unchanged += 1
            reading.count(account.raw, life, scan)
            return None
        start = account.start if self._wish.start else None
        return reading.tell(entry_of(account, scan.kind, start), account.version, scan, past)

    def _message(self, server: Server, collector: str, time: float, rows: list[Any]) -> Message:
        return Message(
            origin=Origin(self._wish.cluster, server.name, f"boot-{server.name}"),
            collector=collector,
            time=time,
            uptime=time % 1e7 + 1e6,
            every=self._wish.every,
            status=Status.OK,
            seconds=0.05,
            error=None,
            missing={},
            rows=columns(type(rows[0]), rows) if rows else {},
        )


def entry_of(account: Account, kind: str, start: float | None) -> Entry:
    """What a parser would have made of the entry's text."""
    meters = [account.meters.get(name, NONE) for name in OPERATIONS[kind]]
    values: list[Any] = [number for meter in meters for number in (meter.samples, meter.total)]
    values += [_sizes(account.meters.get(name, NONE)) for name in OPERATIONS[kind] if name in BYTES]
    return Entry(account.raw, account.latest, start, COLUMNS[kind], values)


def _operation(name: str, meter: Meter = NONE) -> Operation:
    if name in BYTES:
        return Operation(meter.samples, "bytes", meter.total, _sizes(meter))
    return Operation(meter.samples, "usecs", meter.total)


def _sizes(meter: Meter) -> str:
    return ",".join(f"{size_of(power)}={count}" for power, count in enumerate(meter.sizes) if count)


COLUMNS = {kind: columns_of({name: _operation(name) for name in names}) for kind, names in OPERATIONS.items()}
