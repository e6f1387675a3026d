"""What the exporter itself takes, by the names that all of Prometheus' programs have."""

import os
import sys
from collections.abc import Iterator

from jobsight import __version__
from jobsight.host import Host
from jobsight.schema.exposition import PREFIX, Family, mark, number

# /proc/self/stat after the name, from its first field on: utime, stime, start and vsize.
UTIME, STIME, STARTED, VIRTUAL = 11, 12, 19, 20


def build() -> Family:
    name = f"{PREFIX}_exporter_build_info"
    pairs = (("version", __version__), ("python", ".".join(map(str, sys.version_info[:3]))))
    return Family(name, "gauge", "Which release this is. The value is always 1.", [f"{name}{mark(pairs)} 1"])


def itself(host: Host, now: float) -> Iterator[Family]:
    """`host` is the machine that the exporter runs on, whatever it shows; `now` is the time of day."""
    fields = host.read("proc/self/stat").rpartition(")")[2].split()
    resident = host.read("proc/self/statm").split()[1]
    ticks = os.sysconf("SC_CLK_TCK")
    started = now - host.uptime() + int(fields[STARTED]) / ticks
    for short, kind, about, value in (
        ("cpu_seconds_total", "counter", "CPU time.", (int(fields[UTIME]) + int(fields[STIME])) / ticks),
        ("resident_memory_bytes", "gauge", "Resident memory.", int(resident) * host.page()),
        ("virtual_memory_bytes", "gauge", "Virtual memory.", int(fields[VIRTUAL])),
        ("open_fds", "gauge", "Files and sockets that are open.", len(host.names("proc/self/fd"))),
        ("start_time_seconds", "gauge", "When it began, since 1970.", started),
    ):
        name = f"process_{short}"
        yield Family(name, kind, f"{about} Of the exporter itself.", [f"{name} {number(value)}"])
