"""Identical processes in one row: a hundred workers of one parent say little that their sum does not.

Merged are processes of one parent, job, user and command that have no children, and only where the job has a control
group: a sum falls when one of them ends, so only that group can tell what they used in all.
"""

from collections.abc import Iterable, Iterator
from typing import Any

SUMMED = (
    "threads", "cpu_user", "cpu_system", "cpu_children", "memory_anon", "memory_shared", "memory_data",
    "memory_virtual", "read", "written",
)  # fmt: skip
ALIKE = ("parent", "scheduler", "job", "owner", "command", "container", "container_id", "image")


def rolled_up(rows: Iterable[Any]) -> Iterator[Any]:
    """Rows of processes, those that are alike as one; it stands where the first of them stood."""
    listed = list(rows)
    parents = {row.parent for row in listed}
    alike: dict[Any, list[Any]] = {}
    for row in listed:
        lone = row.scheduler == "session" or row.pid in parents
        alike.setdefault(row.pid if lone else tuple(getattr(row, name) for name in ALIKE), []).append(row)
    for members in alike.values():
        yield members[0] if len(members) == 1 else merged(members)


def merged(members: list[Any]) -> Any:
    """One row with the oldest's name and everybody's numbers. What one of them lacks, the sum lacks."""
    first = min(members, key=lambda row: (row.started, row.pid))
    values = {field.name: value for field, value in zip(first.fields, first, strict=True)}
    for name in SUMMED:
        numbers = [getattr(row, name) for row in members]
        values[name] = None if None in numbers else sum(numbers)
    values["state"] = "R" if any(row.state == "R" for row in members) else first.state
    values["arguments"] = first.arguments if len({row.arguments for row in members}) == 1 else None
    values["merged"] = len(members) - 1
    return type(first)(**values)
