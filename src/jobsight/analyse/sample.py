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


COUNTERS = ("cpu_time", "read", "written", "oom_kills")


def rows_by_job(sample: Accepted) -> dict[Name, list[int]]:
    """Row numbers of each job. Rows of steps and tasks are parts of what their job's own row counts, and left out."""
    rows: dict[Name, list[int]] = defaultdict(list)
    if sample.count:
        names = zip(sample.columns["scheduler"], sample.columns["job"], column(sample, "step"), strict=True)
        for row, (scheduler, job, step) in enumerate(names):
            if step is None:
                rows[scheduler, job].append(row)
    return rows


def labels(sample: Accepted) -> dict[Name, dict[str, Any]]:
    """What an allocation message says of each job."""
    rows = (dict(zip(sample.columns, values, strict=True)) for values in zip(*sample.columns.values(), strict=True))
    return {(row["scheduler"], row["job"]): row for row in rows}


def column(sample: Accepted, name: str) -> list[Any]:
    """A column, all missing where the sender did not know it yet."""
    return sample.columns.get(name) or [None] * sample.count


def totals(sample: Accepted, before: dict[Ident, Total]) -> dict[Ident, Total]:
    """What each process had used. Where a number is missing the last known one stands: missing is not zero."""
    found = _totals(sample)
    for ident, total in found.items():
        if (total.read is None or total.written is None) and (earlier := before.get(ident)):
            found[ident] = total._replace(
                read=earlier.read if total.read is None else total.read,
                written=earlier.written if total.written is None else total.written,
            )
    if sample.missing.get("pid") == "failed":
        # Some processes could not be read this time: they are not gone. Those that are forbidden were never seen.
        found = before | found
    return found


def _totals(sample: Accepted) -> dict[Ident, Total]:
    if not sample.count:
        return {}
    columns = sample.columns
    return {
        Ident(pid, started): Total(parent, user + system, children, read, written, merged is not None)
        for pid, started, parent, user, system, children, read, written, merged in zip(
            columns["pid"],
            columns["started"],
            columns["parent"],
            columns["cpu_user"],
            columns["cpu_system"],
            columns["cpu_children"],
            column(sample, "read"),
            column(sample, "written"),
            column(sample, "merged"),
            strict=True,
        )
    }


def idents(sample: Accepted, rows: list[int]) -> list[Ident]:
    return [Ident(sample.columns["pid"][row], sample.columns["started"][row]) for row in rows]


def groups(sample: Accepted, before: dict[Name, dict[str, Any]]) -> dict[Name, dict[str, Any]]:
    """What each control group had used; of counters that are missing the last known value."""
    found = {
        name: {wanted: column(sample, wanted)[rows[0]] for wanted in GROUP_COLUMNS}
        for name, rows in rows_by_job(sample).items()
    }
    for name, group in found.items():
        for counter in COUNTERS:
            if group[counter] is None:
                group[counter] = before.get(name, {}).get(counter)
    return found
