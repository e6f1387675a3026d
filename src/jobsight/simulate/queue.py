"""Jobs that wait or run, as the batch system lists them: the queue, and what each job was given where."""

from collections.abc import Iterator
from itertools import groupby

from jobsight.collect.slurmqueue import Slurmqueue
from jobsight.formats import nodelist
from jobsight.schema.units import Bytes, Count, Seconds
from jobsight.simulate.truth import Place, Truth


def queued(truth: Truth, time: float) -> Iterator[Slurmqueue]:
    """A job that waits; or one that runs, and what it has on its nodes. Nothing once it has ended."""
    if truth.end <= time:
        return
    begun = truth.start <= time
    yield _row(truth, part="queued", begun=begun)
    for (cores, devices), places in groupby(truth.places if begun else (), key=_given):
        nodes = nodelist.compress(place.node.name for place in places)
        yield _row(truth, part="given", begun=True, nodes=nodes, cores=cores, devices=devices)


def _row(
    truth: Truth, *, part: str, begun: bool, nodes: str | None = None, cores: str | None = None,
    devices: str | None = None,
) -> Slurmqueue:  # fmt: skip
    draft, whole = truth.draft, part == "queued"
    return Slurmqueue(
        job=truth.number,
        part=part,
        array_job=truth.array,
        array_tasks=None if truth.task is None else str(truth.task),
        state="RUNNING" if begun else "PENDING",
        reason=None if begun else "Resources",
        owner=truth.user.name,
        account=truth.user.account,
        partition=draft.partition,
        qos="normal" if whole else None,
        nodes=nodelist.compress(truth.nodes) if whole and begun else nodes,
        cores=cores,
        devices=devices,
        submit=Seconds(truth.submit),
        start=Seconds(truth.start) if begun else None,
        cpus=Count(draft.cores * draft.nodes) if whole else Count(draft.cores),
        node_count=Count(draft.nodes) if whole else None,
        memory=None if whole else Bytes(draft.memory),
    )


def _given(place: Place) -> tuple[str, str | None]:
    """Cores by socket and cards by number: `0:0-3 1:0`, `gpu:a100:0-1`."""
    each = place.node.make.cores // place.node.make.sockets
    sockets = groupby(place.cores, key=lambda core: core // each)
    cores = " ".join(f"{socket}:{_ranges([core % each for core in members])}" for socket, members in sockets)
    devices = f"gpu:{place.node.make.gpu_type}:{_ranges(list(place.gpus))}" if place.gpus else None
    return cores, devices


def _ranges(numbers: list[int]) -> str:
    """`0-3,7`, of numbers in order."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in found)
