"""A node's power as its management controller tells it: what two programs print of DCMI's power reading.

FreeIPMI's `ipmi-dcmi --get-system-power-statistics`:

    Current Power                        : 217 Watts
    Minimum Power over sampling duration : 180 watts
    Statistics reporting time period     : 1000 milliseconds
    Power Measurement                    : Active

and `ipmitool dcmi power reading`, which prints the time of day and the period in one line:

    Instantaneous power reading:                   217 Watts
    IPMI timestamp:      11/15/26 07:11:56 UTC    Sampling period:        00000001 Seconds.
    Power reading state is:                   activated
"""

import re
from typing import NamedTuple

from jobsight.collector import ParseError

# DCMI has 16 bits for watts; all of them set means that nobody knows, and no running node takes nothing.
NOBODY_KNOWS = 0xFFFF
MILLI = 1e-3


class Dcmi(NamedTuple):
    """One reading, in watts and seconds. None is what the controller does not know."""

    program: str
    active: bool
    current: float | None = None
    least: float | None = None
    most: float | None = None
    mean: float | None = None
    period: float | None = None


class Dialect(NamedTuple):
    """How one program writes it."""

    program: str
    watts: tuple[str, str, str, str]
    """Before the current, the least, the largest and the mean value."""
    period: str
    scale: float
    state: str
    active: str


DIALECTS = (
    Dialect(
        "ipmi-dcmi",
        (
            "Current Power",
            "Minimum Power over sampling duration",
            "Maximum Power over sampling duration",
            "Average Power over sampling duration",
        ),
        r"Statistics reporting time period\s*:\s*(\d{1,12})\s+milliseconds",
        MILLI,
        "Power Measurement",
        "active",
    ),
    Dialect(
        "ipmitool",
        (
            "Instantaneous power reading",
            "Minimum during sampling period",
            "Maximum during sampling period",
            "Average power reading over sample period",
        ),
        r"Sampling period\s*:\s*(\d{1,12})\s+seconds",
        1.0,
        "Power reading state is",
        "activated",
    ),
)


def parse(text: str) -> Dcmi:
    """What either program printed. ParseError for anything else."""
    for dialect in DIALECTS:
        current = watts(text, dialect.watts[0])
        state = re.search(rf"^\s*{dialect.state}\s*:\s*(.+?)\s*$", text, re.MULTILINE)
        if current is None and state is None:
            continue
        if state is None:
            raise ParseError(f"{dialect.program}: expected a line `{dialect.state}`, got {text.strip()[:200]!r}")
        if state[1].lower() != dialect.active:
            return Dcmi(dialect.program, active=False)
        if current is None:
            raise ParseError(
                f"{dialect.program}: expected `{dialect.watts[0]} : N Watts`, got {text.strip()[:200]!r}"
            )
        period = re.search(dialect.period, text, re.IGNORECASE | re.ASCII)
        _, least, most, mean = (known(watts(text, words)) for words in dialect.watts)
        return Dcmi(
            program=dialect.program,
            active=True,
            current=known(current),
            least=least,
            most=most,
            mean=mean,
            period=int(period[1]) * dialect.scale if period else None,
        )
    raise ParseError(f"expected what ipmi-dcmi or `ipmitool dcmi power reading` prints, got {text.strip()[:200]!r}")


def watts(text: str, words: str) -> int | None:
    found = re.search(rf"^\s*{words}\s*:\s*(\d{{1,9}})\s+[Ww]atts\s*$", text, re.MULTILINE | re.ASCII)
    return int(found[1]) if found else None


def known(value: int | None) -> float | None:
    """A value that can be."""
    return float(value) if value is not None and 0 < value < NOBODY_KNOWS else None
