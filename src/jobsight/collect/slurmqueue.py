"""Jobs that wait or run in Slurm, for what its accounting does not keep: why a job waits and for whom, and which
cores and devices it was given on which node.

Source: `squeue`, see squeue(1), run where `slurmjob` runs. A row tells of a whole job; once it runs, further rows
tell what it was given on each of its nodes (`squeue --json`, asked once a job). A row that has not changed is not
sent again within the hour.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from jobsight.collector import ParseError, collector
from jobsight.host import Host
from jobsight.schema.record import gauge, label, record
from jobsight.schema.units import Bytes, Count, Seconds

# JSON of so many jobs is asked for in one run: it is some kilobytes each, to print, to send and to read.
MOST = 200
GIVEN_STATES = ("RUNNING", "SUSPENDED", "COMPLETING", "STOPPED")


@record
class Slurmqueue:
    """One job that waits or runs, or what it was given on some of its nodes."""

    job: str = label("The job's number, as its control groups have it.")
    part: str = label("queued: of the whole job; given: of what it has on each of `nodes`.")
    array_job: str | None = label("The number of the array it belongs to.", default=None)
    array_tasks: str | None = label("Which of the array's tasks: 7, or 8-20%2 of those that wait.", default=None)
    state: str = label("The state, as Slurm calls it.")
    reason: str | None = label("Why it waits.", default=None)
    dependency: str | None = label("Which jobs it waits for: afterok:4711(unfulfilled).", default=None)
    owner: str | None = label("The user it belongs to.", default=None)
    account: str | None = label("The account it is charged to.", default=None)
    partition: str | None = label("The partition, or several.", default=None)
    qos: str | None = label("The quality of service.", default=None)
    nodes: str | None = label("Its nodes, or those this row tells of.", default=None)
    scheduled_nodes: str | None = label("Nodes it is expected to get.", default=None)
    cores: str | None = label("Cores it has on each of the nodes, by socket: 0:0-3 1:0.", default=None)
    devices: str | None = label("Devices it has on each of the nodes: gpu:a100:0-1.", default=None)
    submit: Seconds | None = gauge("When it was submitted, since 1970.", default=None)
    start: Seconds | None = gauge("When it started.", default=None)
    expected: Seconds | None = gauge("When it is expected to start.", default=None)
    priority: Count | None = gauge("Its priority.", default=None)
    cpus: Count | None = gauge("CPUs it asks for or has; of a part, on each node.", default=None)
    node_count: Count | None = gauge("Nodes it asks for or has.", default=None)
    memory: Bytes | None = gauge("Of a part: memory it has on each node.", default=None)


class Options(NamedTuple):
    """Where and how it asks."""

    here: bool | None = None
    """Whether this machine asks; where not set, the one slurmctld runs on does."""
    user: str = "slurm"
    """Who may see everybody's jobs."""
    limit: Seconds = Seconds(8.0)
    """For a run's calls together."""


class Known:
    """Jobs whose parts were told, each with its start: a requeued job gets others. Lives with a host."""

    def __init__(self) -> None:
        self.parts: dict[str, tuple[float | None, list[Slurmqueue]]] = {}
        self.mute = False
        """Whether this squeue has no JSON."""


@collector(every=60, runs=("squeue",), through=("setpriv", "sudo"))
def slurmqueue(host: Host, options: Options) -> Iterator[Slurmqueue]:
    from jobsight.drivers import window
    from jobsight.drivers.scheduler import Errand, check_here
    from jobsight.drivers.slurm import VARIABLES
    from jobsight.formats import slurmtext, squeue

    check_here(host, options.here, "slurmctld")
    errand = Errand(host, "slurmqueue", options.limit, options.user)
    if errand.rests():
        host.miss("job", "late")
        return
    queued, bad = parse(errand.ask(squeue.command(slurmtext.mark()), variables=VARIABLES))
    for column in bad:
        host.miss(column, "failed")
    known = host.keep(Known) if host.live else Known()
    parts = given(host, errand, queued, known)
    progress = window.progress_of(host, "slurmqueue")
    progress.sent = yield from window.unsent(progress, queued + parts, window.now())


def parse(text: str) -> tuple[list[Slurmqueue], set[str]]:
    """The jobs of a table, and the columns with values that did not read."""
    from jobsight.formats import slurmtext

    rows: list[Slurmqueue] = []
    bad: set[str] = set()
    for block in slurmtext.blocks(text, "JOBID", "STATE"):
        bad |= {"job"} if block.broken else set()
        for values in zip(*block.columns.values(), strict=True):
            try:
                rows.append(row(dict(zip(block.columns, values, strict=True)), bad))
            except ParseError:
                bad.add("job")
    return rows, bad


def row(fields: dict[str, str], bad: set[str]) -> Slurmqueue:
    from jobsight.formats import slurmtext
    from jobsight.formats.sacct import known

    def read(name: str, column: str, convert: Any) -> Any:
        try:
            return convert(fields.get(name, ""))
        except ParseError:
            bad.add(column)
            return None

    state, _ = slurmtext.state(fields["STATE"])
    begun = state not in ("PENDING", "CONFIGURING")
    start = read("START_TIME", "start", slurmtext.instant)
    tasks = known(fields.get("ARRAY_TASK_ID", ""))
    return Slurmqueue(
        job=fields["JOBID"],
        part="queued",
        array_job=known(fields.get("ARRAY_JOB_ID", "")) if tasks else None,
        array_tasks=tasks,
        state=state,
        reason=known(fields.get("REASON", "")),
        dependency=known(fields.get("DEPENDENCY", "")),
        owner=known(fields.get("USER", "")),
        account=known(fields.get("ACCOUNT", "")),
        partition=known(fields.get("PARTITION", "")),
        qos=known(fields.get("QOS", "")),
        nodes=known(fields.get("NODELIST", "")),
        scheduled_nodes=known(fields.get("SCHEDNODES", "")),
        submit=read("SUBMIT_TIME", "submit", slurmtext.instant),
        start=start if begun else None,
        expected=None if begun else start,
        priority=read("PRIORITY", "priority", slurmtext.number),
        cpus=read("CPUS", "cpus", slurmtext.number),
        node_count=read("NODES", "node_count", slurmtext.number),
    )


def given(host: Host, errand: Any, queued: list[Slurmqueue], known: Known) -> list[Slurmqueue]:
    """What running jobs have on their nodes: asked of those that are new, told of all."""
    from jobsight.command import CommandError
    from jobsight.formats import squeue

    begun = {one.job: one for one in queued if one.state in GIVEN_STATES}
    known.parts = {job: told for job, told in known.parts.items() if job in begun and begun[job].start == told[0]}
    new = [job for job in begun if job not in known.parts][:MOST]
    if new and not known.mute:
        try:
            grants, bad = squeue.grants(errand.ask(("squeue", "--all", "--json", f"--jobs={','.join(new)}")))
        except ParseError:
            host.miss("cores", "failed")
            return []
        except CommandError as error:
            known.mute = "nrecognized option" in str(error) or "plugin" in str(error)
            host.miss("cores", "absent" if known.mute else "failed")
            return []
        if bad:
            host.miss("cores", "failed")
        for job in new:
            rows = [part(begun[job], grant) for grant in grants if grant.job == job]
            known.parts[job] = (begun[job].start, rows)
    return [one for _, rows in known.parts.values() for one in rows]


def part(whole: Slurmqueue, grant: Any) -> Slurmqueue:
    """What a job has on some nodes."""
    return Slurmqueue(
        job=whole.job,
        part="given",
        array_job=whole.array_job,
        array_tasks=whole.array_tasks,
        state=whole.state,
        owner=whole.owner,
        account=whole.account,
        partition=whole.partition,
        nodes=grant.nodes,
        cores=grant.cores,
        devices=grant.devices,
        submit=whole.submit,
        start=whole.start,
        cpus=grant.cpus,
        memory=grant.memory,
    )
