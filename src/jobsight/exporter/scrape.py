"""One scrape: every collector read now, as metrics. A collector that fails shows as failed and no more.

Two sets of names: ours, derived from the records, and those of the batch job exporter (`compat.batchmetrics`). Both
are made of the same rows, which are read once.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from jobsight import __version__, catalogue
from jobsight.agent.origin import origin
from jobsight.agent.run import run
from jobsight.agent.runner import Ask, Runner
from jobsight.clock import Clock
from jobsight.collect.cgroup import Options as Parts
from jobsight.collect.gpu import Gpu
from jobsight.compat import batchmetrics, batchmetricsjobs
from jobsight.compat.batchmetrics import Group, Owner
from jobsight.compat.batchmetricscards import holders
from jobsight.exporter import aside, itself
from jobsight.exporter.meter import Meters
from jobsight.host import Host
from jobsight.schema.exposition import PREFIX, Family, families, mark, number
from jobsight.schema.message import Message, Status
from jobsight.serving import Exporter
from jobsight.settings import Plan, Settings

# Processes come and go: each would be a dozen series that end within minutes. What the agent says of itself is not
# ours to say. A scheduler's jobs are no series: those who run its programs. Lustre's tell what changed: there would
# be holes. By name: they need not be loaded to be left out.
NOT_SERIES = (
    "agent", "exited", "gpuprocess", "lustremdt", "lustreost", "lustrescan", "pbsjob", "process", "slurmjob",
    "slurmnode", "slurmqueue",
)  # fmt: skip
# A scrape is given up after ten seconds by default: one source that hangs must leave time for the others.
LONGEST = 5.0


def tables(exporter: Exporter) -> list[str]:
    """The collectors whose records are shown."""
    if not exporter.records:
        return []
    return list(exporter.collect) or [name for name in catalogue.collector_names() if name not in NOT_SERIES]


def sources(exporter: Exporter) -> list[str]:
    """All collectors that are needed for what is shown."""
    batch = exporter.batchjob.collect if exporter.batchjob.enabled else ()
    needed = [*tables(exporter), *(source for name in batch for source in batchmetrics.SOURCES[name])]
    return list(dict.fromkeys(needed))


def check(exporter: Exporter) -> None:
    """What types cannot say. ValueError with the key."""
    for name in exporter.collect:
        if name not in catalogue.collector_names():
            raise ValueError(f"exporter.collect: no collector {name!r}; there are {', '.join(tables(Exporter()))}")
    for name in exporter.batchjob.collect:
        if name not in batchmetrics.SOURCES:
            known = ", ".join(batchmetrics.SOURCES)
            raise ValueError(f"exporter.batchjob.collect: no {name!r}; there are {known}")
    if exporter.batchjob.vendor not in (None, "nvidia", "amd"):
        raise ValueError(f"exporter.batchjob.vendor: expected nvidia or amd, got {exporter.batchjob.vendor!r}")
    if not exporter.path.startswith("/") or exporter.path == "/":
        raise ValueError(f"exporter.path: expected a path such as /metrics, got {exporter.path!r}")
    if exporter.requests < 1:
        raise ValueError("exporter.requests: must be 1 or more")


class Scraper:
    """Reads one machine on request, through the same collectors as the agent."""

    def __init__(self, settings: Settings, host: Host, clock: Clock) -> None:
        self._options = settings.exporter
        self._host, self._clock = host, clock
        named = {plan.name: plan for plan in settings.collect if plan.enabled}
        self._plans = {name: named[name] for name in sources(self._options) if name in named}
        if "cgroup" in self._plans:
            # Steps are parts of their jobs: a sum over all series would count them twice.
            options = Parts(steps=self._options.steps)
            self._plans["cgroup"] = self._plans["cgroup"]._replace(options=options)
        self._tables = [name for name in tables(self._options) if name in self._plans]
        self._batch = [name for name in self._options.batchjob.collect if self._options.batchjob.enabled]
        self._runner = Runner(host, origin(settings, host), clock)
        self._aside = {name: self._apart(plan) for name, plan in self._plans.items() if name in aside.NAMES}
        self._meters = Meters()
        self._slurms = Patient()
        # Collectors keep what they know of a machine: one scrape after the other.
        self._turn = threading.Lock()

    def names(self) -> list[str]:
        """What may be chosen."""
        return [*self._tables, *self._batch]

    def scrape(self, chosen: Sequence[str] = ()) -> Iterator[Family]:
        """The metrics of the `chosen` collectors, or of all."""
        shown = [name for name in self._tables if name in chosen or not chosen]
        batch = [name for name in self._batch if name in chosen or not chosen]
        # Whose a card is, its job's series tell, whether they are shown or not.
        slurms = "slurm_job" in batch or ("gpu" in shown and "slurm_job" in self._batch)
        made_of = [*batch, "slurm_job"] if slurms else batch
        wanted = [*shown, *(source for name in made_of for source in batchmetrics.SOURCES[name])]
        with self._turn:
            found = self._read([name for name in self._plans if name in wanted])
            slurm = self._slurms.within(LONGEST, partial(self._slurm, found)) if slurms else NOTHING
            if slurm.held:
                found["gpu"] = held(found["gpu"], slurm)
            made = [*self._ours(shown, found), *(self._theirs(batch, found, slurm) if batch else ())]
        yield from made
        if self._options.itself and not chosen:
            yield itself.build()
            yield from itself.itself(Host("/"), self._clock.wall())

    def close(self) -> None:
        self._runner.close()
        for one in self._aside.values():
            one.close()

    def _apart(self, plan: Plan) -> aside.Aside:
        found = catalogue.collector(plan.name)
        runner = self._runner
        once = partial(run, found, plan.options, self._host, runner.origin, self._clock, plan.every)
        return aside.Aside(plan, once, self._clock)

    def _read(self, names: list[str]) -> dict[str, Message]:
        asks = []
        found: dict[str, Message] = {}
        began = self._clock.steady()
        for name in names:
            plan = self._plans[name]
            if name not in self._aside:
                asks.append(Ask(catalogue.collector(name), plan.options, min(plan.deadline, LONGEST), plan.every))
            elif last := self._aside[name].last(aside.FIRST - (self._clock.steady() - began)):
                found[name] = aside.aged(*last)
        found.update((message.collector, message) for message in self._runner.run_all(asks))
        return found

    def _ours(self, names: list[str], found: dict[str, Message]) -> Iterator[Family]:
        for name in names:
            if message := found.get(name):
                told = self._meters.turned(message) if name == "power" else message
                yield from families(name, catalogue.collector(name).record, told.rows)
        # A source that is not on this machine is no failure.
        states = {name: found.get(name) for name in names}
        known = {name: one for name, one in states.items() if one is None or one.status != Status.ABSENT}
        good, long = f"{PREFIX}_scrape_collector_success", f"{PREFIX}_scrape_collector_duration_seconds"
        marks = {name: mark([("collector", name)]) for name in known}
        samples = [f"{good}{marks[name]} {int(bool(one and one.status == Status.OK))}" for name, one in known.items()]
        yield Family(good, "gauge", "Whether its source was read; one that is not there is not listed.", samples)
        samples = [f"{long}{marks[name]} {number(one.seconds)}" for name, one in known.items() if one]
        yield Family(long, "gauge", "How long reading took.", samples)

    def _theirs(self, names: list[str], found: dict[str, Message], slurm: "Slurm") -> Iterator[Family]:
        options = self._options.batchjob
        hostname = self._runner.origin.node if options.hostname is None else options.hostname
        if "slurm_job" in names:
            yield from batchmetrics.jobs(
                slurm.groups, hostname, ids=options.unique_ids, pressure=options.pressure, swap=options.swap
            )
            yield from batchmetrics.cards(slurm.held, hostname, ids=options.unique_ids)
        if "rapl" in names:
            yield from batchmetrics.rapl(rows(found, "power"), hostname, zone_label=options.zone_label)
        if "ipmi_dcmi" in names:
            yield from batchmetrics.ipmi(rows(found, "ipmi"), hostname)
        if "emissions" in names:
            yield from batchmetrics.emissions(rows(found, "emissionfactor"))
        runs = {}
        for name in names:
            first, *_ = told = [found.get(source) for source in batchmetrics.SOURCES[name]]
            if name == "emissions" and first is not None and first.status == Status.ABSENT:
                continue  # nobody asked for it
            seconds = sum(message.seconds for message in told if message)
            good = first is not None and first.status == Status.OK
            runs[name] = (good and not (name == "slurm_job" and slurm is FAILED), seconds)
        yield from batchmetrics.states(runs)
        yield batchmetrics.build(__version__, self._host.architecture() or "")

    def _slurm(self, found: dict[str, Message]) -> "Slurm":
        options = self._options.batchjob
        groups = [row for row in rows(found, "cgroup") if row.scheduler == "slurm"]
        names = dict.fromkeys(row.job for row in groups)
        owners = batchmetricsjobs.owners(self._host, options.job_path, names, rows(found, "allocation"))
        memory = next(iter(rows(found, "memory")), None)
        told = batchmetricsjobs.groups(self._host, options, groups, owners, memory)
        present = [card for card in rows(found, "gpu") if options.vendor in (None, card.vendor)]
        cards = holders(self._host, options.gpu_path, present, owners) if present else []
        return Slurm(told, cards, {owner.number: job for job, owner in owners.items()})


class Slurm(NamedTuple):
    """Its jobs here, and the cards they hold."""

    groups: list[Group]
    held: list[tuple[Gpu, Owner]]
    names: dict[str, str]
    """What its control group calls a job, by number."""


NOTHING, FAILED = Slurm([], [], {}), Slurm([], [], {})


class Patient:
    """Reads Slurm's jobs in a thread of its own: a process that hangs in the kernel hangs whoever reads what it has.
    One that hangs is not waited for again until it returns; one that breaks says why on standard error.
    """

    def __init__(self) -> None:
        self._last: threading.Thread | None = None

    def within(self, seconds: float, read: Callable[[], Slurm]) -> Slurm:
        if self._last is not None and self._last.is_alive():
            return FAILED
        found: list[Slurm] = []
        self._last = threading.Thread(target=lambda: found.append(read()), name="slurm", daemon=True)
        self._last.start()
        self._last.join(seconds)
        return found[0] if found else FAILED


def held(message: Message, slurm: Slurm) -> Message:
    """Rows of cards with the job that holds them, also where only the batch job exporter's files tell."""
    known = {card.uuid: slurm.names[owner.number] for card, owner in slurm.held}
    columns = message.rows
    pairs = [
        (scheduler, job) if job is not None or uuid not in known else ("slurm", known[uuid])
        for uuid, scheduler, job in zip(columns["uuid"], columns["scheduler"], columns["job"], strict=True)
    ]
    schedulers, jobs = zip(*pairs, strict=True)
    return message._replace(rows={**columns, "scheduler": schedulers, "job": jobs})


def rows(found: dict[str, Message], name: str) -> list[Any]:
    """A message's rows, as its collector yielded them."""
    message = found.get(name)
    if message is None or not message.rows:
        return []
    record = catalogue.collector(name).record
    return [tuple.__new__(record, row) for row in zip(*message.rows.values(), strict=True)]
