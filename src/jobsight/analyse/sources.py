"""Everything that tells of a node's energy in some time, from the store, in even steps of time."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from jobsight.analyse.holding import Lives, Look, Part, divided, nearest, parted
from jobsight.analyse.meter import BRIDGED, FASTEST, Bins, Reading, Span, carded, counted, metered, together
from jobsight.metering import STRONGEST, Energy, named
from jobsight.store.protocol import REACH, Store

STEP = 300.0
# Readings before and after a time reach into it.
AROUND = 900.0
HARDWARE = 7 * 86400.0
OF = "time BETWEEN ? AND ? AND node IN (SELECT unnest(?))"
IPMI = f"SELECT cluster, node, time - age, power FROM ipmi WHERE {OF}"
SENSOR = f"SELECT cluster, node, time, power FROM power WHERE source = 'hwmon' AND scope = 'node' AND {OF}"
COUNTERS = f"""SELECT cluster, node, boot, device, scope, time, energy, energy_range FROM power
WHERE source = 'rapl' AND counted AND {OF} ORDER BY cluster, node, boot, device, scope, time"""
CARDS = f"""SELECT cluster, node, boot, uuid, parent, time, energy, power, power_limit, scheduler, job, utilization
FROM gpu WHERE uuid <> '' AND {OF} ORDER BY cluster, node, boot, uuid, time"""
SHARERS = f"""SELECT cluster, node, uuid, time, scheduler, job, sum(utilization), sum(memory) FROM gpuprocess
WHERE job IS NOT NULL AND {OF} GROUP BY cluster, node, uuid, time, scheduler, job
ORDER BY cluster, node, uuid, time"""
BUSY = f"""SELECT cluster, node, boot, time, sum(user_time + nice_time + system_time + interrupt_time) FROM cpu
WHERE {OF} GROUP BY cluster, node, boot, time ORDER BY cluster, node, boot, time"""
CPUS = (
    f"SELECT cluster, node, arg_max(cpus, time), arg_max(model, time) FROM hardware WHERE {OF} GROUP BY cluster, node"
)
USAGE = f"""SELECT cluster, node, time, least(seconds, {REACH!r}), job_key, source, cpu_time, cpus, memory FROM usage
WHERE time >= ? AND time - least(seconds, {REACH!r}) < ? AND node IN (SELECT unnest(?))
AND source IN ('cgroup', 'process')"""
PLACES = """SELECT DISTINCT cluster, node FROM ipmi WHERE time BETWEEN ? AND ?
UNION SELECT DISTINCT cluster, node FROM power WHERE time BETWEEN ? AND ?
UNION SELECT DISTINCT cluster, node FROM gpu WHERE time BETWEEN ? AND ?"""
MODELLED = " UNION SELECT DISTINCT cluster, node FROM usage WHERE time BETWEEN ? AND ?"

Place = tuple[str, str]


class Use:
    """One job on a node, by step."""

    def __init__(self, number: int) -> None:
        self.seconds = [0.0] * number
        self.cpu = [0.0] * number
        self.memory = [0.0] * number
        self.held = [0.0] * number


class Sources:
    """One node's."""

    def __init__(self, since: float, until: float) -> None:
        self.since, self.until = since, until
        self.meter: Bins | None = None
        self.meter_name = ""
        self.counters: Bins | None = None
        self.memory: Bins | None = None
        """Of the counters, those of memory."""
        self.cards: list[tuple[Bins, list[tuple[Span, list[Part]]]]] = []
        self.busy: Bins | None = None
        """CPU seconds in place of joules."""
        self.cpus: float | None = None
        self.model = ""
        self.jobs: dict[str, Use] = {}

    def bins(self) -> Bins:
        return Bins(self.since, self.until, STEP)


def places(store: Store, since: float, until: float, options: Energy) -> list[Place]:
    """The nodes of which anything is known, or modelled."""
    span = since - AROUND, until + AROUND
    asked, values = (PLACES + MODELLED, span * 4) if options.model else (PLACES, span * 3)
    found = {(cluster, node) for cluster, node in store.query(asked, values, span)}
    return sorted(found)


def sources(
    store: Store, nodes: Sequence[str], since: float, until: float, lives: Lives, options: Energy
) -> dict[Place, Sources]:
    """Of some nodes, whatever cluster they are of."""
    found: dict[Place, Sources] = defaultdict(lambda: Sources(since, until))
    span = since - AROUND, until + AROUND
    values = [*span, list(nodes)]
    _take_meters(found, "hwmon", store.query(SENSOR, values, span), options)
    _take_meters(found, "ipmi", store.query(IPMI, values, span), options)
    _take_counters(found, store.query(COUNTERS, values, span))
    _take_cards(found, store.query(CARDS, values, span), store.query(SHARERS, values, span), lives)
    for (cluster, node, _), rows in _grouped(store.query(BUSY, values, span), 3):
        own = found[cluster, node]
        own.busy = (own.busy or own.bins()).add(counted([(time, busy, None) for time, busy in rows], STRONGEST))
    told = store.query(CPUS, [since - HARDWARE, until, list(nodes)], (since - HARDWARE, until))
    for cluster, node, cpus, model in told:
        found[cluster, node].cpus, found[cluster, node].model = cpus, model or ""
    rows = store.query(USAGE, [since, until, list(nodes)], (since, until + REACH))
    _take_usage(found, rows, Bins(since, until, STEP))
    return found


def _grouped(rows: Iterable[tuple[Any, ...]], width: int) -> Iterable[tuple[tuple[Any, ...], list[tuple[Any, ...]]]]:
    """Rows that begin alike, without their begin."""
    for head, some in groupby(rows, itemgetter(*range(width))):
        yield head, [row[width:] for row in some]


def _take_meters(found: dict[Place, Sources], name: str, rows: list[tuple[Any, ...]], options: Energy) -> None:
    """A controller's word comes before a sensor's: it measures what the power supply takes."""
    for (cluster, node), looks in _grouped(sorted(rows, key=itemgetter(0, 1, 2)), 2):
        own = found[cluster, node]
        spans = metered(looks, named(options.limit, node) or STRONGEST)
        if spans:
            own.meter, own.meter_name = own.bins().add(spans), name


def _take_counters(found: dict[Place, Sources], rows: list[tuple[Any, ...]]) -> None:
    parts: dict[Place, dict[tuple[str, str], Bins]] = defaultdict(dict)
    for (cluster, node, _, device, scope), looks in _grouped(rows, 5):
        bins = parts[cluster, node].setdefault((device, scope), found[cluster, node].bins())
        bins.add(counted(looks, FASTEST.get(scope, FASTEST["platform"])))
    for place, zones in parts.items():
        known = {zone: bins for zone, bins in zones.items() if any(bins.covered)}
        # A zone that may not be read makes the sum of the others no sum.
        if known and len(known) == len(zones):
            found[place].counters = together(list(known.values()))
            memory = [bins for (_, scope), bins in known.items() if scope == "memory"]
            found[place].memory = together(memory) if memory else None


def _take_cards(
    found: dict[Place, Sources], rows: list[tuple[Any, ...]], sharers: list[tuple[Any, ...]], lives: Lives
) -> None:
    looks: dict[Place, dict[tuple[str, str], list[Look]]] = defaultdict(lambda: defaultdict(list))
    instances: dict[tuple[str, str, str], dict[float, list[tuple[Any, Any]]]] = defaultdict(dict)
    for cluster, node, boot, uuid, parent, time, energy, power, limit, scheduler, job, activity in rows:
        name = (scheduler, job) if scheduler and job else None
        if parent:
            instances[cluster, node, parent].setdefault(time, []).append((name, activity))
        else:
            look = Look(Reading(time, energy, power, limit), name, activity)
            looks[cluster, node][boot, uuid].append(look)
    for cluster, node, uuid, time, scheduler, job, activity, memory in sharers:
        if (found_here := instances.get((cluster, node, uuid))) is None or time not in found_here:
            shared = instances[cluster, node, f"{uuid} shared"].setdefault(time, [])
            shared.append(((scheduler, job), activity if activity is not None else memory))
    for (cluster, node), cards in looks.items():
        # Counters begin anew with each boot, the card does not.
        taken: dict[str, list[tuple[Span, list[Part]]]] = defaultdict(list)
        for (_, uuid), seen in cards.items():
            split = instances.get((cluster, node, uuid)) or {}
            loose = instances.get((cluster, node, f"{uuid} shared")) or {}
            taken[uuid] += _owned((cluster, node), seen, split, loose, lives)
        own = found[cluster, node]
        own.cards = [(own.bins().add(span for span, _ in spans), spans) for spans in taken.values() if spans]


def _owned(
    place: Place,
    seen: list[Look],
    split: dict[float, list[tuple[Any, Any]]],
    loose: dict[float, list[tuple[Any, Any]]],
    lives: Lives,
) -> list[tuple[Span, list[Part]]]:
    """A card's spans, each with whose it was."""
    by_time = {look.reading.time: look for look in seen}
    times = {"split": sorted(split), "loose": sorted(loose)}
    found = []
    for span in carded([look.reading for look in seen]):
        before, after = by_time[span.start], by_time[span.end]
        near = nearest(times["split"], span.end, 1.0)
        sharers = split[times["split"][near]] if near is not None else []
        if not sharers and after.name is None:
            near = nearest(times["loose"], span.end, BRIDGED / 10)
            sharers = loose[times["loose"][near]] if near is not None else []
        if sharers:
            known = [(lives.of(*place, name, span.end), activity) for name, activity in sharers]
            parts = parted(span, [(life.key if life else None, activity) for life, activity in known])
        else:
            parts = divided(span, lives.of(*place, before.name, span.start), lives.of(*place, after.name, span.end))
        found.append((span, parts))
    return found


def _take_usage(found: dict[Place, Sources], rows: list[tuple[Any, ...]], steps: Bins) -> None:
    """Of each job on a node the control group counts, where it tells CPU time: see `analyse.summary.source_of`."""
    told = {(row[0], row[1], row[4]) for row in rows if row[5] == "cgroup" and row[6] is not None}
    for cluster, node, time, seconds, key, source, cpu, cpus, memory in rows:
        # What a group had used at first sight was used at a time that nobody knows.
        if seconds <= 0 or (source == "process" and (cluster, node, key) in told):
            continue
        own = found[cluster, node]
        if key not in own.jobs:
            own.jobs[key] = Use(steps.number)
        use = own.jobs[key]
        for place, inside in steps.places(time - seconds, time):
            use.cpu[place] += (cpu or 0.0) * inside / seconds
            use.seconds[place] += inside
            use.memory[place] += (memory or 0.0) * inside
            use.held[place] += (cpus or 0.0) * inside
