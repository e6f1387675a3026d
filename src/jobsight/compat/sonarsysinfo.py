"""What stands in a Sonar `sysinfo`: what the node is made of."""

from collections.abc import Mapping, Sequence
from typing import Any

from jobsight.compat.text import clean

KIB = 1024

Rows = Mapping[str, Sequence[Any]]


def attributes(hardware: Rows) -> dict[str, Any]:
    """From the one row of `hardware`; the latest columns may be lacking."""
    row = {name: values[0] for name, values in hardware.items()}
    sockets, cores, threads = shape(row["cpus"], row["cores"], row["sockets"], row.get("threads"))
    matrix = distances(row.get("distances") or "")
    return {
        "os_name": "Linux",
        "os_release": clean(row["kernel"]),
        "architecture": clean(row.get("architecture") or ""),
        "numa_nodes": len(matrix),
        "sockets": sockets,
        "cores_per_socket": cores,
        "threads_per_core": threads,
        "cpu_model": clean(row["model"]),
        "memory": row["memory"] // KIB,
        "distances": matrix,
    }


def shape(cpus: int, cores: int | None, sockets: int | None, threads: int | None) -> tuple[int, int, int]:
    """Sockets, cores in each and threads of each: never 0, and never fewer CPUs than there are.

    Where the kernel does not tell, every logical CPU is a core, and all are on one socket.
    """
    cores = cores or max(1, cpus)
    sockets = sockets or 1
    return sockets, -(-cores // sockets), threads or max(1, -(-cpus // cores))


def distances(text: str) -> list[list[int]]:
    """The square of distances from `10 21;21 10`; empty if it is not known or not square."""
    lines = [[int(word) for word in line.split() if word.isdecimal()] for line in text.split(";") if line]
    return lines if all(len(line) == len(lines) for line in lines) else []
