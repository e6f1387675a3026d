"""Whether the agent grows: thousands of samples as fast as they go, while processes come and go."""

import os
import re
from typing import NamedTuple

from bench.cost.contest import Census
from bench.cost.farm import Farm, Plan, say
from bench.cost.footprint import memory
from bench.cost.kit import Kit
from bench.cost.place import Place, can_exclude_uids, collectors
from bench.cost.result import Line, Table

MIB = 2**20
NODE = Plan(jobs=80)
# As parts of all samples.
MARKS = (0.1, 0.2, 0.5, 1.0)
# Between two churns of one session.
STRIDE = 10
# What an allocator may do with the same objects in another order.
SLACK = 0.5


class Mark(NamedTuple):
    samples: int
    resident: int
    descriptors: int
    stale: int
    """Descriptors of the farm's processes that have ended."""


def measure(kit: Kit) -> Table:
    samples = kit.samples
    place = kit.place("endurance")
    settings = place.settings(collectors(), 0.0001, jobs_only=can_exclude_uids())
    with Farm(kit.farm, NODE) as farm, kit.agent(settings) as agent:
        marks = []
        ended: set[int] = set()
        census = Census()
        for done in range(STRIDE, samples + 1, STRIDE):
            agent.ask(str(STRIDE))
            if any(done == round(samples * part) for part in MARKS):
                descriptors, stale = held(agent.pid, ended - farm.pids)
                marks.append(Mark(done, memory(agent.pid)["VmRSS"], descriptors, stale))
                say(f"{done} samples: {marks[-1].resident / MIB:.1f} MiB, {descriptors} descriptors")
                empty(place)
                census.count()
            ended |= farm.churn(1)
    return report(kit, marks, len(ended), census)


def held(pid: int, ended: set[int]) -> tuple[int, int]:
    """Open descriptors, and those of files of processes that are no more."""
    folder = f"/proc/{pid}/fd"
    targets = []
    for name in os.listdir(folder):
        try:
            targets.append(os.readlink(f"{folder}/{name}"))
        except FileNotFoundError:
            continue
    owners = [int(found[1]) for target in targets if (found := re.match(r"/proc/(\d+)/", target))]
    return len(targets), sum(owner in ended for owner in owners)


def empty(place: Place) -> None:
    """The files grow by megabytes; the agent opens them anew for each message and finds them short."""
    for path in place.files():
        os.truncate(path, 0)


def report(kit: Kit, marks: list[Mark], ended: int, census: Census) -> Table:
    lines = []
    for mark in marks:
        lines += [
            Line(f"after {mark.samples} samples: resident", mark.resident / MIB, unit="MiB"),
            Line(f"after {mark.samples} samples: descriptors", mark.descriptors),
        ]
    growth = (marks[-1].resident - marks[0].resident) / MIB
    stale = sum(mark.stale for mark in marks)
    lines += [
        Line(f"growth from {marks[0].samples} to {marks[-1].samples} samples", growth, SLACK, unit="MiB"),
        Line("descriptors of processes that have ended, at all marks", stale, 0),
    ]
    conditions = [
        f"the agent with {', '.join(collectors())}, directory sink; Python: {kit.pythons[0]}",
        f"{NODE}; {ended} processes ended and were replaced, {8 / STRIDE:g} for each sample",
    ]
    wrong = [f"{stale} descriptors of ended processes are kept"] if stale else []
    return Table("Many samples", conditions, {}, lines, census, wrong)
