"""People on machines that have no batch system, and what jobs leave behind on those that have one.

Nobody gives out cores here, so no job has any: a session is what one login started.
"""

from random import Random

from jobsight.simulate.draft import Draft, Ending, Misfit
from jobsight.simulate.program import PROGRAMS, Program, choose
from jobsight.simulate.site import GIB, OPEN, Node, Site, User
from jobsight.simulate.truth import Place, Truth
from jobsight.simulate.work import Curve, Phase, cut, length

HOUR = 3600.0
# So many people at a time sit at one machine.
SEATS = 6
# The first machine is crowded, and one user takes most of it. The second sees the same with nobody else there.
CROWDED, QUIET = 0, 1
TAKEN = 48.0


def sessions(site: Site, begin: float, seconds: float, chance: Random) -> list[Truth]:
    """Logins on the machines without a batch system. Numbers are given later: they are those of processes."""
    found: list[Truth] = []
    machines = [node for node in site.nodes if node.make is OPEN]
    hogged = (begin + 0.55 * seconds, begin + 0.75 * seconds)
    hog = _hog(chance.choice(site.users), hogged[1] - hogged[0])
    for number, node in enumerate(machines):
        if number in (CROWDED, QUIET):
            crowded = number == CROWDED
            planted = (Misfit.HOG, Misfit.RESPONSE) if crowded else ()
            draft = hog._replace(planted=planted, waits=1.0 if crowded else 0.0)
            found.append(_session(node, chance.choice(site.users), draft, hogged[0]))
        for _ in range(SEATS):
            found += _seat(site, node, number, begin, seconds, hogged, chance)
    return found


def _seat(
    site: Site, node: Node, number: int, begin: float, seconds: float, hogged: tuple[float, float], chance: Random
) -> list[Truth]:
    """One after the other at one place."""
    found, time = [], begin + chance.uniform(0, 4 * HOUR)
    while time < begin + seconds:
        user = chance.choice(site.users)
        draft = _work(user, chance, crowded=number == CROWDED)
        end = time + length(draft.phases)
        if number != QUIET or end < hogged[0] or time > hogged[1]:
            found.append(_session(node, user, draft, float(round(time))))
        time = end + chance.uniform(0.2, 3) * HOUR
    return found


def _work(user: User, chance: Random, *, crowded: bool) -> Draft:
    """Try something, wait, try again."""
    program = choose(chance, chance.choice(("serial", "threads")), user.field)
    memory = chance.uniform(0.3, 12) * GIB
    phases = []
    for _ in range(chance.randrange(1, 6)):
        cores = chance.uniform(0.3, 2.0)
        phases.append(Phase("compute", float(chance.randrange(300, 3000)), cores, (memory, memory), read=2e6))
        phases.append(Phase("wait", float(chance.randrange(300, 5000)), 0.002, (memory, memory)))
    return _draft("session", program, tuple(phases), 16 if crowded else 2)._replace(waits=0.5 if crowded else 0.0)


def _hog(user: User, seconds: float) -> Draft:
    """Nearly all cores, for hours."""
    program = next(p for p in PROGRAMS if (p.way == "threads" and p.field == user.field) or p.command == "julia")
    memory = 60.0 * GIB
    return _draft("hog", program, (Phase("compute", float(round(seconds)), TAKEN, (memory, memory)),), 60)


def _draft(kind: str, program: Program, phases: tuple[Phase, ...], threads: int) -> Draft:
    return Draft(
        kind=kind, name="", program=program, partition="", nodes=1, cores=0, memory=0, gpus=0, limit=0.0,
        phases=phases, ranks=1, threads=threads,
    )  # fmt: skip


def _session(node: Node, user: User, draft: Draft, start: float, origin: str = "") -> Truth:
    curve = Curve(start, draft.phases, float(node.make.memory))
    return Truth(
        scheduler="session", number="", array=None, task=None, user=user, draft=draft, submit=start, start=start,
        end=curve.end, ending=Ending(), restarts=0, places=(Place(node, (), (), curve),), origin=origin,
    )  # fmt: skip


def strays(truths: list[Truth]) -> list[Truth]:
    """What jobs left behind: a process of their program that nobody waits for, on one core."""
    found = []
    for truth in truths:
        if truth.draft.stray and truth.started and truth.ending.state != "NODE_FAIL":
            memory = 1.5 * GIB
            phases = (Phase("compute", truth.draft.stray, 0.9, (memory, memory)),)
            draft = _draft("stray", truth.draft.program, phases, 1)._replace(planted=(Misfit.STRAY,))
            found.append(_session(truth.places[0].node, truth.user, draft, truth.end, truth.number))
    return found


def shortened(truth: Truth, end: float) -> Truth:
    """The same, ended by a machine that fell."""
    draft = truth.draft._replace(phases=cut(truth.draft.phases, end - truth.start))
    return _session(truth.places[0].node, truth.user, draft, truth.start, truth.origin)
