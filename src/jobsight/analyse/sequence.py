"""The order in which messages are counted: each node's as its own clock says, whatever order they came in."""

from collections.abc import Iterable

from jobsight.analyse.last import AHEAD, clock
from jobsight.ingest.accept import Accepted

# What describes comes before what is measured.
# And a process knows when its job began, which its control group does not.
FIRST = {"hardware": AHEAD, "allocation": AHEAD, "process": 1.0}


def in_order(messages: Iterable[Accepted]) -> list[Accepted]:
    """Node after node, boot after boot. Between nodes there is no order that matters."""
    messages = list(messages)
    begins: dict[tuple[str, str, str], float] = {}
    for m in messages:
        place = m.cluster, m.node, m.boot
        begins[place] = min(m.time, begins.get(place, m.time))

    def rank(m: Accepted) -> tuple[str, str, float, str, float, str, float]:
        begin = begins[m.cluster, m.node, m.boot]
        return m.cluster, m.node, begin, m.boot, clock(m) - FIRST.get(m.collector, 0.0), m.collector, m.time

    return sorted(messages, key=rank)
