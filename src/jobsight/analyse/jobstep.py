"""The steps of a job: what the scheduler says of each, beside what its control groups were seen to use."""

from typing import Any

from msgspec import Struct, structs

from jobsight.analyse.batch import Batch
from jobsight.store.protocol import Store

# How long after its end a scheduler may tell of a step: an outage is caught up with for a month.
MONTH = 31 * 86400.0
# The tables that tell of steps, by scheduler.
TABLES = {"slurm": "slurmjob"}


class Jobstep(Struct):
    """One step. Missing is None, never zero."""

    step: str
    name: str | None = None
    state: str | None = None
    start: float | None = None
    ended: float | None = None
    elapsed: float | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    nodes: str | None = None
    tasks: int | None = None
    cpus: int | None = None
    memory: int | None = None
    gpus: int | None = None
    cpu_time: float | None = None
    """As the scheduler has it, once it has ended."""
    memory_peak: int | None = None
    """Highest of a task, as the scheduler has it."""
    cpu_time_seen: float | None = None
    """As control groups had counted it when they were last seen, all nodes together."""
    memory_seen: int | None = None
    """The highest seen on each node, added up."""


TOLD = tuple(field.name for field in structs.fields(Jobstep) if not field.name.endswith("_seen"))
SEEN = """
SELECT step, sum(used), sum(peak) FROM (
  SELECT step, node, max(cpu_time) AS used, max(memory_anon) AS peak FROM cgroup
  WHERE cluster = ? AND scheduler = ? AND job = ? AND step IS NOT NULL AND task IS NULL AND time BETWEEN ? AND ?
  GROUP BY step, node) AS one
GROUP BY step
"""


def jobsteps(store: Store, document: dict[str, Any], batch: Batch | None) -> list[Jobstep]:
    """Of a stored job, in the order in which they began."""
    steps = {row[0]: Jobstep(*row) for row in _told(store, document, batch)} if batch else {}
    span = document["started"] - 60, document["seen"] + 60
    for step, used, peak in store.query(
        SEEN, [document["cluster"], document["scheduler"], document["id"], *span], span
    ):
        found = steps.setdefault(step, Jobstep(step))
        found.cpu_time_seen, found.memory_seen = used, None if peak is None else int(peak)
    return sorted(steps.values(), key=_order)


def _told(store: Store, document: dict[str, Any], batch: Batch) -> list[tuple[Any, ...]]:
    """The latest row of each step of this life of the job, in the order of time."""
    table = TABLES.get(document["scheduler"])
    if table is None or batch.submit is None:
        return []
    span = batch.submit - 60, max(document["seen"], batch.told) + MONTH
    rows = store.query(
        f"SELECT {', '.join(TOLD)}, entry FROM {table} WHERE cluster = ? AND scheduler = ? AND job = ? "
        "AND submit = ? AND step IS NOT NULL AND time BETWEEN ? AND ? ORDER BY time",
        [document["cluster"], document["scheduler"], batch.job, batch.submit, *span],
        span,
    )
    return [row[:-1] for row in rows if batch.entry is None or row[-1] in (None, batch.entry)]


def _order(step: Jobstep) -> tuple[float, int, str]:
    """Numbered ones by number; what Slurm adds of its own comes first."""
    begun = float("inf") if step.start is None else step.start
    return begun, int(step.step) if step.step.isdecimal() else -1, step.step
