"""The cards of a node as its jobs hold them: what each did since the last sample, for whoever holds it now. Pure."""

from collections import defaultdict
from typing import Any, NamedTuple

from jobsight.analyse.growth import growth
from jobsight.analyse.sample import Name, column
from jobsight.analyse.usage import Interval, Usage
from jobsight.ingest.accept import Accepted
from jobsight.schema.units import Bytes, Count, Seconds

SOURCE = "gpu"
COLUMNS = ("uuid", "scheduler", "job", "utilization", "busy", "memory_used")


class Look(NamedTuple):
    """One card at one instant."""

    uuid: str
    utilization: float | None
    busy: float | None
    memory: int | None


def looks(sample: Accepted) -> dict[Name | None, list[Look]]:
    """By the job that holds them; None for those that nobody holds."""
    found: dict[Name | None, list[Look]] = defaultdict(list)
    for uuid, scheduler, job, *figures in zip(*(column(sample, name) for name in COLUMNS), strict=True):
        found[(scheduler, job) if scheduler and job else None].append(Look(uuid, *figures))
    return found


def names(sample: Accepted) -> list[Name]:
    """The jobs that hold cards."""
    return [name for name in looks(sample) if name is not None]


def counters(sample: Accepted) -> dict[str, float]:
    """By card, the time in which it had done something, where that is counted."""
    found = zip(column(sample, "uuid"), column(sample, "busy"), strict=True)
    return {uuid: busy for uuid, busy in found if busy is not None}


def of_cards(key: str, interval: Interval, cards: list[Look], before: dict[str, float]) -> Usage:
    """A job's use of the cards it holds. Held is held, whether it computes or not."""
    used = [_computed(card, interval, before) for card in cards]
    return Usage(
        job_key=key,
        source=SOURCE,
        seconds=Seconds(interval.seconds),
        covered=Seconds(interval.covered),
        gpus=Count(len(cards)),
        gpu_time=_sum(used, Seconds),
        gpu_memory=_sum([card.memory for card in cards], Bytes),
    )


def _computed(card: Look, interval: Interval, before: dict[str, float]) -> float | None:
    """By the card's own count where it was counted at both ends, else by how busy it says it is."""
    if card.busy is not None and card.uuid in before:
        # What it did for somebody else before this job began is not more than fits into the job's time.
        return min(growth([before[card.uuid], card.busy]), interval.seconds)
    return None if card.utilization is None else card.utilization * interval.covered


def _sum(values: list[Any], unit: Any) -> Any:
    known = [value for value in values if value is not None]
    return unit(sum(known)) if known else None
