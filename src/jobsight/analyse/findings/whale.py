"""A user who is too big for the system: all their jobs together hold much of a partition while others wait."""

from collections.abc import Iterator
from typing import NamedTuple

from jobsight.analyse.case import Case, Partition, Scene, Waits
from jobsight.analyse.finding import HOUR, USER, Mark, finding
from jobsight.formats.number import digits, duration, ratio
from jobsight.schema.units import Seconds


class Limits(NamedTuple):
    """When a user is too big."""

    enabled: bool = True
    share: float = 0.4
    """Of a partition's cores, all jobs of a user together hold at least this part"""
    hold: Seconds = Seconds(3600)
    """for so long altogether,"""
    wanted: float = 0.25
    """and for at least this part of that time somebody else's job waits for the partition."""
    nodes: int = 8
    """Partitions with fewer nodes are not looked at: there every job takes much."""


class Stretch(NamedTuple):
    """A time in which a user held much."""

    begin: float
    end: float
    core_seconds: float


@finding(
    "Whale",
    why="One who needs this much of a system leaves little of it to everybody else.",
    how="A larger system, or an agreement on when: many jobs at night, few by day.",
    of=USER,
)
def whale(scene: Scene, limits: Limits) -> Iterator[Mark]:
    held: dict[tuple[str, str, str], list[Case]] = {}
    for case in scene.cases:
        job = case.figures
        if case.batch and job.owner and job.cpus and job.state != "pending" and job.elapsed:
            held.setdefault((job.cluster, job.partition, job.owner), []).append(case)
    for (_, name, owner), cases in sorted(held.items()):
        partition, waits = cases[0].around.partition, cases[0].around.waits
        if partition is not None and waits is not None and partition.nodes >= limits.nodes:
            found = _judged(cases, partition, waits, owner, limits)
            if found:
                yield _mark(scene, cases, name, partition, found)


def _judged(cases: list[Case], partition: Partition, waits: Waits, owner: str, limits: Limits) -> list[Stretch]:
    """The times in which the user held that much and somebody else waited, if they are long enough."""
    much = stretches(cases, limits.share * partition.cpus)
    seconds = sum(stretch.end - stretch.begin for stretch in much)
    wanted = sum(waits.share(s.begin, s.end, owner) * (s.end - s.begin) for s in much)
    return much if seconds >= limits.hold and wanted >= limits.wanted * seconds else []


def stretches(cases: list[Case], bound: float) -> list[Stretch]:
    """When jobs together held so many cores or more."""
    events = sorted(
        event
        for case in cases
        for event in ((case.figures.started, case.figures.cpus or 0), (case.end, -(case.figures.cpus or 0)))
    )
    found: list[Stretch] = []
    held, before = 0, 0.0
    for time, change in events:
        if held >= bound and time > before:
            if found and found[-1].end == before:
                last = found.pop()
                found.append(Stretch(last.begin, time, last.core_seconds + held * (time - before)))
            else:
                found.append(Stretch(before, time, held * (time - before)))
        held, before = held + change, time
    return found


def _mark(scene: Scene, cases: list[Case], name: str, partition: Partition, much: list[Stretch]) -> Mark:
    begin, end = much[0].begin, much[-1].end
    seconds = sum(stretch.end - stretch.begin for stretch in much)
    used = sum(stretch.core_seconds for stretch in much)
    part = used / seconds / partition.cpus
    among = [case for case in cases if case.figures.started < end and case.end > begin]
    first = among[0].figures
    return Mark(
        f"{len(among)} jobs held {ratio(part)} of {name} for {duration(seconds)} while others waited: "
        f"{digits(used / HOUR)} core-hours.",
        {"jobs": len(among), "share": part, "seconds": seconds, "core_hours": used / HOUR},
        nodes=tuple(sorted({node for case in among for node in case.figures.nodes})),
        begin=begin,
        end=end,
        # One may be too big in several places.
        subject=f"{first.owner} · {name}",
        cluster=first.cluster,
        owner=first.owner,
        account=among[-1].figures.account,
        jobs=tuple(case.figures.key for case in among),
        confidence="high",
        going=end >= scene.end - HOUR,
        severity="warning",
    )
