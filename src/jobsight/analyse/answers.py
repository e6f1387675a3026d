"""All that is answered about one job: what happened, what bound it, how it was spread, what to ask for next time."""

from typing import Any

from msgspec import Struct

from jobsight.analyse.balance import Balance, balance, uneven
from jobsight.analyse.binding import Binding, binding
from jobsight.analyse.cards import Card, cards
from jobsight.analyse.ending import Ending, ending
from jobsight.analyse.phases import Phase, phases
from jobsight.analyse.profile import verdict
from jobsight.analyse.rightsize import Request, Run, cost, rightsize
from jobsight.analyse.scaling import Once, Scaling, once, scaling
from jobsight.analyse.summary import Summary, summary
from jobsight.analyse.track import levels, track
from jobsight.analyse.traffic import Traffic, traffic
from jobsight.store.protocol import Store
from jobsight.store.sight import Sight

# More nodes than this are not listed one by one: the idlest and the busiest are.
LISTED = 64


class Answers(Struct):
    """One job, answered."""

    verdict: str
    ending: Ending
    binding: Binding
    phases: list[Phase]
    balance: Balance
    cards: list[Card]
    cards_imbalance: float | None
    """The part of its GPUs that waited for the busiest."""
    traffic: Traffic | None
    once: Once
    request: Request
    script: list[str]
    """What to paste into a job script."""
    cost: str


def answers(store: Store, document: dict[str, Any], figures: Summary) -> Answers:
    """Of a stored job, running or over. Where its rows are gone its totals and means of five minutes answer."""
    by_node = track(store, figures, document["parts"]) if figures.elapsed else {}
    course = levels(by_node)
    found = phases(course, figures.every, figures.cpus)
    spread = balance(document["parts"], figures.source)
    held = cards(store, figures) if figures.elapsed and _may_hold(figures) else []
    end, binds = ending(figures), binding(figures, found, spread, held)
    request = rightsize(Run(figures, end, by_node, spread, held))
    spread.nodes = _listed(spread.nodes)
    return Answers(
        verdict=sentence(figures, end, binds),
        ending=end,
        binding=binds,
        phases=found,
        balance=spread,
        cards=held,
        cards_imbalance=uneven([card.busy for card in held if card.busy is not None]),
        traffic=traffic(store, figures, document["parts"]) if figures.elapsed else None,
        once=once(figures, course),
        request=request,
        script=request.script,
        cost=cost(request),
    )


def scaled(store: Store, document: dict[str, Any], now: float, sight: Sight | None) -> Scaling:
    """Will it scale: from this run, and from all runs of its program that whoever asks may see."""
    figures = summary(document, now)
    by_node = track(store, figures, document["parts"]) if figures.elapsed else {}
    return scaling(store, figures, levels(by_node), now, sight)


def _may_hold(figures: Summary) -> bool:
    """Whether it is worth a look at cards: Slurm knows which jobs have none."""
    return figures.scheduler != "slurm" or figures.batch is None or bool(figures.batch.gpus)


def _listed(nodes: list[Any]) -> list[Any]:
    return nodes if len(nodes) <= LISTED else nodes[: LISTED // 2] + nodes[-LISTED // 2 :]


def sentence(figures: Summary, end: Ending, binds: Binding) -> str:
    """What it used, how it ended if not well, and what bound it."""
    said = verdict(figures)
    # Of what its scheduler said of its end, the verdict speaks.
    if end.sentence and not end.known and not figures.oom_kills:
        said += f" {end.sentence}"
    if binds.resource not in ("unknown", "nothing", "cores") and binds.confidence != "low":
        said += f" {binds.sentence}"
    return said
