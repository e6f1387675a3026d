"""What somebody submits: what is asked for, and what it will do if it is let."""

from enum import StrEnum
from typing import NamedTuple

from jobsight.simulate.program import Program
from jobsight.simulate.work import Phase


class Misfit(StrEnum):
    """What can be wrong with a job or its user, and is planted on purpose."""

    IDLE_GPU = "idle_gpu"
    GPU_NODE_WITHOUT_GPU = "gpu_node_without_gpu"
    IDLE_CORES = "idle_cores"
    SPARE_MEMORY = "spare_memory"
    MEMORY_EDGE = "memory_edge"
    OVERSUBSCRIBED = "oversubscribed"
    HUNG = "hung"
    SHORT_LIMIT = "short_limit"
    LONG_LIMIT = "long_limit"
    VAMPIRE = "vampire"
    HOG = "hog"
    WHALE = "whale"
    MOUSE = "mouse"
    GREEDY = "greedy"
    STRAY = "stray"
    ZOMBIE = "zombie"
    IMBALANCE = "imbalance"
    HAMMERING = "hammering"
    WRONG_MACHINE = "wrong_machine"
    HYPERTHREADS = "hyperthreads"
    FRAGMENTATION = "fragmentation"
    RESPONSE = "response"


class Ending(NamedTuple):
    """How a job ends if nothing from outside ends it before."""

    state: str = "COMPLETED"
    code: int = 0
    signal: int = 0
    oom_kills: int = 0


class Law(NamedTuple):
    """How the time of a series of runs depends on their cores n: one * (1 + serial (n - 1) + talk n (n - 1)) / n,
    times 1 plus normal noise. Amdahl's law is the one with no `talk`.
    """

    series: str
    kind: str
    """`amdahl` or `usl`."""
    one: float
    """Seconds on one core."""
    serial: float
    talk: float
    noise: float

    def seconds(self, cores: int) -> float:
        return self.one * (1 + self.serial * (cores - 1) + self.talk * cores * (cores - 1)) / cores


class Draft(NamedTuple):
    """A job script. Amounts are those of each of its nodes."""

    kind: str
    name: str
    program: Program
    partition: str
    nodes: int
    cores: int
    memory: int
    gpus: int
    limit: float
    phases: tuple[Phase, ...]
    ranks: int
    """Processes."""
    threads: int
    """Of each of them."""
    ending: Ending = Ending()
    shares: tuple[float, ...] = ()
    """Each node's part of the work, 1 where nothing is said."""
    planted: tuple[Misfit, ...] = ()
    law: Law | None = None
    zombies: int = 0
    stray: float = 0.0
    """Seconds for which a process of it goes on after its end."""
    waits: float = 0.0
    """Part of the time in which some of its threads wait for a CPU."""
    requeue: bool = False
    """Whether it is started anew when a node fails."""
    doubled: bool = False
    """Whether two of its threads share each core that it uses, while others of its cores are free."""
