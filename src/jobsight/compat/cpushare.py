"""How busy each process was since the last sample, from two samples of all processes of a node.

A parent that waits for a child inherits all the CPU time the child ever had. Earlier samples told of it under the
child's own number, so it is taken off here: a shell must not show ten hours within thirty seconds. What the child
used after the last sample stays with the parent, since nobody else will tell of it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

COLUMNS = ("pid", "started", "parent", "merged", "cpu_user", "cpu_system", "cpu_children")


class Ident(NamedTuple):
    """A process on one boot."""

    pid: int
    started: float


class Used(NamedTuple):
    """CPU time of a process since it started."""

    parent: int
    merged: int
    own: float
    children: float

    @property
    def total(self) -> float:
        return self.own + self.children


class Sample(NamedTuple):
    """All processes at one instant, as columns: they are the collector's own values, so keeping them costs little."""

    uptime: float
    seconds: float
    """How long it took to read them."""
    columns: dict[str, Sequence[Any]]

    def processes(self) -> dict[Ident, Used]:
        rows = zip(*(self.columns[name] for name in COLUMNS), strict=True)
        return {
            Ident(pid, started): Used(parent, merged or 0, user + system, children)
            for pid, started, parent, merged, user, system, children in rows
        }

    def lifetime(self, started: float) -> float:
        """Seconds since the start, never too few: a process may be read at the end of the run."""
        return self.uptime + self.seconds - started


def shares(before: Sample | None, now: Sample) -> dict[Ident, float]:
    """CPU seconds used per second, since `before` or since the process started, whichever is later.

    Of an older process that was not seen then, the mean of its life. Its own work only: its children may have run
    at any time.
    """
    span = now.uptime - before.uptime if before else 0.0
    earlier = before.processes() if before and span > 0 else {}
    present = now.processes()
    owed = inherited(earlier, present)
    found = {}
    for ident, used in present.items():
        grown = growth(earlier.get(ident), used, owed.get(ident, 0.0))
        if grown is not None:
            found[ident] = ratio(grown, span)
        else:
            young = before is not None and ident.started >= before.uptime
            found[ident] = ratio(used.total if young else used.own, now.lifetime(ident.started))
    return found


def growth(before: Used | None, now: Used, owed: float) -> float | None:
    """None where it cannot be told: a new process, or a row that stands for others than the last time."""
    if before is None or now.merged != before.merged or now.own < before.own or now.children < before.children:
        return None
    return now.own - before.own + max(0.0, now.children - before.children - owed)


def inherited(before: dict[Ident, Used], now: dict[Ident, Used]) -> dict[Ident, float]:
    """What the dead had when last seen, by heir: the nearest ancestor that lived on."""
    by_pid = {ident.pid: ident for ident in before}
    found: dict[Ident, float] = {}
    for ident in before.keys() - now.keys():
        heir = by_pid.get(before[ident].parent)
        # Numbers of one instant form a tree, but read one after the other they may not: never walk in a circle.
        for _ in range(len(before)):
            if heir is None or heir in now:
                break
            heir = by_pid.get(before[heir].parent)
        if heir is not None and heir in now:
            found[heir] = found.get(heir, 0.0) + before[ident].total
    return found


def ratio(part: float, whole: float) -> float:
    """Nothing for a process that had no time yet."""
    return part / whole if whole > 0 else 0.0
