"""Jobs that are over, one row each: how long they waited and ran, and what they needed. For quantiles over years."""

from collections.abc import Iterable
from typing import Any

from jobsight.analyse.summary import summary
from jobsight.schema.record import fields_of, gauge, label, record
from jobsight.schema.units import Bytes, Count, Joules, Seconds
from jobsight.schema.units import base as carrier

TYPES = {int: "BIGINT", float: "FLOAT8", str: "VARCHAR"}


@record
class Stint:
    """One job, which ended at this row's time."""

    job_key: str = label("The job.")
    owner: str = label("Whose.")
    account: str = label("For which account; empty if unknown.")
    partition: str = label("In which partition; empty if unknown.")
    command: str = label("The command that used the most; empty if unknown.")
    started: Seconds = gauge("When it started, since 1970.")
    elapsed: Seconds = gauge("How long it ran.")
    waited: Seconds | None = gauge("How long it could have run and did not.", default=None)
    cpus: Count | None = gauge("CPUs it was given.", default=None)
    node_count: Count | None = gauge("Nodes it ran on.", default=None)
    gpus: Count | None = gauge("Cards it was given.", default=None)
    cpu_time: Seconds | None = gauge("CPU time it used.", default=None)
    memory_peak: Bytes | None = gauge("The most memory on one node.", default=None)
    energy: Joules | None = gauge("What it took, with its part of what nodes take anyway.", default=None)


# What comes with a job; its energy is joined.
GIVEN = tuple(field for field in fields_of(Stint) if field.name != "energy")
NAMES = ("cluster", "time", *(field.name for field in GIVEN))


def rows(documents: Iterable[dict[str, Any]], since: float, until: float, now: float) -> list[tuple[Any, ...]]:
    """Of jobs that ended in a time, as texts in the order of `NAMES`."""
    found = []
    for document in documents:
        if not since <= document["seen"] < until:
            continue
        job = summary(document, now)
        if job.state in ("pending", "running"):
            continue
        batch = job.batch
        free = None if batch is None else batch.eligible or batch.submit
        waited = None if batch is None or free is None or batch.start is None else max(0.0, batch.start - free)
        gpus = job.gpus if batch is None or batch.gpus is None else batch.gpus
        values = (
            job.cluster, job.seen, job.key, job.owner, job.account, job.partition, job.command, job.started,
            job.elapsed, waited, job.cpus, len(job.nodes) or None, gpus, job.cpu_time, job.memory_peak,
        )  # fmt: skip
        found.append(tuple(value if value is None or isinstance(value, str) else repr(value) for value in values))
    return found


def stints(since: float, until: float) -> str:
    """The rows given, as they are stored: with the energy of their jobs, where that was measured in a time."""
    columns = [f"CAST(label.{field.name} AS {TYPES[carrier(field.unit)]})" for field in GIVEN]
    return f"""SELECT label.cluster, '', '', CAST(label.time AS FLOAT8), {", ".join(columns)}, took.energy
FROM label LEFT JOIN (SELECT job_key, sum(CASE WHEN grade <> '' THEN energy_full END) AS energy FROM energy
  WHERE time >= {since!r} AND time < {until!r} AND job_key IN (SELECT job_key FROM label) GROUP BY job_key) AS took
ON took.job_key = label.job_key"""
