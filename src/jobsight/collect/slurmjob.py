"""Jobs and steps as Slurm's accounting has them: what was asked for, what was given, how it ended.

Source: `sacct`, see sacct(1), run on one machine of a cluster: the one slurmctld runs on, or where a setting says
`here: true`. Each run asks for the jobs that lived since the last good run and some minutes before it, because
slurmdbd learns of an end a little later; a row that has not changed is not sent again within the hour. Jobs that wait
or run are asked for every few minutes, in between only those that ended. After an outage the past is caught up with
in slices, one a run. A running job has no CPU time here: what sacct says of it before its end is not all of it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from jobsight.collector import collector
from jobsight.host import Host
from jobsight.schema.record import fields_of, gauge, label, record
from jobsight.schema.units import Bytes, Count, Seconds


@record
class Batchjob:
    """One job, or one step of one, as its scheduler has it. (job, submit, entry, array_index, step) is one; of
    several rows the latest counts.
    """

    scheduler: str = label("Who runs the job: slurm, pbs.")
    job: str = label("The job's number, as its control groups have it: of an array's task its own.")
    step: str | None = label("The step: batch, extern, interactive, 0, 1 …; none for the job itself.", default=None)
    array_job: str | None = label("The number of the array it belongs to.", default=None)
    array_index: Count | None = label("Its index in the array.", default=None)
    array_waiting: str | None = label("Of an array's tasks not begun yet, which: [5-20%2].", default=None)
    het_job: str | None = label("The number of the heterogeneous job it is a part of.", default=None)
    het_offset: Count | None = label("Which part of that.", default=None)
    sluid: str | None = label("Slurm's own unique id, where it has one.", default=None)
    entry: Count | None = label(
        "The entry in the scheduler's database: each life of a requeued job has its own.", default=None
    )
    owner: str | None = label("The user it belongs to.", default=None)
    uid: Count | None = label("That user's number.", default=None)
    group_name: str | None = label("The user's group.", default=None)
    gid: Count | None = label("That group's number.", default=None)
    account: str | None = label("The account it is charged to.", default=None)
    partition: str | None = label("The partition or queue.", default=None)
    qos: str | None = label("The quality of service.", default=None)
    reservation: str | None = label("The reservation it ran in.", default=None)
    name: str | None = label("What its user called it.", default=None)
    work_dir: str | None = label("The directory it was started in.", default=None)
    state: str = label("The state, as the scheduler calls it: PENDING, RUNNING, COMPLETED, OUT_OF_MEMORY …")
    cancelled_by: Count | None = label("The number of the user who cancelled it.", default=None)
    reason: str | None = label("Why it waits, or waited.", default=None)
    nodes: str | None = label("Its nodes, as the scheduler writes them: n[1-3,7].", default=None)
    layout: str | None = label("How tasks were spread over nodes.", default=None)
    requested: str | None = label("All that was asked for: cpu=4,gres/gpu=2,mem=8G,node=1.", default=None)
    allocated: str | None = label("All that was given.", default=None)
    gpu_types: str | None = label("GPUs given, by type: a100=2.", default=None)
    memory_peak_node: str | None = label("The node of the task with the highest memory.", default=None)
    unlimited: bool | None = label("Whether it may run for ever.", default=None)
    submit: Seconds | None = gauge("When the job was submitted, since 1970; a step has its job's.", default=None)
    eligible: Seconds | None = gauge("When it could have started.", default=None)
    start: Seconds | None = gauge("When it started.", default=None)
    ended: Seconds | None = gauge("When it ended.", default=None)
    elapsed: Seconds | None = gauge("How long it has run, without the time it was suspended.", default=None)
    suspended: Seconds | None = gauge("How long it was suspended.", default=None)
    time_limit: Seconds | None = gauge("How long it may run.", default=None)
    exit_code: Count | None = gauge("The exit code.", default=None)
    exit_signal: Count | None = gauge("The signal that ended it; Slurm says 125 for out of memory.", default=None)
    worst_exit_code: Count | None = gauge("The highest exit code of its steps.", default=None)
    priority: Count | None = gauge("The priority it was queued with.", default=None)
    restarts: Count | None = gauge("How often it was started anew.", default=None)
    requested_cpus: Count | None = gauge("CPUs asked for.", default=None)
    requested_memory: Bytes | None = gauge("Memory asked for, in all.", default=None)
    requested_nodes: Count | None = gauge("Nodes asked for.", default=None)
    requested_gpus: Count | None = gauge("GPUs asked for.", default=None)
    cpus: Count | None = gauge("CPUs given.", default=None)
    memory: Bytes | None = gauge("Memory given, in all.", default=None)
    node_count: Count | None = gauge("Nodes given; of a waiting job those it would need.", default=None)
    gpus: Count | None = gauge("GPUs given.", default=None)
    tasks: Count | None = gauge("Tasks of the step.", default=None)
    cpu_time: Seconds | None = gauge("CPU time used, once it has ended.", default=None)
    cpu_user: Seconds | None = gauge("CPU time in programs.", default=None)
    cpu_system: Seconds | None = gauge("CPU time in the kernel.", default=None)
    memory_peak: Bytes | None = gauge("Highest resident memory of a task; none if Slurm never looked.", default=None)
    memory_mean: Bytes | None = gauge("Mean of the tasks' highest.", default=None)
    read: Bytes | None = gauge("Bytes read by all tasks.", default=None)
    written: Bytes | None = gauge("Bytes written by all tasks.", default=None)


class Options(NamedTuple):
    """Where and how it asks."""

    here: bool | None = None
    """Whether this machine asks; where not set, the one slurmctld runs on does."""
    user: str = "slurm"
    """Who may see everybody's jobs."""
    limit: Seconds = Seconds(8.0)
    """For a run's calls together."""
    overlap: Seconds = Seconds(300.0)
    """How long slurmdbd may take to learn of an end."""
    slice: Seconds = Seconds(6 * 3600.0)
    """The longest window of one call."""
    history: Seconds = Seconds(86400.0)
    """How far back to begin when nothing was ever read."""
    survey: Seconds = Seconds(300.0)
    """How often jobs are asked for that wait or run; in between only those that ended."""
    json: bool = False
    """Whether to read `sacct --json`, which says less, in place of its table."""


@collector(every=60, runs=("sacct",), through=("setpriv", "sudo"))
def slurmjob(host: Host, options: Options) -> Iterator[Batchjob]:
    # Loaded where there is a Slurm to ask, and nowhere else.
    from jobsight.drivers import window
    from jobsight.drivers.scheduler import Errand, check_here

    check_here(host, options.here, "slurmctld")
    errand = Errand(host, "slurmjob", options.limit, options.user)
    if errand.rests():
        host.miss("job", "late")
        return
    yield from window.fresh(host, "slurmjob", options, lambda since, until: rows(host, errand, options, since, until))


def rows(host: Host, errand: Any, options: Options, since: float, until: float) -> Iterator[Batchjob]:
    """What sacct says of a window."""
    from jobsight.drivers.slurm import document, lived

    ask = document if options.json else lived
    return turned(ask(host, errand, since, until, options), lambda column: host.miss(column, "failed"))


def turned(text: str, miss: Callable[[str], None]) -> Iterator[Batchjob]:
    """The rows of what sacct printed; `miss` is told the columns with values that did not read."""
    from jobsight.formats import sacct, sacctjson

    fields = [field.name for field in fields_of(Batchjob)]
    for block in (sacctjson if text.lstrip()[:1] == "{" else sacct).jobs(text):
        for column in block.bad:
            miss(column)
        block.columns["scheduler"] = ["slurm"] * block.size
        nothing = [None] * block.size
        columns = [block.columns.get(name, nothing) for name in fields]
        yield from map(partial(tuple.__new__, Batchjob), zip(*columns, strict=True))  # type: ignore[type-var]
