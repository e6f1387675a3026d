"""What a job asked for, what it was given and what it used of that. Pure.

The scheduler's word comes first, then the limits of the control group; what nobody told is missing.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from jobsight.analyse.batch import Batch
from jobsight.analyse.job import Part


class Reserved(Struct):
    """One kind of thing, in cores, bytes, devices or seconds."""

    requested: float | None = None
    given: float | None = None
    used: float | None = None
    """Cores and GPUs on average; of memory the highest of each node, added up."""


def reserved(
    batch: Batch | None, parts: list[Part], cores: float | None, elapsed: float | None
) -> dict[str, Reserved]:
    """By kind: cores, memory, gpus, time. `parts` are those that counted the totals, and those of its cards."""
    said: Any = batch or Batch(0.0, "", "")
    cards = [part for part in parts if part.source == "gpu"]
    parts = [part for part in parts if part.source != "gpu"]
    limits = [part.memory_limit for part in parts]
    gpus = total(part.gpus for part in cards) if said.gpus is None else said.gpus
    computed = total(part.gpu_time for part in cards)
    # Of what was counted before that was told apart, all was taken for observed.
    observed = total(part.gpu_held if part.gpu_observed is None else part.gpu_observed for part in cards)
    return {
        "cores": Reserved(said.requested_cpus, cpus(batch, parts), cores),
        "memory": Reserved(
            said.requested_memory,
            total(limits) if said.memory is None and None not in limits else said.memory,
            total(part.memory_peak for part in parts),
        ),
        "gpus": Reserved(
            said.requested_gpus,
            gpus,
            # Of the time it was seen to hold them: what was not observed is neither.
            gpus * computed / observed if gpus and observed and computed is not None else None,
        ),
        "time": Reserved(said.time_limit, said.time_limit, elapsed),
    }


def cpus(batch: Batch | None, parts: list[Part]) -> int | None:
    """CPUs given on all nodes."""
    if batch is not None and batch.cpus:
        return batch.cpus
    found: int | None = total(part.cpus for part in parts)
    return found


def memory_on_a_node(batch: Batch | None, parts: list[Part]) -> int | None:
    """The most it may use on one node. What is given in all says that only of a job on one."""
    if batch is not None:
        told = [given.memory for given in batch.given if given.memory]
        if told:
            return max(told)
        if batch.memory and batch.node_count == 1:
            return batch.memory
    return max((part.memory_limit for part in parts if part.memory_limit is not None), default=None)


def total(values: Iterable[Any]) -> Any:
    """A sum in which missing is not zero."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
