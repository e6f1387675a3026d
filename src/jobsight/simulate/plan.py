"""A cluster's time from begin to end, decided beforehand: machines, people, jobs, and what goes wrong.

The same arguments give the same plan, on every machine and at every time: nothing here looks at a clock.
"""

from random import Random
from typing import NamedTuple

from jobsight.simulate import outage, session
from jobsight.simulate.demand import DAY, Sure, Window, demand
from jobsight.simulate.outage import Boot, Faults
from jobsight.simulate.scheduler import Scheduler
from jobsight.simulate.site import Site, site
from jobsight.simulate.truth import Place, Truth

# A Monday.
BEGIN = 1_767_571_200.0
# Before the begin, so that the cluster is not empty when one starts to look.
WARM = 0.5 * DAY
# A new process gets the next number; so many are used up by others between two of ours.
STRIDE = 37
LEAST, PIDS = 2000, 4_194_304


class Wish(NamedTuple):
    """Which cluster, and which time of it."""

    seed: int = 1
    nodes: int = 60
    days: float = 1.0
    begin: float = BEGIN
    """Seconds since 1970. What people do depends on the hour and on the weekday (UTC)."""
    ahead: float = 0.0
    """Days after the end for which there are plans, too: to go on from there."""
    cluster: str = "demo"
    load: float = 0.85
    """Part of the cores that people ask for."""
    sets: int | None = None
    """How often each misfit and failure is planted for certain; once a day if not said."""
    scalings: int | None = None
    """Series of one run on more and more cores; some if not said."""
    faults: Faults | None = None
    """What goes wrong; a node that falls and one that stays down if not said."""


class Tenant(NamedTuple):
    """A job on a node, with the processes it has there."""

    truth: Truth
    place: Place
    pid: int
    """Of its first process; the others follow."""
    first: bool
    """Whether this is the first of its nodes: the script runs there."""


class Plan(NamedTuple):
    """Everything that will have happened."""

    wish: Wish
    site: Site
    truths: tuple[Truth, ...]
    tenants: dict[str, list[Tenant]]
    """By node, in the order in which they start."""
    boots: dict[str, list[Boot]]
    faults: Faults

    @property
    def end(self) -> float:
        return self.wish.begin + self.wish.days * DAY

    @property
    def last(self) -> float:
        """The end of what is planned."""
        return self.end + self.wish.ahead * DAY

    def seen(self) -> list[Truth]:
        """Those that ran at some time between begin and end."""
        return [truth for truth in self.truths if truth.start < self.end and truth.end > self.wish.begin]


def plan(wish: Wish) -> Plan:
    """Decide everything."""
    begin = wish.begin - WARM
    span = Window(begin, WARM + (wish.days + wish.ahead) * DAY)
    land = site(wish.cluster, wish.nodes, _chance(wish, "site"))
    end = wish.begin + wish.days * DAY
    faults = wish.faults or Faults(outages=outage.some(land, wish.begin, end, _chance(wish, "outages")))
    sets = max(1, round(wish.days)) if wish.sets is None else wish.sets
    scalings = max(1, round(wish.nodes * wish.days / 60)) if wish.scalings is None else wish.scalings
    sure = Sure(Window(wish.begin, wish.days * DAY), sets, scalings)
    wanted = demand(land, span, wish.load, sure, _chance(wish, "demand"))
    finish = begin + span.seconds
    jobs = Scheduler(land, faults.outages).play(wanted, finish)
    chance = _chance(wish, "sessions")
    jobs += session.strays(jobs) + session.sessions(land, begin, span.seconds, chance)
    boots = {
        node.name: outage.boots(node, list(faults.outages), begin - DAY, finish + 365 * DAY, chance)
        for node in land.nodes
    }
    truths, tenants = _housed(land, jobs, boots, chance)
    return Plan(wish, land, tuple(truths), tenants, boots, faults)


def _chance(wish: Wish, part: str) -> Random:
    """A stream of its own for each part: a change in one does not change the others."""
    return Random(f"{wish.seed}/{part}")  # noqa: S311  # a simulation, not a secret


def _housed(
    land: Site, jobs: list[Truth], boots: dict[str, list[Boot]], chance: Random
) -> tuple[list[Truth], dict[str, list[Tenant]]]:
    """Give processes their numbers, and sessions theirs, which are those of their first process."""
    tenants: dict[str, list[Tenant]] = {node.name: [] for node in land.nodes}
    used = {name: chance.randrange(LEAST, PIDS // 2) for name in tenants}
    truths = []
    for truth in sorted(jobs, key=lambda truth: (truth.start, truth.submit, truth.number, truth.user.name)):
        houses = []
        for place in truth.places:
            name = place.node.name
            houses.append((place, used[name]))
            used[name] = LEAST + (used[name] - LEAST + _processes(truth) + STRIDE) % (PIDS - LEAST)
        kept = _cut(truth, boots) if truth.scheduler == "session" else truth
        if kept is None:
            continue
        if kept.scheduler == "session":
            kept = kept._replace(number=str(houses[0][1]))
        truths.append(kept)
        for number, (place, (_, pid)) in enumerate(zip(kept.places, houses, strict=True)):
            tenants[place.node.name].append(Tenant(kept, place, pid, number == 0))
    return truths, tenants


def _processes(truth: Truth) -> int:
    return 1 + truth.draft.ranks + truth.draft.zombies


def _cut(truth: Truth, boots: dict[str, list[Boot]]) -> Truth | None:
    """A session does not outlive its machine."""
    for boot in boots[truth.places[0].node.name]:
        if boot.begin <= truth.start < boot.end:
            return truth if truth.end <= boot.end else session.shortened(truth, boot.end)
    return None
