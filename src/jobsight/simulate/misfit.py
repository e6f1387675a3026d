"""Jobs with which one thing is wrong, each planted on purpose and said in the truth."""

from collections.abc import Callable
from random import Random

from jobsight.simulate import healthy
from jobsight.simulate.draft import Draft, Ending, Misfit
from jobsight.simulate.healthy import HOUR, MB, lasting, parallel
from jobsight.simulate.program import choose
from jobsight.simulate.site import FAT, GIB, GPU, THIN, User
from jobsight.simulate.work import Phase, length

Maker = Callable[[Random, User], Draft]


def idle_gpu(chance: Random, user: User) -> Draft:
    """Holds cards and does not compute on them."""
    made = _long(healthy.cards(chance, user))
    phases = tuple(phase._replace(gpu=0.0, gpu_memory=0.01) for phase in made.phases)
    return made._replace(phases=phases, planted=(Misfit.IDLE_GPU,))


def without_gpu(chance: Random, user: User) -> Draft:
    """Takes the cores of a GPU node, and none of its cards."""
    made = _long(parallel(chance, choose(chance, "threads", user.field), 1, 32))
    return made._replace(partition=GPU.partition, planted=(Misfit.GPU_NODE_WITHOUT_GPU,))


def mouse(chance: Random, user: User) -> Draft:
    """Busy enough, but so small that a scarce card is wasted on it."""
    made = _long(healthy.cards(chance, user))
    made = made._replace(gpus=1, ranks=1, threads=made.cores)
    phases = tuple(phase._replace(gpu=min(phase.gpu, 0.3), gpu_memory=0.06) for phase in made.phases)
    return made._replace(phases=phases, planted=(Misfit.MOUSE,))


def idle_cores(chance: Random, user: User) -> Draft:
    """A program that knows one core, given many."""
    made = _long(parallel(chance, choose(chance, "threads", user.field), 1, chance.choice((16, 32, 64))))
    phases = tuple(phase._replace(cores=min(phase.cores, 1.0)) for phase in made.phases)
    return made._replace(phases=phases, threads=2, planted=(Misfit.IDLE_CORES,))


def greedy(chance: Random, user: User) -> Draft:
    """The whole node, for a tenth of it."""
    made = _long(parallel(chance, choose(chance, "threads", user.field), 1, 8))
    phases = tuple(
        p._replace(cores=0.5 * p.cores, memory=(0.4 * p.memory[0], 0.4 * p.memory[1])) for p in made.phases
    )
    planted = (Misfit.GREEDY, Misfit.IDLE_CORES, Misfit.SPARE_MEMORY)
    return made._replace(cores=THIN.cores, memory=int(0.95 * THIN.memory), phases=phases, planted=planted)


def spare_memory(chance: Random, user: User) -> Draft:
    """Asks for ten times the memory it ever has."""
    made = _long(parallel(chance, choose(chance, "threads", user.field), 1, 8))
    memory = 160 * GIB
    factor = 0.09 * memory / max(max(phase.memory) for phase in made.phases)
    phases = tuple(p._replace(memory=(p.memory[0] * factor, p.memory[1] * factor)) for p in made.phases)
    return made._replace(memory=memory, phases=phases, planted=(Misfit.SPARE_MEMORY,))


def memory_edge(chance: Random, user: User) -> Draft:
    """Comes within a few hundredths of its limit."""
    made = _long(parallel(chance, choose(chance, "threads", user.field), 1, 8))
    factor = chance.uniform(0.96, 0.99) * made.memory / max(max(phase.memory) for phase in made.phases)
    phases = tuple(p._replace(memory=(p.memory[0] * factor, p.memory[1] * factor)) for p in made.phases)
    return made._replace(phases=phases, planted=(Misfit.MEMORY_EDGE,))


def oversubscribed(chance: Random, user: User) -> Draft:
    """Four times as many threads as it has cores."""
    made = _long(parallel(chance, choose(chance, "threads", user.field), 1, 8))
    return made._replace(threads=32, waits=0.9, planted=(Misfit.OVERSUBSCRIBED,))


def hung(chance: Random, user: User) -> Draft:
    """Works for a while, then waits for something that never comes, until its time is over."""
    made = parallel(chance, choose(chance, "ranks", user.field), 1, 32)
    memory = made.phases[-1].memory[1]
    worked = float(round(chance.uniform(0.5, 1.5) * HOUR))
    phases = (
        Phase("load", 120.0, 1.0, (0.1 * memory, memory), read=100 * MB),
        Phase("compute", worked, 30.2, (memory, memory)),
        Phase("hung", 6 * HOUR, 0.0, (memory, memory)),
    )
    limit = worked + chance.randrange(2, 5) * HOUR
    return made._replace(kind="hung", phases=phases, limit=limit, planted=(Misfit.HUNG,))


def short_limit(chance: Random, user: User) -> Draft:
    """Would have needed more time than it asked for."""
    made = _long(parallel(chance, choose(chance, "ranks", user.field), 1, 32))
    limit = max(HOUR, length(made.phases) * chance.uniform(0.6, 0.9) // HOUR * HOUR)
    return made._replace(limit=limit, planted=(Misfit.SHORT_LIMIT,))


def long_limit(chance: Random, user: User) -> Draft:
    """Asks for days and is done in an hour or two."""
    made = parallel(chance, choose(chance, "threads", user.field), 1, 8)
    program = made.program
    phases = healthy.life(chance, program, float(chance.randrange(3600, 7200)), 7.5, made.phases[-1].memory[1])
    return made._replace(limit=72 * HOUR, phases=phases, planted=(Misfit.LONG_LIMIT,))


def imbalance(chance: Random, user: User) -> Draft:
    """Four nodes, of which one works."""
    made = _long(parallel(chance, choose(chance, "ranks", user.field), 4, THIN.cores))
    planted = (Misfit.IMBALANCE, Misfit.IDLE_CORES)
    return made._replace(shares=(1.0, 0.02, 0.02, 0.02), planted=planted)


def zombie(chance: Random, user: User) -> Draft:
    """Never waits for its children."""
    made = _long(parallel(chance, choose(chance, "threads", user.field), 1, 8))
    return made._replace(zombies=chance.randrange(4, 12), planted=(Misfit.ZOMBIE,))


def stray(chance: Random, user: User) -> Draft:
    """Leaves a process behind that goes on for hours."""
    made = parallel(chance, choose(chance, "threads", user.field), 1, 8)
    return made._replace(stray=float(chance.randrange(2, 8)) * HOUR, planted=(Misfit.STRAY,))


def hammering(chance: Random, user: User) -> Draft:
    """Writes and reads all the time, in small pieces."""
    made = _long(parallel(chance, choose(chance, "threads", user.field), 1, 8))
    phases = tuple(phase._replace(read=180 * MB, written=420 * MB) for phase in made.phases)
    return made._replace(kind="hammering", phases=phases, planted=(Misfit.HAMMERING,))


def wrong_machine(chance: Random, user: User) -> Draft:
    """A small job on one of the few nodes with much memory."""
    made = _long(parallel(chance, choose(chance, "threads", user.field), 1, 8))
    return made._replace(partition=FAT.partition, planted=(Misfit.WRONG_MACHINE,))


def hyperthreads(chance: Random, user: User) -> Draft:
    """A whole node, and threads that share cores while a quarter of them has nothing to do."""
    made = _long(parallel(chance, choose(chance, "threads", user.field), 1, FAT.cores * 3 // 4))
    return made._replace(partition=FAT.partition, cores=FAT.cores, doubled=True, planted=(Misfit.HYPERTHREADS,))


def fragmentation(chance: Random, user: User) -> Draft:
    """A few cores on each of several nodes, where one node would do."""
    made = _long(parallel(chance, choose(chance, "ranks", user.field), 4, 8))
    return made._replace(planted=(Misfit.FRAGMENTATION,))


MISFITS: tuple[Maker, ...] = (
    idle_gpu, without_gpu, mouse, idle_cores, greedy, spare_memory, memory_edge, oversubscribed, hung, short_limit,
    long_limit, imbalance, zombie, stray, hammering, wrong_machine, hyperthreads, fragmentation,
)  # fmt: skip


def oom(chance: Random, user: User) -> Draft:
    """Grows until the kernel kills it; its script notices a minute later."""
    made = parallel(chance, choose(chance, "threads", user.field), 1, 8)
    top = float(made.memory)
    grown = float(chance.randrange(1800, 7200))
    phases = (
        Phase("load", 120.0, 1.0, (0.1 * top, 0.2 * top), read=50 * MB),
        Phase("compute", grown, 7.5, (0.2 * top, top)),
        Phase("wait", 150.0, 0.01, (0.01 * top, 0.01 * top)),
    )
    return made._replace(kind="oom", phases=phases, limit=8 * HOUR, ending=Ending("OUT_OF_MEMORY", 0, 125, 1))


def exits(chance: Random, user: User) -> Draft:
    """Ends with an error soon after its start, or late."""
    made = parallel(chance, choose(chance, "ranks", user.field), 1, 16)
    # Before its time limit.
    seconds = min(made.phases[1].seconds, float(chance.randrange(20, 3000)))
    phases = (*made.phases[:1], made.phases[1]._replace(seconds=seconds))
    return made._replace(kind="exit", phases=phases, ending=Ending("FAILED", chance.choice((1, 1, 2, 127))))


def crashes(chance: Random, user: User) -> Draft:
    """Is killed by a signal of its own making."""
    made = exits(chance, user)
    return made._replace(kind="signal", ending=Ending("FAILED", 0, chance.choice((6, 11, 11))))


def cancelled(chance: Random, user: User) -> Draft:
    """Its user thinks better of it."""
    made = parallel(chance, choose(chance, "ranks", user.field), 1, 32)
    seconds = min(made.phases[1].seconds, float(chance.randrange(300, 5000)))
    phases = (*made.phases[:1], made.phases[1]._replace(seconds=seconds))
    return made._replace(kind="cancelled", phases=phases, ending=Ending("CANCELLED", 0, 15))


FAILURES: tuple[Maker, ...] = (oom, exits, exits, crashes, cancelled)


def _long(made: Draft) -> Draft:
    """Long enough that it matters: a misfit of a few minutes is none."""
    return lasting(made, 2.5 * HOUR)
