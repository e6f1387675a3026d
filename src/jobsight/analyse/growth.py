"""How much counters grew: over resets, and between two samples of a node's processes.

A process's CPU time does not vanish with it: the parent that waits for it inherits it, what the child used since
the last sample included. So what a dead child had is taken off its heir's gain, wherever in the tree the heir is
and whichever job it belongs to. Parts then add up to the whole, and a shell never shows its children's hours as a
peak of its own.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import fsum
from typing import NamedTuple


def growth(totals: Iterable[float]) -> float:
    """Sum of increases; a drop means the source restarted from zero."""
    return sum(after - before if after >= before else after for before, after in pairwise(totals))


class Ident(NamedTuple):
    """A process on one boot of one node."""

    pid: int
    started: float


class Total(NamedTuple):
    """What a process had used at one instant."""

    parent: int
    cpu: float
    children: float
    read: int | None
    written: int | None
    merged: bool = False
    """Whether it stands for several: met for the first time, nobody knows since when they were counted."""


class Gain(NamedTuple):
    """What a process, with the children it waited for, used between two instants."""

    cpu: float
    read: int | None
    written: int | None


INIT = 1


def gains(before: dict[Ident, Total], after: dict[Ident, Total]) -> dict[Ident, Gain]:
    """What each process of `after` used since `before`."""
    dead = before.keys() - after.keys()
    inherited = _inherited(before, after, dead) if dead else {}
    gone = [before[ident] for ident in dead]
    living = {ident.pid for ident in after} if gone else set()
    found = {}
    for ident, total in after.items():
        earlier = before.get(ident)
        if total.merged:
            found[ident] = _gain(_since(earlier, total, gone, living), total, inherited.get(ident, ()))
        elif total == earlier and ident not in inherited:
            # Most processes sleep.
            found[ident] = _STILL if total.read is not None and total.written is not None else _still(total)
        else:
            found[ident] = _gain(earlier or _NOTHING, total, inherited.get(ident, ()))
    if inherited:
        _settle(before, after, inherited, found)
    return found


def _settle(
    before: dict[Ident, Total],
    after: dict[Ident, Total],
    inherited: dict[Ident, list[Total]],
    found: dict[Ident, Gain],
) -> None:
    """Take off init's gain what it inherited in others' place."""
    init = next((ident for ident in after if ident.pid == INIT and ident in before), None)
    if init is not None and (owed := _orphaned(before, after, inherited, init)):
        own = max(0.0, after[init].cpu - before[init].cpu)
        found[init] = found[init]._replace(cpu=own + max(0.0, found[init].cpu - own - owed))


def _orphaned(
    before: dict[Ident, Total], after: dict[Ident, Total], inherited: dict[Ident, list[Total]], init: Ident
) -> float:
    """CPU time of the dead that their heirs cannot have inherited: a process whose parent died first is waited for
    by init.
    """
    living = {ident.pid for ident in after.keys() & before.keys()}
    found = []
    for heir, dead in inherited.items():
        lacking = fsum(d.cpu + d.children for d in dead) - (after[heir].children - before[heir].children)
        if heir != init and lacking > 0:
            found.append(min(lacking, fsum(d.cpu + d.children for d in dead if d.parent not in living)))
    # Rounded once: in whichever order processes are met, the sum is the same.
    return fsum(found)


def _since(earlier: Total | None, total: Total, gone: list[Total], living: set[int]) -> Total:
    """What the gain of a merged row is set against: what its members had used, as far as anybody knows. A row that is
    gone may have become part of this one, all it had used with it, if they are of one parent or if its own has gone
    as well.
    """
    if earlier is None:
        return total
    joined = [earlier, *(one for one in gone if one.parent == total.parent or one.parent not in living)]
    return earlier._replace(
        cpu=fsum(one.cpu for one in joined),
        children=fsum(one.children for one in joined),
        read=sum(one.read or 0 for one in joined),
        written=sum(one.written or 0 for one in joined),
    )


_NOTHING = Total(0, 0.0, 0.0, 0, 0)
_STILL = Gain(0.0, 0, 0)


def _still(total: Total) -> Gain:
    """Of a process that used nothing; missing is not zero."""
    return Gain(0.0, None if total.read is None else 0, None if total.written is None else 0)


def _gain(before: Total, after: Total, inherited: Sequence[Total]) -> Gain:
    if not inherited:
        _, cpu_before, children_before, read_before, written_before, _ = before
        _, cpu, children, read, written, _ = after
        gained = cpu - cpu_before if cpu > cpu_before else 0.0
        return Gain(
            gained + (children - children_before) if children > children_before else gained,
            None if read is None else max(0, read - (read_before or 0)),
            None if written is None else max(0, written - (written_before or 0)),
        )
    owed = fsum(dead.cpu + dead.children for dead in inherited)
    from_children = after.children - before.children
    # A parent that ignores its children inherits nothing from them. Ticks are rounded once for each child.
    took = from_children + 0.02 * (1 + len(inherited)) >= owed
    return Gain(
        cpu=max(0.0, after.cpu - before.cpu) + max(0.0, from_children - owed),
        read=_bytes(before.read, after.read, [dead.read or 0 for dead in inherited] if took else []),
        written=_bytes(before.written, after.written, [dead.written or 0 for dead in inherited] if took else []),
    )


def _bytes(before: int | None, after: int | None, inherited: list[int]) -> int | None:
    if after is None:
        return None
    return max(0, after - (before or 0) - sum(inherited))


def _inherited(
    before: dict[Ident, Total], after: dict[Ident, Total], gone: Iterable[Ident]
) -> dict[Ident, list[Total]]:
    """The dead of each heir: its nearest ancestor that lived on."""
    by_pid = {ident.pid: ident for ident in before}
    found: dict[Ident, list[Total]] = defaultdict(list)
    for ident in gone:
        heir = by_pid.get(before[ident].parent)
        # Pids of one instant form a tree, but what we were sent may be anything: never walk in a circle.
        for _ in range(len(before)):
            if heir is None or heir in after:
                break
            heir = by_pid.get(before[heir].parent)
        if heir is not None and heir in after:
            found[heir].append(before[ident])
    return found
