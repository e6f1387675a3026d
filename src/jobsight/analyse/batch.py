"""What a job's scheduler says of it: its state, its times, what was asked for and what was given. Pure.

Rows come late, twice and in any order. Of two about one job the one counts that is further on in its life; of two
that are equally far the one told later. What that one leaves open the other may fill.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, structs

from jobsight.ingest.accept import LAST_TIME, Accepted

# Who tells of jobs, and for which scheduler; None where a column says it.
SOURCES = {"slurmjob": None, "pbsjob": None, "slurmqueue": "slurm"}
WAITING = frozenset({"PENDING", "CONFIGURING", "REQUEUE_HOLD", "REQUEUE_FED", "REQUEUED", "SPECIAL_EXIT"})
ENDING = frozenset({"COMPLETING", "STAGE_OUT"})
OVER = frozenset(
    {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL",
     "DEADLINE", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL"}
)  # fmt: skip
# Those that do not begin anew by themselves.
FINAL = frozenset({"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE"})
# Clocks of a controller and of a node may differ by so much (seconds).
SLACK = 60.0
# A process that began so long after the end of a job that may begin anew is the next run's: ends are told in whole
# seconds.
GRACE = 2.0


class Given(Struct, omit_defaults=True):
    """What a job has on each of some nodes."""

    nodes: str
    cpus: int | None = None
    memory: int | None = None
    cores: str | None = None
    devices: str | None = None


class Batch(Struct, omit_defaults=True):
    """The scheduler's word. Names and units are those of the records `slurmjob` and `slurmqueue`."""

    told: float
    """When it was last heard of."""
    job: str
    state: str
    array_job: str | None = None
    array_index: int | None = None
    array_waiting: str | None = None
    het_job: str | None = None
    het_offset: int | None = None
    sluid: str | None = None
    entry: int | None = None
    owner: str | None = None
    uid: int | None = None
    group_name: str | None = None
    gid: int | None = None
    account: str | None = None
    partition: str | None = None
    qos: str | None = None
    reservation: str | None = None
    name: str | None = None
    work_dir: str | None = None
    cancelled_by: int | None = None
    reason: str | None = None
    nodes: str | None = None
    requested: str | None = None
    allocated: str | None = None
    gpu_types: str | None = None
    unlimited: bool | None = None
    submit: float | None = None
    eligible: float | None = None
    start: float | None = None
    ended: float | None = None
    elapsed: float | None = None
    suspended: float | None = None
    time_limit: float | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    worst_exit_code: int | None = None
    priority: int | None = None
    restarts: int | None = None
    requested_cpus: int | None = None
    requested_memory: int | None = None
    requested_nodes: int | None = None
    requested_gpus: int | None = None
    cpus: int | None = None
    memory: int | None = None
    node_count: int | None = None
    gpus: int | None = None
    cpu_time: float | None = None
    dependency: str | None = None
    scheduled_nodes: str | None = None
    expected: float | None = None
    given: list[Given] = []

    @property
    def over(self) -> bool:
        """A job that is requeued ends, too: its next life is another job."""
        return self.ended is not None or self.state in OVER

    @property
    def waits(self) -> bool:
        return not self.over and self.state in WAITING

    @property
    def seen(self) -> float:
        return self.told if self.ended is None else self.ended

    @property
    def number(self) -> str:
        """What people know it by."""
        if self.array_job and self.array_index is not None:
            return f"{self.array_job}_{self.array_index}"
        if self.het_job and self.het_offset is not None:
            return f"{self.het_job}+{self.het_offset}"
        return self.job

    @property
    def progress(self) -> int:
        """How far it is in its life."""
        return 3 if self.over else 0 if self.waits else 2 if self.state in ENDING else 1

    def away(self, time: float) -> float | None:
        """How far a time is from the job's run (seconds); None if so far that it is another's."""
        begins = self.submit if self.start is None else self.start
        early = 0.0 if begins is None else max(0.0, begins - time)
        late = 0.0 if self.ended is None else max(0.0, time - self.ended)
        most = SLACK if self.state in FINAL else GRACE
        return max(early, late) if early <= SLACK and late <= most else None


# A controller's clock may be mad, or a row: what is no time is missing.
TIMES = ("submit", "eligible", "start", "ended", "expected")
COLUMNS = tuple(field.name for field in structs.fields(Batch) if field.name not in ("told", "given"))


def batches(sample: Accepted) -> Iterator[tuple[str, Batch]]:
    """The jobs a message tells of, each with its scheduler; earlier submissions first. Steps are left out."""
    if not sample.count:
        return iter(())
    nothing = [None] * sample.count
    columns = [sample.columns.get(name) or nothing for name in COLUMNS]
    steps, parts = sample.columns.get("step") or nothing, sample.columns.get("part") or nothing
    scheduler = SOURCES[sample.collector]
    schedulers = sample.columns["scheduler"] if scheduler is None else [scheduler] * sample.count
    found = []
    for row, values in enumerate(zip(*columns, strict=True)):
        if steps[row] is None:
            batch = _timed(Batch(sample.time, *values))
            found.append((schedulers[row], batch if parts[row] is None else _queued(batch, sample, row)))
    return iter(sorted(found, key=lambda item: item[1].submit or 0.0))


def _timed(batch: Batch) -> Batch:
    for name in TIMES:
        time = getattr(batch, name)
        if time is not None and not 0 < time < LAST_TIME:
            setattr(batch, name, None)
    return batch


def _queued(batch: Batch, sample: Accepted, row: int) -> Batch:
    """A row of the queue. What it says of tasks, CPUs and nodes means what is asked for until a job has begun."""
    cell: Any = {name: values[row] for name, values in sample.columns.items()}
    if cell["part"] == "given":
        given = Given(cell["nodes"] or "", *(cell.get(name) for name in ("cpus", "memory", "cores", "devices")))
        # Of the whole it tells no more than whose part it is.
        return Batch(batch.told, batch.job, batch.state, submit=batch.submit, start=batch.start, given=[given])
    tasks = cell.get("array_tasks")
    if tasks and tasks.isdecimal():
        batch.array_index = int(tasks)
    elif tasks:
        batch.array_waiting = f"[{tasks}]"
    if batch.waits:
        batch.requested_cpus, batch.requested_nodes = batch.cpus, batch.node_count
        batch.cpus = batch.node_count = None
    return batch


def same_life(one: Batch, other: Batch) -> bool:
    """Whether both tell of the same run of a job: numbers come back, and a requeued job keeps its own."""
    if one.sluid and other.sluid:
        return one.sluid == other.sluid
    # What waits of an array has an entry of its own until the last task takes its number.
    whole = one.array_waiting is None and other.array_waiting is None
    if whole and one.entry is not None and other.entry is not None:
        return one.entry == other.entry
    if one.submit is not None and other.submit is not None:
        return one.submit == other.submit
    return one.start is None or other.start is None or one.start == other.start


def joined(one: Batch, other: Batch) -> Batch:
    """Both as one: what is further on counts, then what was told later."""
    runs = one.restarts, other.restarts
    again = None not in runs and runs[0] != runs[1]
    rank = (lambda it: (it.restarts, 0, it.told)) if again else (lambda it: (0, it.progress, it.told))
    second, first = sorted((one, other), key=rank)
    told = max(one.told, other.told)
    if again:
        # It runs anew under its number and its submission: nothing of the earlier run holds.
        return structs.replace(first, told=told, submit=first.submit or second.submit, name=first.name or second.name)
    found = structs.replace(first, told=told)
    for name in COLUMNS:
        if getattr(found, name) is None:
            setattr(found, name, getattr(second, name))
    if found.array_index is not None:
        found.array_waiting = None
    found.given = merged(second.given, first.given)
    return found


def merged(before: Iterable[Given], after: Iterable[Given]) -> list[Given]:
    parts = {part.nodes: part for part in (*before, *after)}
    return [parts[nodes] for nodes in sorted(parts)]
