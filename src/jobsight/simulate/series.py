"""What people submit many of: arrays, swarms of small jobs, and the same run on more and more cores."""

from random import Random

from jobsight.simulate.draft import Draft, Law, Misfit
from jobsight.simulate.healthy import BUSY, HOUR, lasting, parallel
from jobsight.simulate.program import choose
from jobsight.simulate.site import GIB, THIN, User
from jobsight.simulate.work import Phase

CORES = (1, 2, 4, 8, 16, 32, 64)
NOISE = 0.015
# Below this part of its cores a job of four or more that takes so long is one that leaves cores idle.
IDLE, MATTERS = 0.5, 2400.0


def array(chance: Random, user: User) -> list[Draft]:
    """Tasks of one array: alike, and each of its own length."""
    first = parallel(chance, choose(chance, "serial", user.field), 1, chance.choice((1, 1, 2)))
    found = []
    for _ in range(chance.randrange(10, 40)):
        factor = chance.uniform(0.95, 1.15)
        phases = tuple(phase._replace(seconds=float(round(phase.seconds * factor))) for phase in first.phases)
        found.append(first._replace(kind="array", phases=phases))
    return found


def vampire(chance: Random, user: User) -> list[Draft]:
    """Hundreds of jobs of a few minutes: none matters, together they do."""
    program = choose(chance, "serial", user.field)
    first = parallel(chance, program, 1, 1)._replace(name="tiny", memory=4 * GIB, limit=HOUR)
    return [
        first._replace(
            kind="vampire",
            phases=(Phase("compute", float(chance.randrange(100, 420)), 0.94, (0.4 * GIB, 2.2 * GIB)),),
            planted=(Misfit.VAMPIRE,),
        )
        for _ in range(chance.randrange(150, 300))
    ]


def whale(chance: Random, user: User) -> list[Draft]:
    """Many large jobs of one user: more than the cluster is for."""
    program = choose(chance, "ranks", user.field)
    drafts = [lasting(parallel(chance, program, 4, THIN.cores), 4 * HOUR) for _ in range(chance.randrange(8, 12))]
    return [draft._replace(kind="whale", planted=(Misfit.WHALE,)) for draft in drafts]


def scaling(chance: Random, user: User, number: int) -> list[Draft]:
    """One problem on 1, 2, 4 … 64 cores, by a law that is known."""
    kind = chance.choice(("amdahl", "usl"))
    way = "threads" if kind == "amdahl" else "ranks"
    program = choose(chance, way, user.field)
    law = Law(
        series=f"scale-{number}",
        kind=kind,
        one=float(chance.randrange(4, 11) * 3600),
        serial=chance.choice((0.005, 0.01, 0.03, 0.08, 0.15)),
        talk=0.0 if kind == "amdahl" else chance.choice((0.00005, 0.0002, 0.0008)),
        noise=NOISE,
    )
    made = parallel(chance, program, 1, 1)
    return [run(chance, made, law, cores) for cores in CORES for _ in range(2)]


def run(chance: Random, made: Draft, law: Law, cores: int) -> Draft:
    """One run of a series. By Amdahl's law cores that wait are idle; ranks that talk to each other spin."""
    factor = 1 + chance.gauss(0.0, law.noise)
    seconds = float(round(law.seconds(cores) * factor))
    memory = 24 * GIB
    held = (0.6 * memory, 0.6 * memory)
    if law.kind == "amdahl":
        alone = min(seconds - 1, max(1.0, float(round(law.one * law.serial * factor))))
        parts: tuple[Phase, ...] = (
            Phase("serial", alone, 1.0, held),
            Phase("compute", seconds - alone, float(cores), held),
        )
    else:
        parts = (Phase("compute", seconds, float(cores), held),)
    used = BUSY[1] * sum(phase.cores * phase.seconds for phase in parts) / (cores * seconds)
    return made._replace(
        kind="scaling",
        name=law.series,
        cores=cores,
        memory=memory,
        phases=tuple(phase._replace(cores=phase.cores * BUSY[1]) for phase in parts),
        limit=-(-seconds * 1.5 // HOUR) * HOUR,
        ranks=1 if made.program.way == "threads" else cores,
        threads=cores if made.program.way == "threads" else 1,
        law=law,
        planted=(Misfit.IDLE_CORES,) if used < IDLE and cores >= 4 and seconds >= MATTERS else (),
    )
