"""The rows that one job on one node gives, as the kernel would count it.

A control group counts microseconds. A process counts ticks of a hundredth of a second, each process rounded down.
"""

from functools import lru_cache
from math import floor

from jobsight.collect.allocation import Allocation
from jobsight.collect.cgroup import Cgroup
from jobsight.collect.process import Process
from jobsight.formats import nodelist
from jobsight.schema.units import Bytes, Count, Seconds
from jobsight.simulate.plan import Tenant
from jobsight.simulate.work import Level

TICK = 100
# Of CPU time, what the kernel uses for programs.
SYSTEM = 0.03
SCRIPT = 3 * 2**20
SHARED = 20 * 2**20
# A job's script and its program begin so long after the job.
SCRIPT_DELAY, PROGRAM_DELAY = 0.01, 0.02
# Bytes of one operation on storage; of one who hammers it.
OPERATION, SMALL = 2**20, 4096


def cgroup(tenant: Tenant, time: float, level: Level) -> Cgroup:
    """The job's control group."""
    truth, draft = tenant.truth, tenant.truth.draft
    micro = floor(level.cpu * 1e6)
    kernel = floor(micro * SYSTEM)
    size = SMALL if draft.kind == "hammering" else OPERATION
    read, written = int(level.read), int(level.written)
    age = max(0.0, time - truth.start)
    return Cgroup(
        scheduler="slurm",
        job=truth.number,
        path=f"system.slice/slurmstepd.scope/job_{truth.number}",
        cpu_time=Seconds(micro / 1e6),
        cpu_user=Seconds((micro - kernel) / 1e6),
        cpu_system=Seconds(kernel / 1e6),
        cpus=Count(draft.cores),
        memory_used=Bytes(int(level.memory + level.cache)),
        memory_anon=Bytes(int(level.memory)),
        memory_file=Bytes(int(level.cache)),
        memory_peak=Bytes(int(level.peak)),
        memory_limit=Bytes(draft.memory),
        oom_kills=Count(truth.ending.oom_kills if level.kind == "wait" else 0),
        pressure_cpu=Seconds(round(draft.waits * age, 6)),
        read=Bytes(read),
        written=Bytes(written),
        reads=Count(read // size),
        writes=Count(written // size),
        processes=Count(draft.ranks * draft.threads + draft.zombies + tenant.first),
    )


def allocation(tenant: Tenant) -> Allocation:
    """What a prolog told of the job."""
    truth, draft = tenant.truth, tenant.truth.draft
    return Allocation(
        scheduler="slurm",
        job=truth.number,
        number=truth.number,
        owner=truth.user.name,
        account=truth.user.account,
        partition=draft.partition,
        name=draft.name,
        nodes=_listed(truth.nodes),
        devices=",".join(map(str, tenant.place.gpus)) or None,
        source="prolog",
        cpus=Count(draft.cores),
        restarts=Count(truth.restarts),
    )


@lru_cache(4096)
def _listed(nodes: tuple[str, ...]) -> str:
    """A job has the same nodes at every sample."""
    return nodelist.compress(nodes)


def processes(tenant: Tenant, booted: float, level: Level, *, rollup: bool) -> list[Process]:
    """Its processes: the script or the shell, the program's, and those nobody waits for."""
    draft = tenant.truth.draft
    children = level.cpu * draft.program.children
    rows = [_shell(tenant, booted)] if tenant.first and not tenant.truth.origin else []
    memory = int(level.memory) - (min(SCRIPT, int(level.memory)) if rows else 0)
    many = draft.ranks
    alike = 1 if rollup and tenant.truth.scheduler != "session" else many
    for number in range(alike):
        part = many if alike == 1 else 1
        rows.append(_rank(tenant, booted, level, number, part, (level.cpu - children) / many, memory))
    rows += [_zombie(tenant, booted, number) for number in range(draft.zombies if tenant.first else 0)]
    return rows


def _rank(tenant: Tenant, booted: float, level: Level, number: int, part: int, used: float, memory: int) -> Process:
    """One process of the program; or `part` of them that are alike, in one row."""
    truth, draft = tenant.truth, tenant.truth.draft
    many = draft.ranks
    ticks = floor(used * TICK)
    kernel = floor(ticks * SYSTEM)
    own = memory // many * part
    return Process(
        pid=tenant.pid + 1 + number,
        started=Seconds(_since(booted, truth.start + PROGRAM_DELAY)),
        parent=1 if truth.origin else tenant.pid,
        session=tenant.pid,
        process_group=tenant.pid + 1,
        scheduler=truth.scheduler,
        job=truth.number,
        owner=truth.user.name,
        command=draft.program.command,
        state="D" if level.kind == "checkpoint" else "R" if level.rate >= 0.5 else "S",
        threads=Count(draft.threads * part),
        cpu_user=Seconds((ticks - kernel) * part / TICK),
        cpu_system=Seconds(kernel * part / TICK),
        cpu_children=Seconds(floor(level.cpu * draft.program.children / many * TICK) * part / TICK),
        memory_anon=Bytes(own),
        memory_shared=Bytes(SHARED * part),
        memory_data=Bytes(own + own // 10),
        memory_virtual=Bytes(own + own // 10 + 2**30 * part),
        read=Bytes(int(level.read) // many * part),
        written=Bytes(int(level.written) // many * part),
        merged=Count(part - 1) if part > 1 else None,
    )


def _shell(tenant: Tenant, booted: float) -> Process:
    truth = tenant.truth
    batch = truth.scheduler == "slurm"
    return Process(
        pid=tenant.pid,
        started=Seconds(_since(booted, truth.start + SCRIPT_DELAY)),
        # The batch system's own, or sshd: root's, and not told of.
        parent=tenant.pid - 1,
        session=tenant.pid,
        process_group=tenant.pid,
        scheduler=truth.scheduler,
        job=truth.number,
        owner=truth.user.name,
        command="slurm_script" if batch else "bash",
        state="S",
        threads=Count(1),
        cpu_user=Seconds(0.0),
        cpu_system=Seconds(0.0),
        cpu_children=Seconds(0.0),
        memory_anon=Bytes(SCRIPT),
        memory_shared=Bytes(SCRIPT),
        memory_data=Bytes(SCRIPT),
        memory_virtual=Bytes(8 * SCRIPT),
        read=Bytes(0),
        written=Bytes(0),
    )


def _zombie(tenant: Tenant, booted: float, number: int) -> Process:
    truth = tenant.truth
    return Process(
        pid=tenant.pid + 1 + truth.draft.ranks + number,
        started=Seconds(_since(booted, truth.start + 1 + number)),
        parent=tenant.pid + 1,
        session=tenant.pid,
        process_group=tenant.pid,
        scheduler=truth.scheduler,
        job=truth.number,
        owner=truth.user.name,
        command="sh",
        state="Z",
        threads=Count(1),
        cpu_user=Seconds(0.0),
        cpu_system=Seconds(0.0),
        cpu_children=Seconds(0.0),
        memory_anon=Bytes(0),
        memory_shared=Bytes(0),
        memory_data=Bytes(0),
        memory_virtual=Bytes(0),
        read=Bytes(0),
        written=Bytes(0),
    )


def _since(booted: float, time: float) -> float:
    """Start after boot, in ticks."""
    return floor((time - booted) * TICK) / TICK
