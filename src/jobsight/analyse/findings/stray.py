"""Work on a node of a scheduler that belongs to no job of its."""

from typing import NamedTuple

from jobsight.analyse.case import Case
from jobsight.analyse.finding import HOUR, Mark, Waste, finding
from jobsight.analyse.stray import SESSIONS, exempt
from jobsight.formats.number import cores, duration
from jobsight.schema.units import Seconds
from jobsight.serving import Stray


class Limits(NamedTuple):
    """What is none. As in `serve.stray`, which `jobsight jobs --stray` goes by."""

    enabled: bool = True
    grace: Seconds = Seconds(600)
    users: tuple[str, ...] = Stray().users
    commands: tuple[str, ...] = Stray().commands
    nodes: tuple[str, ...] = ()
    cpu_time: Seconds = Seconds(60)
    """Who has used less may look around for as long as they like."""


def applies(case: Case, limits: Limits) -> bool:  # noqa: ARG001
    scheduled = bool(case.machines) and case.machines[0].scheduled
    return case.figures.scheduler in SESSIONS and case.node_count == 1 and scheduled


@finding(
    "Stray processes",
    why="Nobody gave them cores or memory: they take those of the jobs on the node.",
    how="End them; have the job wait for all it starts. To look at a job use srun --overlap.",
    applies=applies,
)
def stray(case: Case, limits: Limits) -> Mark | None:
    figures = case.figures
    asked = {
        "elapsed": figures.elapsed, "owner": figures.owner, "commands": figures.commands, "command": figures.command,
    }  # fmt: skip
    options = Stray(limits.grace, limits.users, limits.commands, limits.nodes)
    node = (figures.nodes or [""])[0]
    if exempt(asked, node, options) or (figures.cpu_time or 0.0) < limits.cpu_time:
        return None
    return Mark(
        f"{figures.command or 'A process'} ran beside the scheduler for {duration(figures.elapsed)} and used "
        f"{cores(figures.cores_mean)} cores.",
        {"elapsed": figures.elapsed, "cpu_time": figures.cpu_time or 0.0},
        Waste(core_hours=(figures.cpu_time or 0.0) / HOUR),
    )
