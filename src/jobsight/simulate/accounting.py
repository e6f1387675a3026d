"""The batch system's own word: jobs as its accounting has them, the queue, and its nodes' states."""

from collections import Counter
from collections.abc import Iterator
from math import inf
from typing import Any

from jobsight.collect.slurmjob import Batchjob
from jobsight.collect.slurmnode import Slurmnode
from jobsight.formats import nodelist
from jobsight.schema.units import Bytes, Count, Seconds
from jobsight.simulate.plan import Plan
from jobsight.simulate.queue import queued
from jobsight.simulate.site import Node
from jobsight.simulate.truth import Truth

# How far back the first answer goes.
HISTORY = 86400.0
COLLECTORS = ("slurmjob", "slurmqueue", "slurmnode")
MIB = 2**20
VERSION = "25.05.3"


class Accounting:
    """Walks through the plan with the controller's sampler."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._jobs = [truth for truth in plan.truths if truth.scheduler == "slurm"]
        # What happens to jobs, the next last.
        events = [(time, number) for number, t in enumerate(self._jobs) for time in (t.submit, t.start, t.end)]
        self._events = sorted((event for event in events if event[0] < inf), reverse=True)
        self._running: dict[int, Truth] = {}
        self._first = True

    def rows(self, time: float) -> dict[str, list[Any]]:
        """What each collector finds at a time: of jobs those that changed, of nodes all."""
        changed = self._changed(time)
        if self._first:
            changed |= {n for n, t in enumerate(self._jobs) if t.submit <= time and t.end > time - HISTORY}
            self._first = False
        jobs = [row for number in sorted(changed) for row in _job(self._jobs[number], number, time)]
        waiting = [row for number in sorted(changed) for row in queued(self._jobs[number], time)]
        return {"slurmjob": jobs, "slurmqueue": waiting, "slurmnode": list(self._nodes(time))}

    def _changed(self, time: float) -> set[int]:
        found = set()
        while self._events and self._events[-1][0] <= time:
            _, number = self._events.pop()
            found.add(number)
            truth = self._jobs[number]
            if truth.start <= time < truth.end:
                self._running[number] = truth
            else:
                self._running.pop(number, None)
        return found

    def _nodes(self, time: float) -> Iterator[Slurmnode]:
        """Nodes that are alike share a row."""
        cores: Counter[str] = Counter()
        memory: Counter[str] = Counter()
        cards: Counter[str] = Counter()
        for truth in self._running.values():
            for place in truth.places:
                cores[place.node.name] += len(place.cores)
                memory[place.node.name] += truth.draft.memory
                cards[place.node.name] += len(place.gpus)
        alike: dict[tuple[Any, str], list[Node]] = {}
        for node in self._plan.site.nodes:
            if node.make.partition:
                state = self._state(node, cores[node.name], time)
                alike.setdefault((node.make, state), []).append(node)
        for (make, state), nodes in alike.items():
            names = [node.name for node in nodes]
            down = state == "DOWN"
            yield Slurmnode(
                nodes=nodelist.compress(names),
                partitions=make.partition,
                state=state,
                flags="NOT_RESPONDING" if down else None,
                reason="Not responding" if down else None,
                reason_by="slurm" if down else None,
                gres=f"gpu:{make.gpu_type}:{make.gpus}" if make.gpus else None,
                version=VERSION,
                node_count=Count(len(nodes)),
                cpus=Count(make.cores),
                memory=Bytes(make.memory),
                gpus=Count(make.gpus) if make.gpus else None,
                cpus_given=Count(sum(cores[name] for name in names)),
                memory_given=Bytes(sum(memory[name] for name in names)),
                gpus_given=Count(sum(cards[name] for name in names)) if make.gpus else None,
                sockets=Count(make.sockets),
                cores=Count(make.cores // make.sockets // make.threads),
                threads=Count(make.threads),
            )

    def _state(self, node: Node, given: int, time: float) -> str:
        if not any(boot.begin <= time < boot.end for boot in self._plan.boots[node.name]):
            return "DOWN"
        return "IDLE" if not given else "ALLOCATED" if given == node.make.cores else "MIXED"


def _job(truth: Truth, number: int, time: float) -> Iterator[Batchjob]:
    """The job, and once it has ended the step in which its program ran."""
    yield _row(truth, number, time, None)
    if truth.end <= time:
        yield _row(truth, number, time, "0" if truth.draft.ranks > 1 else "batch")


def _row(truth: Truth, number: int, time: float, step: str | None) -> Batchjob:
    draft, begun, over = truth.draft, truth.start <= time, truth.end <= time
    nodes = draft.nodes
    given = begun and truth.started
    return Batchjob(
        scheduler="slurm",
        job=truth.number,
        step=step,
        array_job=truth.array,
        array_index=None if truth.task is None else Count(truth.task),
        entry=Count(number + 1),
        owner=truth.user.name,
        uid=Count(truth.user.uid),
        account=truth.user.account,
        partition=draft.partition,
        qos="normal",
        name=draft.name if step is None else draft.program.command,
        state=truth.ending.state if over else "RUNNING" if begun else "PENDING",
        cancelled_by=Count(truth.user.uid) if over and truth.ending.state == "CANCELLED" else None,
        reason=None if begun else "Resources",
        nodes=nodelist.compress(truth.nodes) if given else None,
        requested=_resources(truth),
        allocated=_resources(truth) if given else None,
        gpu_types=f"{truth.places[0].node.make.gpu_type}={draft.gpus * nodes}" if given and draft.gpus else None,
        unlimited=False,
        submit=Seconds(truth.submit),
        eligible=Seconds(truth.submit),
        start=Seconds(truth.start) if begun else None,
        ended=Seconds(truth.end) if over else None,
        elapsed=Seconds(min(time, truth.end) - truth.start) if begun else Seconds(0.0),
        time_limit=Seconds(draft.limit),
        exit_code=Count(truth.ending.code) if over else None,
        exit_signal=Count(truth.ending.signal) if over else None,
        restarts=Count(truth.restarts),
        requested_cpus=Count(draft.cores * nodes),
        requested_memory=Bytes(draft.memory * nodes),
        requested_nodes=Count(nodes),
        requested_gpus=Count(draft.gpus * nodes) if draft.gpus else None,
        cpus=Count(draft.cores * nodes) if given else None,
        memory=Bytes(draft.memory * nodes) if given else None,
        node_count=Count(nodes),
        gpus=Count(draft.gpus * nodes) if given and draft.gpus else None,
        tasks=Count(draft.ranks * nodes) if step else None,
        cpu_time=Seconds(_micro(truth.cpu_time)) if over else None,
        memory_peak=Bytes(int(max(truth.memory_peaks().values()) / draft.ranks)) if step else None,
        read=Bytes(int(truth.read)) if step else None,
        written=Bytes(int(truth.written)) if step else None,
    )


def _micro(seconds: float) -> float:
    return int(seconds * 1e6) / 1e6


def _resources(truth: Truth) -> str:
    """As Slurm lists them: cpu=4,gres/gpu=2,mem=8192M,node=1."""
    draft = truth.draft
    cards = f"gres/gpu={draft.gpus * draft.nodes}," if draft.gpus else ""
    memory = draft.memory * draft.nodes // MIB
    return f"cpu={draft.cores * draft.nodes},{cards}mem={memory}M,node={draft.nodes}"
