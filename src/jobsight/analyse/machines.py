"""What nodes there are and what each has, by their own word and by their scheduler's."""

from jobsight.analyse.case import Machine, Place
from jobsight.collector import ParseError
from jobsight.formats import nodelist
from jobsight.store.protocol import Store

# How far back it is looked what a node is: it is told again within the hour (seconds).
LATELY = 86400.0

HARDWARE = """
SELECT cluster, node, arg_max(cpus, time), arg_max(memory, time), arg_max(cores, time), arg_max(threads, time)
FROM hardware WHERE time >= ? AND time <= ? GROUP BY cluster, node
"""
CARDS = """
SELECT cluster, node, count(DISTINCT uuid), max(memory_total) FROM gpucard
WHERE time >= ? AND time <= ? AND parent IS NULL AND uuid <> '' GROUP BY cluster, node
"""
LAST = "SELECT cluster, max(time) FROM slurmnode WHERE time >= ? AND time <= ? GROUP BY cluster"
GIVEN = "SELECT nodes, partitions, cpus, memory, gpus FROM slurmnode WHERE cluster = ? AND time = ?"


def machines(store: Store, since: float, until: float) -> dict[Place, Machine]:
    """The nodes of a time; a scheduler may know some that were never heard of."""
    between = (since - LATELY, until)
    found = {
        (cluster, node): Machine(cpus, memory, cores, threads)
        for cluster, node, cpus, memory, cores, threads in store.query(HARDWARE, between, between)
    }
    for cluster, node, count, memory in store.query(CARDS, between, between):
        found[cluster, node] = found.get((cluster, node), Machine())._replace(gpus=count, gpu_memory=memory)
    short = {(cluster, node.partition(".")[0]): (cluster, node) for cluster, node in found}
    for cluster, time in store.query(LAST, between, between):
        for names, partitions, cpus, memory, gpus in store.query(GIVEN, [cluster, time], (time, time)):
            for node in _expanded(names):
                # By its own word a node may have its domain with it.
                place = (cluster, node) if (cluster, node) in found else short.get((cluster, node), (cluster, node))
                known = found.get(place, Machine())
                found[place] = known._replace(
                    cpus=known.cpus or cpus,
                    memory=known.memory or memory,
                    gpus=known.gpus or gpus,
                    partitions=tuple(sorted({*known.partitions, *(partitions or "").split(",")} - {""})),
                    scheduled=True,
                )
    return found


def _expanded(names: str) -> list[str]:
    try:
        return nodelist.expand(names)
    except ParseError:
        return []
