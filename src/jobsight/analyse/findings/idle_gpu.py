"""Cards that a job holds and does not compute on."""

from typing import NamedTuple

from jobsight.analyse.case import Case
from jobsight.analyse.finding import HOUR, Mark, Waste, finding
from jobsight.formats.number import duration
from jobsight.schema.units import Seconds


class Limits(NamedTuple):
    """When a card is idle."""

    enabled: bool = True
    share: float = 0.02
    """Of the time it was held, a card computed less than this part."""
    least: Seconds = Seconds(1800)
    """Shorter jobs do not matter."""


def applies(case: Case, limits: Limits) -> bool:
    return case.gpus > 0 and case.lasts(limits.least) and (case.figures.gpu_held or 0.0) > 0


@finding(
    "Idle GPU",
    why="Cards are few, and one that is held is nobody else's.",
    how="Look whether the program finds the cards and was built for them; if it needs none, ask for none.",
    applies=applies,
    instead_of=("mouse",),
)
def idle_gpu(case: Case, limits: Limits) -> Mark | None:
    busy, held = case.gpu_busy, (case.figures.gpu_held or 0.0) / HOUR
    if busy is None:
        return None
    # Where cards were not looked at one by one, all of them are judged together.
    idle = [card for card in case.cards if card.busy is not None and card.busy < limits.share]
    many = len(case.cards) or case.gpus
    count = len(idle) if case.cards else many if busy < limits.share else 0
    if not count:
        return None
    nodes = sorted({card.node for card in idle}) or [part.node for part in case.parts if part.gpus]
    which = f"{count} of its {many} GPUs" if count < many else "Its GPU" if many == 1 else f"Its {many} GPUs"
    return Mark(
        f"{which} computed nothing worth the name in {duration(case.figures.elapsed)}.",
        {"gpus": many, "idle": count, "busy": busy},
        Waste(gpu_hours=held * count / many),
        nodes=tuple(nodes),
    )
