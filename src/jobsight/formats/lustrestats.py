"""Statistics of a Lustre target by job (`job_stats`), and of the whole target (`stats`, `md_stats`).

    job_stats:
    - job_id:          "11317854:17627127:r01c01"
      snapshot_time:   1700000120.123456789 secs.nsecs
      start_time:      1699999000.000000001 secs.nsecs
      write_bytes:     { samples: 10, unit: bytes, min: 4096, max: 1048576, sum: 5242880, hist: { 4K: 2, 1M: 8 } }
      getattr:         { samples:  3, unit: usecs, min: 12, max: 900, sum: 3100, sumsq: 1500000 }

It looks like YAML and is none. Servers from 2.12 to 2.17 differ in every part and vendors mix them, so each line is
read for what it is (`lustreentry`): whole or broken seconds, or time since boot; times at the margin, with blanks
before the colon; numbers that stick to their colon; operations in any order, of which anybody may add some.

A file is cut into entries first, and an entry is parsed where somebody needs it: most are as they were before.
"""

import re
from collections.abc import Iterable, Iterator

from jobsight.collector import ParseError
from jobsight.formats.lustreentry import HEADING, LARGEST, Operation

CUT = b"\n- job_id:"
AGAIN = b"\n" + HEADING
# No entry is so long: an operation takes some 150 bytes.
LONGEST = 2**20
_TOTAL = re.compile(r"(\w+)\s+(\d{1,20}) samples \[(\w+)\](?:\s+\d{1,20}\s+\d{1,20}\s+(\d{1,20})(?:\s+\d+)?)?\s*")


class Cutter:
    """Cuts what is read of one file into entries, each from behind its `- job_id:` to its end. `torn` says afterwards
    whether the last one was incomplete, and so left out.
    """

    def __init__(self) -> None:
        self.size = 0
        self.torn = 0

    def entries(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """All whole entries. ParseError for what is no such file."""
        # One may begin at once: the heading can be missing.
        rest, begun, usual = b"\n", False, 0
        for piece in pieces:
            self.size += len(piece)
            *whole, rest = (rest + piece).split(CUT)
            if whole and not begun:
                _check_head(whole.pop(0))
                begun = True
            for text in whole:
                # With two readers a heading may stand anywhere between entries.
                yield text.removesuffix(AGAIN)
            if whole:
                usual = whole[-1].removesuffix(AGAIN).count(b"\n")
            if len(rest) > LONGEST:
                raise ParseError(f"job_stats: expected an entry to end within {LONGEST} bytes, got {rest[:80]!r}")
        if not begun:
            _check_head(rest)
        elif (last := _whole(rest, usual)) is not None:
            yield last
        else:
            self.torn = 1


def _check_head(text: bytes) -> None:
    """Before the first entry stands the heading, or nothing."""
    lines = [line for line in text.split(b"\n") if line.strip() and line.strip() != HEADING]
    if lines:
        raise ParseError(f"job_stats: expected {HEADING.decode()!r}, got {lines[0][:80]!r}")


def _whole(text: bytes, usual: int) -> bytes | None:
    """The last entry without its end of line; None if it is torn. All entries of a target have the same lines."""
    if not text.endswith(b"\n"):
        return None
    text = text.removesuffix(b"\n").removesuffix(AGAIN)
    return text if text.count(b"\n") >= max(usual, 2) else None


def totals(text: str) -> dict[str, Operation]:
    """`stats` and `md_stats`: lines such as `read_bytes 12 samples [bytes] 1 4096 40960`. What is not there never
    happened; ParseError if the time at its head is not there either.
    """
    if not text.startswith("snapshot_time"):
        raise ParseError(f"stats: expected snapshot_time first, got {text[:80]!r}")
    found = {}
    for line in text.splitlines():
        match = _TOTAL.fullmatch(line)
        if match is not None:
            samples, total = int(match[2]), None if match[4] is None else int(match[4])
            if max(samples, total or 0) <= LARGEST:
                found[match[1]] = Operation(samples, match[3], total)
    return found
