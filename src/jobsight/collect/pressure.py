"""Time that work waited for want of CPU, memory or I/O on the node.

Source: /proc/pressure/{cpu,memory,io}, see the kernel's psi.rst: `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`.
Totals are microseconds; the averages are ours to make, over any interval.
"""

import re
from collections.abc import Iterator

from jobsight.collector import ParseError, collector
from jobsight.host import Host
from jobsight.schema.record import counter, label, record
from jobsight.schema.units import Seconds

TOTAL = re.compile(r"^(some|full) .*\btotal=(\d{1,18})$", re.MULTILINE | re.ASCII)


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
    """Both totals of one file; the CPU's had no `full` line before Linux 5.13."""
    totals = {kind: Seconds(int(number) / 1_000_000) for kind, number in TOTAL.findall(text)}
    if "some" not in totals:
        raise ParseError(f"/proc/pressure/{resource}: expected a line `some … total=N`, got {text[:80]!r}")
    return Pressure(resource=resource, some_time=totals["some"], full_time=totals.get("full"))
