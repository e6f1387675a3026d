"""Many small jobs of one user, none of which matters, and which do together."""

from collections.abc import Iterator
from typing import NamedTuple

from jobsight.analyse.case import Case, Scene
from jobsight.analyse.finding import HOUR, USER, Mark, finding
from jobsight.formats.number import digits, duration
from jobsight.schema.units import Seconds


class Limits(NamedTuple):
    """When they are too many and too small."""

    enabled: bool = True
    jobs: int = 100
    """So many jobs of one name and one user"""
    within: Seconds = Seconds(86400)
    """in so long a time,"""
    short: Seconds = Seconds(600)
    """none of which took longer than this,"""
    core_hours: float = 5.0
    """and which together held at least this."""


@finding(
    "Vampire",
    why="Each start costs the scheduler as much as a large job's, and a node is cleaned up after each.",
    how="Put many of them into one job: a loop, GNU parallel, or a workflow program's groups.",
    of=USER,
)
def vampire(scene: Scene, limits: Limits) -> Iterator[Mark]:
    swarms: dict[tuple[str, str, str], list[Case]] = {}
    for case in scene.cases:
        job = case.figures
        if case.batch and job.owner and job.state == "ended" and 0 < job.elapsed <= limits.short:
            swarms.setdefault((job.cluster, job.owner, job.name or job.command), []).append(case)
    for (cluster, owner, name), cases in sorted(swarms.items()):
        if len(cases) >= limits.jobs:
            cases.sort(key=lambda case: case.figures.started)
            many = _densest(cases, limits.within)
            held = sum((case.figures.cpus or 1) * case.figures.elapsed for case in many) / HOUR
            if len(many) >= limits.jobs and held >= limits.core_hours:
                yield _mark(scene, cluster, owner, name, many, held)


def _densest(cases: list[Case], within: float) -> list[Case]:
    """The most of them that began in one stretch of time."""
    best, first = (0, 0), 0
    for last, case in enumerate(cases):
        while case.figures.started - cases[first].figures.started > within:
            first += 1
        if last + 1 - first > best[1] - best[0]:
            best = first, last + 1
    return cases[best[0] : best[1]]


def _mark(scene: Scene, cluster: str, owner: str, name: str, many: list[Case], held: float) -> Mark:
    begin, end = many[0].figures.started, max(case.end for case in many)
    mean = sum(case.figures.elapsed for case in many) / len(many)
    return Mark(
        f"{len(many)} jobs named {name} of {duration(mean)} on average within {duration(end - begin)}: "
        f"{digits(held)} core-hours together.",
        {"jobs": len(many), "mean": mean, "core_hours": held},
        nodes=tuple(sorted({node for case in many for node in case.figures.nodes})),
        begin=begin,
        end=end,
        # One may have several swarms.
        subject=f"{owner} · {name}",
        cluster=cluster,
        owner=owner,
        account=many[-1].figures.account,
        jobs=tuple(case.figures.key for case in many),
        confidence="high",
        going=end >= scene.end - HOUR,
    )
