"""A message of a node, read as jobs: which rows belong to which, and what their processes or groups had used."""

from collections import defaultdict
from typing import Any

from jobsight.analyse.growth import Ident, Total
from jobsight.ingest.accept import Accepted

# A job as a node names it: (scheduler, id).
Name = tuple[str, str]

GROUP_COLUMNS = (
    "cpu_time", "cpus", "memory_anon", "memory_file", "memory_limit", "memory_peak", "oom_kills", "processes",
    "read", "written",
)  # fmt: skip


def rows_by_job(sample: Accepted) -> dict[Name, list[int]]:
    """Row numbers of each job."""
    rows: dict[Name, list[int]] = defaultdict(list)
    names = zip(sample.columns.get("scheduler", []), sample.columns.get("job", []), strict=True)
    for row, name in enumerate(names):
        rows[name].append(row)
    return rows


def column(sample: Accepted, name: str) -> list[Any]:
    """A column, all missing where the sender did not know it yet."""
    return sample.columns.get(name) or [None] * sample.count


def totals(sample: Accepted) -> dict[Ident, Total]:
    """What each process had used."""
    if not sample.count:
        return {}
    columns = sample.columns
    return {
        Ident(pid, started): Total(parent, user + system, children, read, written)
        for pid, started, parent, user, system, children, read, written in zip(
            columns["pid"],
            columns["started"],
            columns["parent"],
            columns["cpu_user"],
            columns["cpu_system"],
            columns["cpu_children"],
            column(sample, "read"),
            column(sample, "written"),
            strict=True,
        )
    }


def idents(sample: Accepted, rows: list[int]) -> list[Ident]:
    return [Ident(sample.columns["pid"][row], sample.columns["started"][row]) for row in rows]


def groups(sample: Accepted) -> dict[Name, dict[str, Any]]:
    """What each control group had used."""
    return {
        name: {wanted: column(sample, wanted)[rows[0]] for wanted in GROUP_COLUMNS}
        for name, rows in rows_by_job(sample).items()
    }
