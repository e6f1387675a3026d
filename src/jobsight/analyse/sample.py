"""A message of a node, read as jobs: which rows belong to which, and what their processes or groups had used."""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from operator import add
from typing import Any

from jobsight.analyse.batch import COLUMNS as BATCH_COLUMNS
from jobsight.analyse.growth import Ident, Total
from jobsight.collect.allocation import Allocation
from jobsight.ingest.accept import Accepted
from jobsight.schema.record import fields_of

# A job as a node names it: (scheduler, id).
Name = tuple[str, str]

GROUP_COLUMNS = (
    "cpu_time", "cpus", "memory_anon", "memory_file", "memory_limit", "memory_peak", "oom_kills", "pressure_cpu",
    "processes", "read", "reads", "writes", "written",
)  # fmt: skip


COUNTERS = ("cpu_time", "read", "written", "oom_kills", "pressure_cpu", "reads", "writes")

# What does not add up, and where the parts of a job with several groups are remembered.
OVERLAPPING = ("memory_peak", "pressure_cpu")
APART = "apart"

# The columns that are looked at here and in the ledger, by collector. Of an allocation that is every one.
WANTED = {
    "process": (
        "pid", "started", "parent", "scheduler", "job", "owner", "command", "state", "threads", "cpu_user",
        "cpu_system", "cpu_children", "memory_anon", "read", "written", "merged",
    ),
    "cgroup": ("scheduler", "job", "step", "path", *GROUP_COLUMNS),
    "gpu": ("uuid", "scheduler", "job", "utilization", "busy", "memory_used"),
    "hardware": ("cpus", "memory"),
    "allocation": tuple(field.name for field in fields_of(Allocation)),
    "slurmjob": ("scheduler", "step", *BATCH_COLUMNS),
    "pbsjob": ("scheduler", "step", *BATCH_COLUMNS),
    "slurmqueue": ("part", "array_tasks", "cores", "devices", *BATCH_COLUMNS),
}  # fmt: skip

# Rows of columns turned into these without a step of Python for each: most of a server's work is done on them.
_ident: Any = partial(tuple.__new__, Ident)
_total: Any = partial(tuple.__new__, Total)


def rows_by_job(sample: Accepted) -> dict[Name, list[int]]:
    """Row numbers of each job. Rows of steps and tasks are parts of what their job's own row counts, and left out."""
    rows: dict[Name, list[int]] = defaultdict(list)
    if sample.count:
        names = zip(sample.columns["scheduler"], sample.columns["job"], strict=True)
        steps = sample.columns.get("step")
        for row, name in enumerate(names):
            if steps is None or steps[row] is None:
                rows[name].append(row)
    return rows


def labels(sample: Accepted) -> dict[Name, dict[str, Any]]:
    """What an allocation message says of each job."""
    rows = (dict(zip(sample.columns, values, strict=True)) for values in zip(*sample.columns.values(), strict=True))
    return {(row["scheduler"], row["job"]): row for row in rows}


def column(sample: Accepted, name: str) -> list[Any]:
    """A column, all missing where the sender did not know it yet."""
    return sample.columns.get(name) or [None] * sample.count


def totals(sample: Accepted, who: Sequence[Ident], before: dict[Ident, Total]) -> dict[Ident, Total]:
    """What each process had used; `who` says whose a row is. Where a number is missing the last known one stands:
    missing is not zero.
    """
    found = _totals(sample, who)
    if None in column(sample, "read") or None in column(sample, "written"):
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


def _totals(sample: Accepted, who: Sequence[Ident]) -> dict[Ident, Total]:
    if not sample.count:
        return {}
    columns = sample.columns
    used = zip(
        columns["parent"],
        map(add, columns["cpu_user"], columns["cpu_system"]),
        columns["cpu_children"],
        column(sample, "read"),
        column(sample, "written"),
        [merged is not None for merged in column(sample, "merged")],
        strict=True,
    )
    return dict(zip(who, map(_total, used), strict=True))


def idents(sample: Accepted) -> list[Ident]:
    """The process of each row."""
    return list(map(_ident, zip(column(sample, "pid"), column(sample, "started"), strict=True)))


def groups(sample: Accepted, before: dict[Name, dict[str, Any]]) -> dict[Name, dict[str, Any]]:
    """What each job's control group had used; of counters that are missing the last known value."""
    found = {}
    for name, rows in rows_by_job(sample).items():
        earlier = before.get(name, {})
        if len(rows) > 1 or APART in earlier:
            found[name] = _together(sample, rows, earlier.get(APART, {}))
            continue
        group = found[name] = {wanted: column(sample, wanted)[rows[0]] for wanted in GROUP_COLUMNS}
        for counter in COUNTERS:
            if group[counter] is None:
                group[counter] = earlier.get(counter)
    return found


def _together(sample: Accepted, rows: list[int], earlier: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Several groups of one job on one machine, as where two of Slurm's nodes share it: one may go before the other,
    and what it counted must not go with it. By path, so that each is set against itself.
    """
    paths, now = column(sample, "path"), {}
    for row in rows:
        old = earlier.get(paths[row], {})
        new = {counter: column(sample, counter)[row] for counter in COUNTERS}
        if new["cpu_time"] is not None and new["cpu_time"] < (old.get("cpu_time") or 0):
            earlier, old = {}, {}  # it began anew, and so did the job
        now[paths[row]] = {name: old.get(name) if value is None else value for name, value in new.items()}
    apart = earlier | now
    whole: dict[str, Any] = {APART: apart}
    for wanted in GROUP_COLUMNS:
        values = [part[wanted] for part in apart.values()] if wanted in COUNTERS else []
        values = values or [column(sample, wanted)[row] for row in rows]
        whole[wanted] = _whole(wanted, [value for value in values if value is not None])
    return whole


def _whole(name: str, values: list[Any]) -> Any:
    """Of several groups. They may share CPUs; times they waited and peaks they had overlap, nobody knows how much."""
    if not values or (name in OVERLAPPING and len(values) > 1):
        return None
    return max(values) if name == "cpus" else sum(values)
