"""Cores of a node with GPUs, taken by a job that holds none of them."""

from typing import NamedTuple

from jobsight.analyse.case import Case
from jobsight.analyse.finding import Mark, Waste, finding
from jobsight.formats.number import cores
from jobsight.schema.units import Seconds


class Limits(NamedTuple):
    """When it takes too much of the node."""

    enabled: bool = True
    share: float = 0.1
    """Of the node's cores, at least this part is held; of a session, used on average."""
    least: Seconds = Seconds(1800)
    """Shorter jobs do not matter."""


def applies(case: Case, limits: Limits) -> bool:
    known = bool(case.machines) and all(machine.gpus for machine in case.machines)
    return known and not case.gpus and case.lasts(limits.least)


@finding(
    "GPU node used without its GPUs",
    why="Without cores nobody can use the cards of the node.",
    how="Run it where there are no cards.",
    applies=applies,
)
def gpu_node_without_gpu(case: Case, limits: Limits) -> Mark | None:
    whole = sum(machine.cpus or 0 for machine in case.machines)
    # Who sits at a machine was given all of it, and takes what is used.
    taken = case.figures.cpus if case.batch else case.figures.cores_mean
    if not whole or taken is None or taken < limits.share * whole:
        return None
    cards = sum(machine.gpus or 0 for machine in case.machines)
    # As many as the cores that it took would have served.
    return Mark(
        f"It took {cores(taken)} of {whole} cores of a node with {cards} GPUs, and none of these.",
        {"cores_taken": taken, "cores": whole, "gpus": cards},
        Waste(gpu_hours=cards * min(1.0, taken / whole) * case.hours),
    )
