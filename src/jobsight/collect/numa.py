"""Memory of each NUMA node, and how often it was used from afar.

Source: /sys/devices/system/node/node*/{meminfo,numastat,cpulist,distance}, see the kernel's numastat.rst.
"""

import re
from collections.abc import Iterator

from jobsight.collector import ParseError, collector
from jobsight.formats import cpulist, keyvalue
from jobsight.host import Host
from jobsight.schema.record import counter, gauge, label, record
from jobsight.schema.units import Bytes, Count

ROOT = "sys/devices/system/node"


@record
class Numa:
    """One NUMA node of the machine."""

    numa: int = label("The kernel's number for the NUMA node.")
    cpus: Count = gauge("Logical CPUs that are near to it.")
    distances: str = label("Relative cost of reaching each NUMA node from here, in order; 10 is at home.")
    total: Bytes = gauge("Memory it has.")
    free: Bytes = gauge("Memory nothing uses.")
    anon: Bytes | None = gauge("Memory of programs' own.", default=None)
    file: Bytes | None = gauge("Page cache.", default=None)
    hits: Count | None = counter("Pages that came from here as wanted.", default=None)
    misses: Count | None = counter("Pages that came from here though another was wanted.", default=None)
    remote: Count | None = counter("Pages from here given to a process that ran elsewhere.", default=None)


@collector(f"{ROOT}/node0")
def numa(host: Host) -> Iterator[Numa]:
    numbers = (found[1] for name in host.names(ROOT) if (found := re.fullmatch(r"node(\d+)", name, re.ASCII)))
    for number in sorted(map(int, numbers)):
        place = f"{ROOT}/node{number}"
        yield row(
            number,
            host.read(f"{place}/meminfo"),
            host.glimpse(f"{place}/numastat") or "",
            host.glimpse(f"{place}/cpulist") or "",
            host.glimpse(f"{place}/distance") or "",
        )


def row(number: int, meminfo: str, numastat: str, cpus: str, distance: str) -> Numa:
    """Lines of meminfo are `Node 0 MemTotal:  16311288 kB`."""
    sizes = keyvalue.numbers(re.sub(r"^Node \d+ ", "", meminfo, flags=re.MULTILINE | re.ASCII))
    counts = keyvalue.numbers(numastat)
    if not {"MemTotal", "MemFree"} <= sizes.keys():
        raise ParseError(f"node{number}/meminfo lacks MemTotal or MemFree")
    return Numa(
        numa=number,
        cpus=Count(len(cpulist.cpus(cpus))),
        distances=" ".join(distance.split()),
        total=Bytes(sizes["MemTotal"]),
        free=Bytes(sizes["MemFree"]),
        anon=Bytes(sizes["AnonPages"]) if "AnonPages" in sizes else None,
        file=Bytes(sizes["FilePages"]) if "FilePages" in sizes else None,
        hits=Count(counts["numa_hit"]) if "numa_hit" in counts else None,
        misses=Count(counts["numa_miss"]) if "numa_miss" in counts else None,
        remote=Count(counts["other_node"]) if "other_node" in counts else None,
    )
