"""Jobs with which nothing is wrong: what they ask for is what they use, with some room.

Four fifths of the cores or more, between half and four fifths of the memory, a third of the time limit or more, and
cards that are busy.
"""

from collections.abc import Callable
from random import Random

from jobsight.simulate.draft import Draft
from jobsight.simulate.program import Program, choose
from jobsight.simulate.site import FAT, GIB, GPU, THIN, User
from jobsight.simulate.work import Phase, length

MINUTE, HOUR = 60.0, 3600.0
MB = 1e6
# Of its cores, while it computes: with its wobble no job ever uses more than it has, and the system
# finds a little.
BUSY = (0.91, 0.945)
# What a job's script can be called.
NAMES = ("relax", "prod", "run", "test2", "opt", "sweep", "align", "analysis", "final", "train", "bench", "md", "sim")


def ranks(chance: Random, user: User) -> Draft:
    """A parallel program on one node or a few."""
    nodes = chance.choices((1, 2, 4, 8), (10, 5, 3, 1))[0]
    cores = THIN.cores if nodes > 1 else chance.choice((16, 32, 64))
    return parallel(chance, choose(chance, "ranks", user.field), nodes, cores)


def threads(chance: Random, user: User) -> Draft:
    """One process with many threads."""
    program = choose(chance, "threads", user.field)
    return parallel(chance, program, 1, chance.choice((4, 8, 16, 32)))


def serial(chance: Random, user: User) -> Draft:
    """One core for a while."""
    program = choose(chance, "serial", user.field)
    return parallel(chance, program, 1, 1)


def fat(chance: Random, user: User) -> Draft:
    """Needs much memory, and uses it."""
    made = parallel(chance, choose(chance, "threads", user.field), 1, chance.choice((32, 64)))
    memory = int(chance.choice((700, 1000, 1500)) * GIB)
    factor = memory / made.memory
    phases = tuple(p._replace(memory=(p.memory[0] * factor, p.memory[1] * factor)) for p in made.phases)
    return made._replace(kind="fat", partition=FAT.partition, memory=memory, phases=phases)


def cards(chance: Random, user: User) -> Draft:
    """Trains or refines on GPUs and keeps them busy."""
    program = choose(chance, "gpu", user.field)
    gpus = chance.choice((1, 1, 2, 4))
    cores = gpus * GPU.cores // GPU.gpus
    busy, held = chance.uniform(0.72, 0.96), chance.uniform(0.55, 0.9)
    made = parallel(chance, program, 1, cores)
    phases = tuple(
        phase._replace(gpu=busy if phase.kind == "compute" else 0.0, gpu_memory=held if phase.kind != "load" else 0.2)
        for phase in made.phases
    )
    return made._replace(
        kind="cards", partition=GPU.partition, gpus=gpus, phases=phases, ranks=gpus, threads=cores // gpus
    )


HEALTHY: tuple[tuple[Callable[[Random, User], Draft], float], ...] = (
    (ranks, 10.0), (threads, 9.0), (serial, 12.0), (fat, 1.0), (cards, 4.0),
)  # fmt: skip


def parallel(chance: Random, program: Program, nodes: int, cores: int) -> Draft:
    """A healthy run of a program on so many nodes and cores of each."""
    seconds = float(round(min(20 * HOUR, max(6 * MINUTE, chance.lognormvariate(8.9, 0.9)))))
    peak = program.memory * cores * GIB * chance.uniform(0.8, 1.2)
    memory = _rounded(peak / chance.uniform(0.55, 0.8))
    most = GPU.memory if program.way == "gpu" else THIN.memory
    if memory > 0.95 * most:
        memory, peak = int(0.95 * most), 0.7 * most
    phases = life(chance, program, seconds, cores * chance.uniform(*BUSY), peak)
    return Draft(
        kind=program.way,
        name=f"{chance.choice(NAMES)}-{chance.randrange(1, 40)}",
        program=program,
        partition=THIN.partition,
        nodes=nodes,
        cores=cores,
        memory=memory,
        gpus=0,
        limit=limit(chance, length(phases)),
        phases=phases,
        ranks=cores if program.way == "ranks" else 1,
        threads=1 if program.way == "ranks" else cores,
        waits=0.02,
    )


def life(chance: Random, program: Program, seconds: float, cores: float, peak: float) -> tuple[Phase, ...]:
    """Read the input, compute, write what was found now and then. Whole seconds."""
    first = float(round(min(0.04 * seconds, chance.uniform(60, 300))))
    speed = program.traffic * MB * chance.uniform(0.6, 1.2)
    phases = [Phase("load", first, min(cores, 1.0), (0.05 * peak, 0.9 * peak), read=speed)]
    blocks = chance.choice((2, 3, 4)) if seconds > 2 * HOUR else 1
    pause = float(round(min(0.015 * seconds, chance.uniform(120, 300))))
    each = float(round((seconds - first - blocks * pause) / blocks))
    for block in range(blocks):
        low, high = (0.9 + 0.1 * block / blocks) * peak, (0.9 + 0.1 * (block + 1) / blocks) * peak
        phases.append(Phase("compute", each, cores, (low, high), read=0.01 * speed, written=0.005 * speed))
        phases.append(Phase("checkpoint", pause, min(cores, 0.4), (high, high), written=speed))
    return tuple(phases)


def limit(chance: Random, seconds: float) -> float:
    """A time limit that is neither too short nor too long, in steps people ask for."""
    wanted = seconds * chance.uniform(1.25, 2.2)
    step = 5 * MINUTE if wanted < HOUR else 10 * MINUTE if wanted < 4 * HOUR else HOUR
    return max(step, -(-wanted // step) * step)


def lasting(made: Draft, seconds: float) -> Draft:
    """The same, so long at least, with a limit that fits."""
    factor = max(1.0, seconds / length(made.phases))
    phases = tuple(phase._replace(seconds=float(round(phase.seconds * factor))) for phase in made.phases)
    return made._replace(phases=phases, limit=-(-length(phases) * 1.4 // (10 * MINUTE)) * 10 * MINUTE)


def _rounded(memory: float) -> int:
    """In quarters of a GiB: nobody asks for bytes."""
    return max(1, -int(-4 * memory // GIB)) * GIB // 4
