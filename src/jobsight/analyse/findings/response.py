"""A machine that answers slowly to the people who sit at it."""

from collections.abc import Iterator
from typing import NamedTuple

from jobsight.analyse.case import Around, Case, Place, Scene
from jobsight.analyse.finding import HOUR, NODE, Mark, finding
from jobsight.analyse.findings.hog import contended
from jobsight.formats.number import cores


class Limits(NamedTuple):
    """When it is slow."""

    enabled: bool = True
    load: float = 1.0
    """So many threads want to run on each of its CPUs, or more,"""
    pressure: float = 0.3
    """or for this part of the time a task waits for a CPU,"""
    hours: int = 1
    """for so many hours,"""
    people: int = 2
    """with so many people working there."""


@finding(
    "Poor response",
    why="Whoever types waits for every letter while more wants to run than the machine has CPUs.",
    how="See who uses the most there, and move long work to the batch system.",
    of=NODE,
)
def response(scene: Scene, limits: Limits) -> Iterator[Mark]:
    for place, around in sorted(scene.around.items()):
        machine = scene.machines.get(place)
        if around.hours and machine is not None and machine.cpus:
            yield from _of(place, machine.cpus, around, scene, limits)


def _of(place: Place, cpus: int, around: Around, scene: Scene, limits: Limits) -> Iterator[Mark]:
    bad = []
    for hour in around.hours:
        here = {who for begin, end, who in around.people if begin < hour.begin + HOUR and end > hour.begin}
        if len(here) >= limits.people and contended(hour, cpus, limits.load, limits.pressure):
            bad.append((hour, here))
    if len(bad) < max(1, limits.hours):
        return
    begin, end = bad[0][0].begin, bad[-1][0].begin + HOUR
    cluster, node = place
    people = set().union(*(here for _, here in bad))
    most = max(hour.load or 0.0 for hour, _ in bad)
    there = [case for case in scene.cases if node in case.figures.nodes and case.figures.cluster == cluster]
    yield Mark(
        f"For {len(bad)} {'hour' if len(bad) == 1 else 'hours'} up to {cores(most)} threads wanted to run on "
        f"{cpus} CPUs while {len(people)} people worked there.",
        {"hours": len(bad), "load": most, "cpus": cpus, "people": len(people)},
        nodes=(node,),
        begin=begin,
        end=end,
        subject=node,
        cluster=cluster,
        jobs=tuple(case.figures.key for case in _busiest(there, begin, end)),
        confidence="high" if len(bad) > 1 else "medium",
        going=end >= scene.end - HOUR,
        severity="warning",
    )


def _busiest(cases: list[Case], begin: float, end: float) -> list[Case]:
    """What used the most in that time, at most five of it."""
    found = [case for case in cases if case.figures.started < end and case.end > begin and case.figures.cores_mean]
    return sorted(found, key=lambda case: -(case.figures.cores_mean or 0.0))[:5]
