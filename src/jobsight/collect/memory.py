"""Physical memory of the node.

Source: /proc/meminfo, see proc_meminfo(5). The kernel prints kB and means KiB.
"""

from collections.abc import Iterator

from jobsight.collector import ParseError, collector
from jobsight.formats import keyvalue
from jobsight.host import Host
from jobsight.schema.record import gauge, record
from jobsight.schema.units import Bytes


@record
class Memory:
    """Physical memory of one node at one instant."""

    total: Bytes = gauge("Memory the kernel can use.")
    available: Bytes = gauge("Memory a new program could get without swapping.")
    free: Bytes = gauge("Memory nothing uses, not even as cache.")
    cached: Bytes | None = gauge("Page cache, shared memory included.", default=None)
    shared: Bytes | None = gauge("Shared memory and tmpfs.", default=None)
    dirty: Bytes | None = gauge("Pages waiting to be written back.", default=None)
    swap_total: Bytes | None = gauge("Swap space.", default=None)
    swap_free: Bytes | None = gauge("Swap space nothing uses.", default=None)


@collector("proc/meminfo")
def memory(host: Host) -> Iterator[Memory]:
    yield parse(host.read("proc/meminfo"))


def parse(text: str) -> Memory:
    """Memory from lines such as `MemTotal:  16311288 kB`."""
    sizes = {name: Bytes(number) for name, number in keyvalue.numbers(text).items()}
    missing = {"MemTotal", "MemAvailable", "MemFree"} - sizes.keys()
    if missing:
        raise ParseError(f"/proc/meminfo lacks {sorted(missing)}")
    return Memory(
        total=sizes["MemTotal"],
        available=sizes["MemAvailable"],
        free=sizes["MemFree"],
        cached=sizes.get("Cached"),
        shared=sizes.get("Shmem"),
        dirty=sizes.get("Dirty"),
        swap_total=sizes.get("SwapTotal"),
        swap_free=sizes.get("SwapFree"),
    )
