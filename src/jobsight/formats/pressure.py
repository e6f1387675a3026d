"""Pressure stall files, of the node and of control groups, see the kernel's psi.rst:

    some avg10=0.00 avg60=0.00 avg300=0.00 total=123
    full avg10=0.00 avg60=0.00 avg300=0.00 total=45

Totals are microseconds; the averages are ours to make, over any interval.
"""

import re

from jobsight.schema.units import Seconds

TOTAL = re.compile(r"^(some|full) .*\btotal=(\d{1,18})$", re.MULTILINE | re.ASCII)


def totals(text: str) -> dict[str, Seconds]:
    """Seconds by kind. The CPU's file had no `full` line before Linux 5.13."""
    return {kind: Seconds(int(number) / 1_000_000) for kind, number in TOTAL.findall(text)}
