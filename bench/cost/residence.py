"""The agent's resident memory, to a directory and over HTTPS, on nodes of different size."""

import json
from collections.abc import Iterator

from bench.cost.contest import Census
from bench.cost.farm import Farm, Plan
from bench.cost.footprint import EVERY, SAMPLES, footprint
from bench.cost.interpreter import Interpreter
from bench.cost.kit import Kit
from bench.cost.place import can_exclude_uids, collectors
from bench.cost.receiver import Receiver
from bench.cost.result import Line, Table

MIB = 2**20
NODE = Plan(jobs=300, system=1500)
LARGE = Plan(jobs=2000)
DIRECTORY, HTTPS, ALONE = "directory sink", "https sink", "https sink, trusting one certificate"
SINKS = (DIRECTORY, HTTPS, ALONE)
PROMISES = {DIRECTORY: 16.0, HTTPS: 20.0}


def measure(kit: Kit) -> Iterator[Table]:
    yield _on(kit, NODE, PROMISES)
    yield _on(kit, LARGE, {})


def _on(kit: Kit, plan: Plan, promises: dict[str, float]) -> Table:
    """All sinks with all interpreters on one farm."""
    lines: list[Line] = []
    wrong: list[str] = []
    census = Census()
    with Farm(kit.farm, plan):
        for python in kit.pythons:
            for sink in SINKS:
                census.count()
                found, problem = _one(kit, python, sink, plan)
                lines += [
                    Line(f"{sink}, {python}", found["VmRSS"] / MIB, promises.get(sink), unit="MiB"),
                    Line("  of which its own, not shared with other programs", found["RssAnon"] / MIB, unit="MiB"),
                ]
                wrong += problem
        census.count()
    conditions = [
        f"a real `jobsight agent`, {SAMPLES} samples, one every {EVERY:g} s; on: {', '.join(collectors())}",
        f"{plan}{', which are left out' if plan.system and can_exclude_uids() else ''}",
        "https: one certificate made for the bench among all that this machine trusts, checked by the agent",
    ]
    return Table(f"Resident memory of the agent, {plan.jobs} job processes", conditions, {}, lines, census, wrong)


def _one(kit: Kit, python: Interpreter, sink: str, plan: Plan) -> tuple[dict[str, int], list[str]]:
    """The sizes, and what went wrong: an agent that sends nothing is small."""
    place = kit.place(f"memory {sink}")
    jobs_only = bool(plan.system) and can_exclude_uids()
    if sink == DIRECTORY:
        settings = place.settings(collectors(), EVERY, jobs_only=jobs_only)
        sizes = footprint(python, settings, {})
        return sizes, [] if json.loads(place.last("process"))["rows"] else ["directory sink: no rows"]
    with Receiver(kit.folder, secure=True) as receiver:
        settings = place.settings(collectors(), EVERY, jobs_only=jobs_only, url=receiver.url)
        trusted = receiver.certificate if sink == ALONE else receiver.trusted
        sizes = footprint(python, settings, {"SSL_CERT_FILE": trusted})
        return sizes, [] if receiver.bytes else ["https sink: nothing arrived"]
