"""What each node has, as it was last said to be: the bound of a job that has no other."""

from jobsight.analyse.last import AHEAD
from jobsight.analyse.usage import Machine
from jobsight.ingest.accept import Accepted

# Of what was said of a machine, how much is remembered: what is said next may be heard before it holds.
REMEMBERED = 4


class Inventory:
    """Machines by cluster and node, with when each was said to be so."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], list[tuple[float, Machine]]] = {}

    def learn(self, sample: Accepted) -> float | None:
        """Take a message. Where it says something new, from when on samples should have been counted by it."""
        place = sample.cluster, sample.node
        known = [machine for time, machine in self._told.get(place, ()) if time < sample.time]
        if sample.count:
            told = [*self._told.get(place, ()), (sample.time, machine(sample))]
            # Of what is said at one instant the same counts, whichever came first.
            told.sort(key=lambda one: (one[0], *(-1 if figure is None else figure for figure in one[1])))
            self._told[place] = told[-REMEMBERED:]
        if (known or [Machine()])[-1] == machine(sample):
            return None
        return sample.time if known else sample.time - AHEAD

    def at(self, sample: Accepted) -> Machine:
        """As it was last said to be; where nothing was said before, what is said a moment later."""
        told = self._told.get((sample.cluster, sample.node), ())
        before = [found for time, found in told if time <= sample.time]
        if before:
            return before[-1]
        return next((found for time, found in told if time <= sample.time + AHEAD), Machine())


def machine(sample: Accepted) -> Machine:
    return Machine(sample.columns["cpus"][0], sample.columns["memory"][0]) if sample.count else Machine()
