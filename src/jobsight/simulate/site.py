"""The machines and the people of a simulated cluster."""

from random import Random
from typing import NamedTuple

from jobsight.simulate.program import FIELDS

GIB = 2**30


class Make(NamedTuple):
    """A kind of machine."""

    kind: str
    prefix: str
    partition: str
    """Empty where no batch system runs."""
    model: str
    sockets: int
    cores: int
    memory: int
    gpus: int = 0
    gpu_type: str = ""
    threads: int = 1
    """Of each core: `cores` are those a scheduler gives, each of them one."""


class Node(NamedTuple):
    """One machine."""

    name: str
    make: Make


class User(NamedTuple):
    """Somebody with an account, a field of work, and an appetite."""

    name: str
    uid: int
    account: str
    field: str
    appetite: float


class Site(NamedTuple):
    """A cluster as its administrator knows it."""

    cluster: str
    nodes: tuple[Node, ...]
    users: tuple[User, ...]

    def partition(self, name: str) -> list[Node]:
        return [node for node in self.nodes if node.make.partition == name]

    @property
    def controller(self) -> Node:
        """Where the batch system's own daemons run."""
        return next(node for node in self.nodes if node.make is CONTROLLER)


THIN = Make("cpu", "c", "normal", "AMD EPYC 7543 32-Core Processor", 2, 64, 251 * GIB)
FAT = Make("fat", "bigmem", "bigmem", "AMD EPYC 9354 32-Core Processor", 2, 128, 2015 * GIB, threads=2)
GPU = Make("gpu", "gpu", "accel", "Intel(R) Xeon(R) Gold 6342 CPU @ 2.80GHz", 2, 48, 503 * GIB, 4, "a100")
OPEN = Make("interactive", "int", "", "AMD EPYC 7702P 64-Core Processor", 1, 64, 503 * GIB)
CONTROLLER = Make("controller", "mgmt", "", "Intel(R) Xeon(R) Silver 4310 CPU @ 2.10GHz", 2, 24, 94 * GIB)

# Nodes in a rack: `c2-5` is the fifth of the second.
RACK = 24
# The largest appetite, where the smallest is 1.
MOST = 5.0
NAMES = (
    "alice", "bjorn", "carmen", "dmitri", "elin", "farid", "grace", "hiro", "ingrid", "jonas", "kavya", "lars",
    "mei", "nadia", "olav", "priya", "quentin", "rosa", "sven", "tomas", "uma", "viktor", "wanda", "xiang", "yusuf",
    "zoe", "astrid", "benoit", "chloe", "david", "emeka", "fatima", "goran", "hanna", "ivan", "julia", "knut", "linh",
    "marco", "nils",
)  # fmt: skip


def site(cluster: str, nodes: int, chance: Random) -> Site:
    """Some of each kind of machine, `nodes` in all with the controller, and people to use them."""
    gpu, fat, interactive = max(1, nodes // 8), max(1, nodes // 16), max(2, nodes // 20)
    thin = nodes - gpu - fat - interactive - 1
    if thin < 1:
        raise ValueError(f"expected at least 6 nodes, got {nodes}")
    machines = [Node(f"{THIN.prefix}{rack + 1}-{place + 1}", THIN) for rack, place in _places(thin)]
    for make, number in ((FAT, fat), (GPU, gpu), (OPEN, interactive)):
        machines += [Node(f"{make.prefix}-{count + 1}", make) for count in range(number)]
    machines.append(Node(CONTROLLER.prefix, CONTROLLER))
    return Site(cluster, tuple(machines), tuple(_users(max(12, nodes // 2), chance)))


def _places(number: int) -> list[tuple[int, int]]:
    return [divmod(count, RACK) for count in range(number)]


def _users(number: int, chance: Random) -> list[User]:
    """A few use most of it, as everywhere."""
    found = []
    for count in range(number):
        again, place = divmod(count, len(NAMES))
        field = FIELDS[count % len(FIELDS)]
        account = f"{field}{1 + count // len(FIELDS) % 2}"
        name = NAMES[place] + (str(again + 1) if again else "")
        # But for those who are planted nobody is too big for the place.
        found.append(User(name, 10001 + count, account, field, min(MOST, chance.paretovariate(1.3))))
    return found
