"""A job that belongs on another kind of machine: a smaller one that has room for it, or a bigger one."""

from typing import NamedTuple

from jobsight.analyse.case import CUT_SHORT, Case, Machine
from jobsight.analyse.finding import Mark, finding
from jobsight.formats.number import cores, size
from jobsight.schema.units import Bytes, Seconds


class System(NamedTuple):
    """A kind of machine that the site has, here or elsewhere."""

    cpus: int
    """Of one node."""
    memory: Bytes
    gpus: int = 0
    bigger: bool = False
    """For those who fill what is here."""


class Limits(NamedTuple):
    """When a machine is wrong."""

    enabled: bool = True
    times: float = 2.0
    """The smaller machine has so many times less memory,"""
    share: float = 0.5
    """and the job would fill this part of it at the most."""
    full: float = 0.9
    """For a bigger one: it used at least this part of all cores of its nodes"""
    long: Seconds = Seconds(2 * 86400)
    """for so long."""
    systems: dict[str, System] = {}  # noqa: RUF012  # nobody writes to it
    """By name. The partitions of the same cluster are known without being described."""
    least: Seconds = Seconds(1800)
    """Shorter jobs do not matter."""


def applies(case: Case, limits: Limits) -> bool:
    return case.batch and bool(case.machines) and case.lasts(limits.least) and case.state not in CUT_SHORT


@finding(
    "Wrong machine",
    why="Large machines are few, and what only runs there waits for what would run anywhere.",
    how="Submit it there.",
    applies=applies,
)
def wrong_machine(case: Case, limits: Limits) -> Mark | None:
    return _smaller(case, limits) or _bigger(case, limits)


def _smaller(case: Case, limits: Limits) -> Mark | None:
    here, figures = case.machines[0], case.figures
    peak, cpus = figures.memory_peak, figures.cpus
    # Of nodes with cards another finding tells.
    if here.gpus or case.gpus or not here.memory or peak is None or not cpus:
        return None
    each = cpus / case.node_count
    for name, other in _others(case, limits):
        fits = each <= (other.cpus or 0) and peak <= limits.share * (other.memory or 0)
        if fits and not other.gpus and here.memory >= limits.times * (other.memory or 0):
            return Mark(
                f"With {cores(each)} cores and {size(peak)} a node it fits {name}, where a node has "
                f"{size(other.memory)}; here it has {size(here.memory)}.",
                {"memory_peak": peak, "memory": here.memory, "memory_there": other.memory or 0},
            )
    return None


def _others(case: Case, limits: Limits) -> list[tuple[str, Machine]]:
    """What else there is, the smallest first."""
    found = [(name, machine) for name, machine in case.around.partitions if name != case.figures.partition]
    found += [
        (name, Machine(system.cpus, system.memory, gpus=system.gpus))
        for name, system in limits.systems.items()
        if not system.bigger
    ]
    return sorted(found, key=lambda item: (item[1].memory or 0, item[0]))


def _bigger(case: Case, limits: Limits) -> Mark | None:
    whole = sum(machine.cpus or 0 for machine in case.machines)
    used = case.figures.cores_mean
    if not whole or used is None or used < limits.full * whole or case.figures.elapsed < limits.long:
        return None
    most = max(machine.cpus or 0 for machine in case.machines)
    for name, system in limits.systems.items():
        if system.bigger and system.cpus > most and bool(system.gpus) >= bool(case.gpus):
            return Mark(
                f"It filled {cores(used)} of {whole} cores for days: {name} has nodes of {system.cpus}.",
                {"cores_used": used, "cores": whole, "cores_there": system.cpus},
            )
    return None
