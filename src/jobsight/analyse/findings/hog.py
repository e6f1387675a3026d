"""A job that takes most of a machine or a partition while others want it too.

On a machine that has room left nobody is kept from anything: the same job is then none.
"""

from typing import NamedTuple

from jobsight.analyse.case import Case, Hour
from jobsight.analyse.finding import HOUR, Mark, finding
from jobsight.formats.number import cores, duration, ratio
from jobsight.schema.units import Seconds


class Limits(NamedTuple):
    """When a job is a hog."""

    enabled: bool = True
    share: float = 0.5
    """Of the machine's cores it uses at least this part; of a partition's, it holds them."""
    load: float = 0.9
    """Others want the machine while so many threads want to run on each of its CPUs, or more,"""
    pressure: float = 0.25
    """or while for this part of the time a task waits for a CPU."""
    wanted: float = 0.25
    """They want it for at least this part of the job's time."""
    nodes: int = 4
    """Partitions with fewer nodes are not looked at: there every job takes much."""
    least: Seconds = Seconds(3600)
    """Shorter jobs do not matter."""


def applies(case: Case, limits: Limits) -> bool:
    return case.lasts(limits.least) and bool(case.machines)


@finding(
    "Hog",
    why="Others wait for what one takes.",
    how="Use fewer threads, run it at night, or move to a system with room for it.",
    applies=applies,
)
def hog(case: Case, limits: Limits) -> Mark | None:
    return _of_partition(case, limits) if case.batch else _of_machine(case, limits)


def contended(hour: Hour, cpus: int, load: float, pressure: float) -> bool:
    """Whether more wanted to run in an hour than could."""
    return (hour.load or 0.0) >= load * cpus or (hour.pressure or 0.0) >= pressure


def _of_machine(case: Case, limits: Limits) -> Mark | None:
    cpus, used, figures = case.machines[0].cpus, case.figures.cores_mean, case.figures
    if not cpus or used is None or used < limits.share * cpus:
        return None
    begin, end = figures.started, case.end
    # Whole hours: those at the ends are mostly of another time.
    hours = [hour for hour in case.around.hours if hour.begin >= begin - HOUR / 2 and hour.begin <= end - HOUR / 2]
    bad = [hour for hour in hours if contended(hour, cpus, limits.load, limits.pressure)]
    people = {who for first, last, who in case.around.people if first < end and last > begin} - {figures.owner}
    if not bad or len(bad) < limits.wanted * len(hours) or not people:
        return None
    most = max(hour.load or 0.0 for hour in bad)
    return Mark(
        f"It used {cores(used)} of {cpus} cores for {duration(figures.elapsed)} while {len(people)} "
        f"{'other' if len(people) == 1 else 'others'} worked there and {cores(most)} threads wanted to run.",
        {"cores_used": used, "cores": cpus, "load": most, "others": len(people)},
        begin=bad[0].begin,
        end=bad[-1].begin + HOUR,
        severity="warning",
    )


def _of_partition(case: Case, limits: Limits) -> Mark | None:
    partition, waits, given = case.around.partition, case.around.waits, case.figures.cpus
    if partition is None or waits is None or not given or partition.nodes < limits.nodes:
        return None
    if given < limits.share * partition.cpus:
        return None
    wanted = waits.share(case.figures.started, case.end, case.figures.owner)
    if wanted < limits.wanted:
        return None
    return Mark(
        f"It held {given} of {partition.cpus} cores of {case.figures.partition}, and for {ratio(wanted)} of its time "
        "somebody else's job waited for them.",
        {"cores_given": given, "cores": partition.cpus, "wanted": wanted},
        severity="warning",
    )
