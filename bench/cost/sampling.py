"""What it costs to sample every process, against those who do the same."""

import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

from bench.cost import check, contest
from bench.cost.exporter import Exporter
from bench.cost.farm import Farm, Plan
from bench.cost.kit import HERE, Kit
from bench.cost.place import Place, can_exclude_uids
from bench.cost.receiver import Receiver
from bench.cost.result import Line, Table, ratio

from jobsight.schema.wire import compress

EVERY = 0.001
STANDIN = "Sonar stand-in"
JOBS_ONLY = "agent, jobs only"
AGENT = "agent"
COLD = "agent, nothing kept"
HTTP = "agent, http sink"
WITH_GROUPS = "agent, jobs only, and the cgroup collector"
EXPORTER = "process-exporter"
LEAN = "process-exporter, no threads, no smaps"


class Case(NamedTuple):
    """One node and what is promised there, by (contender, rival)."""

    title: str
    plan: Plan
    percent: float
    promises: dict[tuple[str, str], float]
    rivals: bool = True
    """With psutil, ps and the exporter, which take their time."""


HPC = Case(
    "Node of a cluster",
    Plan(jobs=300, system=1500),
    100,
    {(JOBS_ONLY, STANDIN): 0.10, (COLD, STANDIN): 0.40, (JOBS_ONLY, EXPORTER): 0.03},
)
FULL = Case(
    "2000 processes of jobs",
    Plan(jobs=2000),
    10,
    {(AGENT, STANDIN): 0.15, (COLD, STANDIN): 0.40, (AGENT, EXPORTER): 0.03},
)


def measure(kit: Kit, case: Case) -> Table:
    """One farm, all contenders."""
    with Farm(kit.farm, case.plan) as farm:
        # First, while the farm has never worked: ps and the agent look one after the other.
        wrong = check.differences(farm.pids)
        farm.grow_old()
        census = contest.Census()
        costs = compete(kit, farm, case, census)
        raw, packed = sizes(kit.place("agent"))
    conditions = [
        f"{case.plan}, {case.percent:g} % of the jobs' at work in each round; {farm.kind}",
        f"{kit.rounds} rounds; agent: scan, encode, append to a file; Python: {kit.pythons[0]}",
        f"message: {raw:.0f} bytes a process in the file, {packed:.1f} on the wire",
        f"agent against ps: {len(wrong)} differences",
    ]
    return Table(case.title, conditions, costs, lines(case, costs), census, wrong)


def sizes(place: Place) -> tuple[float, float]:
    """Bytes a process takes in a message, and in a compressed one."""
    line = place.last("process")
    count = len(json.loads(line)["rows"]["pid"])
    return len(line) / count, len(compress(line)) / count


def lines(case: Case, costs: dict[str, contest.Cost]) -> list[Line]:
    pairs = dict.fromkeys((ours, rival) for ours in costs if ours.startswith(AGENT) for rival in (STANDIN, EXPORTER))
    found: list[Line] = []
    for ours, rival in pairs:
        found += ratio(costs, ours, rival, case.promises.get((ours, rival)))
    ours = JOBS_ONLY if JOBS_ONLY in costs else AGENT
    for rival in (LEAN, "psutil", "ps"):
        found += ratio(costs, ours, rival)
    return found


def compete(kit: Kit, farm: Farm, case: Case, census: contest.Census) -> dict[str, contest.Cost]:
    with ExitStack() as stack:
        takers = agents(kit, stack, farm)
        if kit.standin:
            takers[STANDIN] = stack.enter_context(kit.rival(kit.standin)).sample
        if case.rivals:
            takers |= others(kit, stack)
            receiver = stack.enter_context(Receiver(kit.folder, secure=False))
            settings = kit.place("http").settings(["process"], EVERY, url=receiver.url)
            takers[HTTP] = stack.enter_context(kit.agent(settings)).sample
        return contest.rounds(takers, kit.rounds, partial(farm.poke, case.percent), census)


def agents(kit: Kit, stack: ExitStack, farm: Farm) -> dict[str, Callable[[], float]]:
    """Ours. Where there are no system processes to leave out, leaving them out is no different."""
    chosen = {AGENT: kit.place("agent").settings(["process"], EVERY)}
    if farm.plan.system and can_exclude_uids():
        chosen[JOBS_ONLY] = kit.place("jobs").settings(["process"], EVERY, jobs_only=True)
        chosen[WITH_GROUPS] = kit.place("groups").settings(["process", "cgroup"], EVERY, jobs_only=True)
    takers = {name: stack.enter_context(kit.agent(settings)).sample for name, settings in chosen.items()}
    cold = kit.place("cold").settings(["process"], EVERY)
    takers[COLD] = stack.enter_context(kit.agent(cold, "cold")).sample
    return takers


def others(kit: Kit, stack: ExitStack) -> dict[str, Callable[[], float]]:
    takers: dict[str, Callable[[], float]] = {}
    if kit.process_exporter:
        options = kit.by_name()
        lean = (options, "--threads=false", "--gather-smaps=false")
        takers[EXPORTER] = stack.enter_context(Exporter(kit.cpu, kit.process_exporter, options)).sample
        takers[LEAN] = stack.enter_context(Exporter(kit.cpu, kit.process_exporter, *lean)).sample
    sampler = (sys.executable, os.path.join(HERE, "sampler.py"), "psutil")
    takers["psutil"] = stack.enter_context(kit.rival(*sampler)).sample
    takers["ps"] = partial(contest.once, kit.cpu, *contest.PS)
    return takers
