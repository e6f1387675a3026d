"""Reads from a store what findings look at: the jobs of a time, their machines, and who wanted what. A few questions
for all jobs together, and some more for the few of which more must be known.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from msgspec import convert

from jobsight.analyse.batch import SLACK
from jobsight.analyse.cards import Card, cards
from jobsight.analyse.case import Around, Case, Hour, Machine, Pairs, Partition, Place, Scene, Waits
from jobsight.analyse.job import LOCAL, Job
from jobsight.analyse.machines import machines
from jobsight.analyse.slice import STEP
from jobsight.analyse.summary import Summary, summarised
from jobsight.serving import Stray
from jobsight.store.protocol import JobQuery, Store

HOUR = 3600.0
# A job that waits for less than this waits for nobody: schedulers look around every now and then.
PATIENCE = 600.0
# Nor does one that Slurm holds back for its own sake, as long as it is held: these reasons begin so.
OWN = ("Assoc", "QOS", "MaxJobs", "JobHeld", "JobArray", "Dependency", "BeginTime", "Licenses", "Reservation")
# Below this part of its cores a job does nothing, but so many cores are something, however many it has; below this
# time its course is not looked at.
IDLE, SOME, LONG = 0.01, 0.1, 3600.0
# Of how many jobs at the most the CPUs are looked at one by one; those that hold the most first.
MOST = 100
# By key and source: the end of the last five minutes in which a job did something, and of the last known.
Course = dict[tuple[str, str], tuple[float | None, float | None]]
# A hyper-thread that is busy for this part of the time is in use, and one below that part is not.
BUSY, STILL = 0.5, 0.1

COURSE_OF = f"""
SELECT job_key, source, max(CASE WHEN cpu_time > least({IDLE!r} * cpus, {SOME!r}) * covered THEN time END) + {STEP!r},
  max(CASE WHEN cpu_time IS NOT NULL AND cpus IS NOT NULL AND covered > 0 THEN time END) + {STEP!r}
FROM slice WHERE time >= ? AND time < ? AND source <> 'gpu'
"""
COURSE = f"{COURSE_OF} GROUP BY job_key, source"
COURSE_ONE = f"{COURSE_OF} AND job_key = ? GROUP BY job_key, source"
LOOKS = """
SELECT cluster, scheduler, job, node, uuid, avg(utilization), max(utilization), max(memory_used), max(memory_total),
  avg(power), count(*), min(time), max(time)
FROM gpu WHERE time >= ? AND time < ? AND job IS NOT NULL GROUP BY cluster, scheduler, job, node, uuid
"""
LOADS = """
SELECT cluster, node, floor(time / 3600), avg(load1) FROM load WHERE time >= ? AND time < ?
GROUP BY cluster, node, floor(time / 3600)
"""
PRESSURES = """
SELECT cluster, node, floor(time / 3600), (max(some_time) - min(some_time)) / nullif(max(time) - min(time), 0)
FROM pressure WHERE time >= ? AND time < ? AND resource = 'cpu'
GROUP BY cluster, node, boot, floor(time / 3600)
"""
CPUS = """
SELECT cpu, (max(user_time + nice_time + system_time) - min(user_time + nice_time + system_time))
  / nullif(max(time) - min(time), 0)
FROM cpu WHERE cluster = ? AND node = ? AND time >= ? AND time <= ? GROUP BY cpu
"""


def scene(store: Store, since: float, until: float, now: float) -> Scene:
    """All that was seen in a time."""
    documents = store.jobs(JobQuery(since=since, until=until, limit=10**9), now)
    jobs = [convert(document, Job) for document in documents]
    figures = [summarised(job, now) for job in jobs]
    known = given_out(machines(store, since, until), figures)
    around = surroundings(figures, known, hours(store, known, since, until), until, since)
    course = _course(store, figures, since, until)
    cases = [
        Case(
            told,
            tuple(job.parts),
            tuple(known[place] for name in told.nodes if (place := (told.cluster, name)) in known),
            *last_busy(told, course, since),
            around=around.get(_where(told, known), Around()),
        )
        for job, told in zip(jobs, figures, strict=True)
    ]
    return Scene(since, until, tuple(_closely(store, _with_cards(store, cases, since, until))), known, around)


def lone(store: Store, document: dict[str, Any], now: float) -> Scene:
    """One job alone. Who waited for its partition is not looked at: that takes all jobs of its time."""
    job = convert(document, Job)
    told = summarised(job, now)
    since, until = told.started, max(told.seen, told.started + told.elapsed)
    known = machines(store, since, until)
    here = {place: known[place] for name in told.nodes if (place := (told.cluster, name)) in known}
    around = {place: some._replace(waits=None) for place, some in surroundings([told], known, {}, now).items()}
    rows = store.query(COURSE_ONE, [since, until, told.key], (since, until))
    course = {(key, source): (busy, last) for key, source, busy, last in rows}
    case = Case(
        told,
        tuple(job.parts),
        tuple(here.values()),
        *last_busy(told, course, since),
        around=around.get(_where(told, known), Around()),
    )
    if case.gpus > 1:
        case = case._replace(cards=tuple(cards(store, told)))
    return Scene(since, until, tuple(_closely(store, [case])), here, {})


def given_out(known: dict[Place, Machine], jobs: Iterable[Summary]) -> dict[Place, Machine]:
    """Machines with what jobs say of them: where batch jobs run a scheduler is, also one that tells of no nodes."""
    seen = {(job.cluster, name, job.partition) for job in jobs if job.scheduler not in LOCAL for name in job.nodes}
    found = dict(known)
    for cluster, name, partition in seen:
        machine = found.get((cluster, name))
        if machine is not None and partition not in machine.partitions:
            named = tuple(sorted({*machine.partitions, partition} - {""}))
            found[cluster, name] = machine._replace(scheduled=True, partitions=named)
        elif machine is not None and not machine.scheduled:
            found[cluster, name] = machine._replace(scheduled=True)
    return found


def surroundings(
    jobs: Sequence[Summary],
    known: dict[Place, Machine],
    told: dict[Place, list[Hour]],
    now: float,
    since: float = 0.0,
) -> dict[Place, Around]:
    """By cluster and partition, and by node where no scheduler is; `jobs` are all there were `since` then. Pure."""
    waits: dict[Place, list[tuple[float, float, str]]] = defaultdict(list)
    people: dict[Place, list[tuple[float, float, str]]] = defaultdict(list)
    for job in jobs:
        batch = job.batch
        if batch is None:
            # Daemons are no people, nor is who only left a shell open.
            if (job.cpu_time or 0.0) >= 1.0 and not _serves(job.owner):
                for node in job.nodes:
                    people[job.cluster, node].append((job.started, job.seen, job.owner))
        elif batch.submit is not None:
            until = batch.start if batch.start is not None else now if batch.waits else batch.submit
            begin = (batch.submit if batch.eligible is None else batch.eligible) + PATIENCE
            if until > begin and not (batch.waits and (batch.reason or "").startswith(OWN)):
                waits[job.cluster, job.partition].append((begin, until, job.owner))
    pools = _partitions(known)
    found = {
        (cluster, node): Around(hours=tuple(hours), people=tuple(people[cluster, node]))
        for (cluster, node), hours in told.items()
    }
    for (cluster, name), partition in pools.items():
        others = tuple((other, pool.machine) for (where, other), pool in pools.items() if where == cluster)
        found[cluster, name] = Around(partition, others, Waits(waits[cluster, name], since))
    return found


@cache
def _serves(owner: str) -> bool:
    return not owner or any(fnmatchcase(owner, pattern) for pattern in Stray().users)


def _partitions(known: dict[Place, Machine]) -> dict[Place, Partition]:
    members: dict[Place, list[Machine]] = defaultdict(list)
    for (cluster, _), machine in known.items():
        for name in machine.partitions:
            members[cluster, name].append(machine)
    return {
        place: Partition(
            len(nodes),
            sum(node.cpus or 0 for node in nodes),
            min(nodes, key=lambda node: (node.memory or 0, node.cpus or 0)),
        )
        for place, nodes in members.items()
    }


def _where(job: Summary, known: dict[Place, Machine]) -> Place:
    """Of a job its partition, of a session its node."""
    node = (job.cluster, (job.nodes or [""])[0])
    alone = job.batch is None and node in known and not known[node].scheduled
    return node if alone else (job.cluster, job.partition)


def hours(store: Store, known: dict[Place, Machine], since: float, until: float) -> dict[Place, list[Hour]]:
    """Of machines on which people work without a scheduler."""
    values, between = [since, until], (since, until)
    pressure: dict[tuple[str, str, float], float | None] = {}
    for cluster, node, hour, part in store.query(PRESSURES, values, between):
        pressure[cluster, node, hour] = part
    found: dict[Place, list[Hour]] = defaultdict(list)
    for cluster, node, hour, load in store.query(LOADS, values, between):
        machine = known.get((cluster, node))
        if machine is not None and not machine.scheduled:
            found[cluster, node].append(Hour(hour * HOUR, load, pressure.get((cluster, node, hour))))
    return {place: sorted(some) for place, some in found.items()}


def last_busy(job: Summary, course: Course, since: float) -> tuple[float | None, float | None]:
    """When it last did something, and how far that is known. One that did nothing in the time looked at did nothing
    since then.
    """
    busy, last = course.get((job.key, job.source), (None, None))
    return (max(since, job.started) if busy is None and last is not None else busy), last


def _course(store: Store, jobs: Sequence[Summary], since: float, until: float) -> Course:
    """When each job last did something, and how far that is known."""
    if not any(job.elapsed >= LONG for job in jobs):
        return {}
    rows = store.query(COURSE, [since, until], (since, until))
    found: Course = {(key, source): (busy, last) for key, source, busy, last in rows}
    # Those that did nothing in all this time: for how long is known by what was before it.
    still = [job for job in jobs if job.started < since and found.get((job.key, job.source), (0.0, None))[0] is None]
    for job in sorted(still, key=lambda job: -(job.cpus or 0) * job.elapsed)[:MOST]:
        _, last = found[job.key, job.source]
        if job.scheduler not in LOCAL and last is not None:
            before = store.query(COURSE_ONE, [job.started, since, job.key], (job.started, since))
            known = [busy for _, source, busy, _ in before if source == job.source and busy is not None]
            found[job.key, job.source] = (max(known, default=job.started), last)
    return found


def _with_cards(store: Store, cases: list[Case], since: float, until: float) -> list[Case]:
    """Jobs with several cards, with each of them."""
    several = [place for place, case in enumerate(cases) if case.gpus > 1 and case.gpu_busy is not None]
    if not several:
        return cases
    looks: dict[tuple[str, str, str], list[tuple[Any, ...]]] = defaultdict(list)
    for cluster, scheduler, job, *card in store.query(LOOKS, [since, until], (since, until)):
        looks[cluster, scheduler, job].append(tuple(card))
    for place in several:
        job = cases[place].figures
        some = looks.get((job.cluster, job.scheduler, job.id), [])
        # A number comes back: what reaches beyond the job is not its alone.
        begin, end = job.started - SLACK, cases[place].end + SLACK
        if some and all(first >= begin and last <= end for *_, first, last in some):
            cases[place] = cases[place]._replace(cards=tuple(Card(*card[:8]) for card in some))
    return cases


def _closely(store: Store, cases: list[Case]) -> list[Case]:
    """Those of which more must be known are looked at again."""
    doubled = [place for place, case in enumerate(cases) if _may_double(case)]
    for place in _most(doubled, cases):
        cases[place] = cases[place]._replace(pairs=_pairs(store, cases[place]))
    return cases


def _most(places: list[int], cases: list[Case]) -> list[int]:
    return sorted(places, key=lambda place: -(cases[place].figures.cpus or 0) * cases[place].figures.elapsed)[:MOST]


def _may_double(case: Case) -> bool:
    """Whether it had a node with hyper-threads alone, and used some of it."""
    if not case.batch or len(case.machines) != 1 or case.node_count != 1 or not case.lasts(STEP):
        return False
    machine, part = case.machines[0], case.efficiency
    alone = bool(machine.cpus) and (case.figures.cpus or 0) >= 0.95 * (machine.cpus or 0)
    return alone and (machine.threads or 1) > 1 and part is not None and 0.2 <= part <= 0.95


def _pairs(store: Store, case: Case) -> Pairs | None:
    machine, job = case.machines[0], case.figures
    # A little inside of its time: what was before and after is another's.
    begin, end = job.started + job.every, case.end - job.every
    rows = store.query(CPUS, [job.cluster, job.nodes[0], begin, end], (begin, end))
    return pairs({cpu: busy for cpu, busy in rows if busy is not None}, machine.threads or 1)


def pairs(busy: dict[int, float], threads: int) -> Pairs | None:
    """Cores by what their hyper-threads did. Kernels number all first threads, then all second ones. Pure."""
    cores = len(busy) // threads
    if threads < 2 or not cores or sorted(busy) != list(range(cores * threads)):
        return None
    each = [[busy[core + cores * turn] for turn in range(threads)] for core in range(cores)]
    both = sum(all(part >= BUSY for part in some) for some in each)
    return Pairs(both, sum(all(part < STILL for part in some) for some in each), cores)
