"""What goes wrong with machines and on the way: nodes that fall, messages that are lost."""

from random import Random
from typing import NamedTuple

from jobsight.simulate.site import Node, Site

# A cluster with fewer nodes of the usual kind keeps them all.
FEWEST = 3


class Outage(NamedTuple):
    """A node that is down, and boots at the end of it."""

    node: str
    begin: float
    end: float


class Faults(NamedTuple):
    """What is to go wrong."""

    lost: float = 0.0
    """Part of the messages that never arrive."""
    outages: tuple[Outage, ...] = ()


class Boot(NamedTuple):
    """One life of a machine."""

    name: str
    begin: float
    end: float


def boots(node: Node, outages: list[Outage], earliest: float, latest: float, chance: Random) -> list[Boot]:
    """A machine's lives: up for days or weeks before anything began, down in its outages."""
    begin = earliest - chance.uniform(3, 40) * 86400
    found = []
    for outage in sorted(outages, key=lambda outage: outage.begin):
        if outage.node == node.name:
            found.append(Boot(_name(chance), begin, outage.begin))
            begin = outage.end
    return [*found, Boot(_name(chance), begin, latest)]


def some(site: Site, begin: float, finish: float, chance: Random) -> tuple[Outage, ...]:
    """One node that fell and came back, and one that is still down at the end; none where there are few."""
    thin = site.partition("normal")
    if len(thin) < FEWEST:
        return ()
    first, last = chance.sample(range(len(thin)), 2)
    seconds = finish - begin
    fell = begin + 0.6 * seconds
    return (
        Outage(thin[first].name, fell, fell + min(2400.0, 0.1 * seconds)),
        Outage(thin[last].name, finish - min(5400.0, 0.2 * seconds), finish + 30 * 86400.0),
    )


def _name(chance: Random) -> str:
    """As /proc/sys/kernel/random/boot_id has it."""
    text = f"{chance.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
