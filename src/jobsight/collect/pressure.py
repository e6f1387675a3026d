"""Time that work waited for want of CPU, memory or I/O on the node.

Source: /proc/pressure/{cpu,memory,io}, see `jobsight.formats.pressure`.
"""

from collections.abc import Iterator

from jobsight.collector import ParseError, collector
from jobsight.formats.pressure import totals
from jobsight.host import Host
from jobsight.schema.record import counter, label, record
from jobsight.schema.units import Seconds


@record
class Pressure:
    """One resource since boot."""

    resource: str = label("cpu, memory or io.")
    some_time: Seconds = counter("Time in which at least one task waited for it.")
    full_time: Seconds | None = counter("Time in which every task that had work waited for it.", default=None)


@collector("proc/pressure/memory")
def pressure(host: Host) -> Iterator[Pressure]:
    for resource in ("cpu", "memory", "io"):
        yield parse(resource, host.read(f"proc/pressure/{resource}"))


def parse(resource: str, text: str) -> Pressure:
    """Both totals of one file."""
    found = totals(text)
    if "some" not in found:
        raise ParseError(f"/proc/pressure/{resource}: expected a line `some … total=N`, got {text[:80]!r}")
    return Pressure(resource=resource, some_time=found["some"], full_time=found.get("full"))
