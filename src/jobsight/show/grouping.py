"""Findings added up: by what they are, by job, user, account or node. Pure."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

BY: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "code": lambda one: [one["code"]],
    "job": lambda one: [one["number"]] if one["number"] else [],
    "user": lambda one: [one["owner"]],
    "account": lambda one: [one["account"]],
    "node": lambda one: one["nodes"],
}
"""Under which names a finding is counted; under none if it is about nothing of the kind."""
KINDS = ("core_hours", "gpu_hours", "gib_hours")


class Group(NamedTuple):
    """Findings of one name."""

    name: str
    findings: int
    codes: list[str]
    """What was found, the most frequent first."""
    users: int
    core_hours: float | None
    gpu_hours: float | None
    gib_hours: float | None

    @property
    def weight(self) -> float:
        return (self.core_hours or 0.0) + 50 * (self.gpu_hours or 0.0) + 0.2 * (self.gib_hours or 0.0)


def groups(found: Iterable[dict[str, Any]], by: str) -> list[Group]:
    """Those that waste the most first. What several findings say of one job is wasted once."""
    members: dict[str, list[dict[str, Any]]] = {}
    for one in found:
        for name in BY[by](one):
            members.setdefault(name or "—", []).append(one)
    made = [_group(name, some) for name, some in members.items()]
    return sorted(made, key=lambda group: (-group.weight, -group.findings, group.name))


def _group(name: str, some: list[dict[str, Any]]) -> Group:
    codes = [one["code"] for one in some]
    return Group(
        name,
        len(some),
        sorted(set(codes), key=lambda code: (-codes.count(code), code)),
        len({one["owner"] for one in some} - {""}),
        *(wasted(some, kind) for kind in KINDS),
    )


def wasted(some: Iterable[dict[str, Any]], kind: str) -> float | None:
    """Of each subject the most that any finding says: idle cores and idle nodes are the same cores."""
    most: dict[tuple[str, str], float] = {}
    for one in some:
        if one[kind] is not None:
            subject = (one["cluster"], one["subject"])
            most[subject] = max(most.get(subject, 0.0), one[kind])
    return sum(most.values()) if most else None
