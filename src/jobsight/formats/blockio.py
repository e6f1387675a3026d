"""What control groups say of block devices, summed over devices."""

from typing import NamedTuple

from jobsight.formats import keyvalue
from jobsight.schema.units import Bytes, Count


class Traffic(NamedTuple):
    """Bytes and operations; None where the file does not tell."""

    read: Bytes | None = None
    written: Bytes | None = None
    reads: Count | None = None
    writes: Count | None = None


def io_stat(text: str | None) -> Traffic:
    """v2: lines such as `8:0 rbytes=90 wbytes=8 rios=1 wios=2 …`. A file with no line is a group that did nothing."""
    if text is None:
        return Traffic()
    sums = {"rbytes": 0, "wbytes": 0, "rios": 0, "wios": 0}
    for word in text.split():
        key, _, value = word.partition("=")
        if key in sums and keyvalue.whole(value):
            sums[key] += int(value)
    return Traffic(Bytes(sums["rbytes"]), Bytes(sums["wbytes"]), Count(sums["rios"]), Count(sums["wios"]))


def throttle(text: str | None, kind: str) -> int | None:
    """v1: the sum of lines such as `8:0 Read 4096` of one kind. With no such line nothing is known: the file may be
    of a controller that does not count.
    """
    lines = [line.split() for line in (text or "").splitlines()]
    found = [int(line[2]) for line in lines if len(line) == 3 and line[1] == kind and keyvalue.whole(line[2])]
    return sum(found) if found else None
