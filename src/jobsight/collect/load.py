"""Load averages and the run queue of the node.

Source: /proc/loadavg, see proc_loadavg(5): `0.20 0.18 0.12 1/80 11206`.
"""

import re
from collections.abc import Iterator

from jobsight.collector import ParseError, collector
from jobsight.host import Host
from jobsight.schema.record import gauge, record
from jobsight.schema.units import Count, Ratio

LINE = re.compile(r"(\d+\.\d+) (\d+\.\d+) (\d+\.\d+) (\d{1,15})/(\d{1,15}) \d+\s*", re.ASCII)


@record
class Load:
    """How many threads wanted to run."""

    load1: Ratio = gauge("Threads running or waiting, averaged over one minute.")
    load5: Ratio = gauge("The same over five minutes.")
    load15: Ratio = gauge("The same over fifteen minutes.")
    runnable: Count = gauge("Threads that run or could run at this instant.")
    existing: Count = gauge("Threads that exist.")


@collector("proc/loadavg")
def load(host: Host) -> Iterator[Load]:
    yield parse(host.read("proc/loadavg"))


def parse(text: str) -> Load:
    """Load from the one line of the file."""
    found = LINE.fullmatch(text)
    if not found:
        raise ParseError(f"/proc/loadavg: expected three averages and a queue, got {text[:80]!r}")
    one, five, fifteen, runnable, existing = found.groups()
    return Load(
        load1=Ratio(float(one)),
        load5=Ratio(float(five)),
        load15=Ratio(float(fifteen)),
        runnable=Count(int(runnable)),
        existing=Count(int(existing)),
    )
