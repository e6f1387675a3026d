"""Where the statistics of Lustre targets are read: files, or what `lctl get_param` prints of them.

lctl writes `NAME=` before each file, and its content on the lines after it; of a target without jobs the only line
comes right behind the `=`, or nothing does. It ends with code 2 where one pattern has no files, and what it printed
of the others is good.
"""

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from jobsight.formats.lustreid import to_text
from jobsight.host import Host

# How Lustre calls the folder of a kind of targets, and the file with the totals of one.
FOLDERS = {"mdt": "mdt", "ost": "obdfilter"}
TOTALS = {"mdt": "md_stats", "ost": "stats"}
PROC = "proc/fs/lustre"
# In the order of releases: what moved, moved there.
ELSEWHERE = {
    "job_cleanup_interval": "sys/fs/lustre",
    "stats": "sys/kernel/debug/lustre",
    "md_stats": "sys/kernel/debug/lustre",
}
# Of lctl all is in memory at once: enough for 100 000 entries.
MOST = 256 * 2**20
# A parameter that has no files, beside others that have.
CODES = (0, 2)
_SECTION = re.compile(
    r"^(?:mdt|obdfilter)\.([^\s=]+)\.(job_stats|md_stats|stats|job_cleanup_interval)=", re.MULTILINE
)


class Source(NamedTuple):
    """One target's statistics, not read yet."""

    target: str
    pieces: Iterator[bytes]
    interval: float | None
    """After how many seconds without use an entry may go."""


def targets(host: Host, kind: str) -> list[str]:
    """The targets that are mounted on this server."""
    folder = f"{PROC}/{FOLDERS[kind]}"
    return [name for name in sorted(host.names(folder)) if host.exists(f"{folder}/{name}/job_stats")]


def sources(host: Host, kind: str, through: str, limit: float) -> list[Source]:
    """The job statistics of all targets of a kind. CommandError if lctl fails."""
    if through == "lctl":
        return _printed(host, kind, limit)
    return [
        Source(
            to_text(target.encode("utf-8", "surrogateescape")),
            host.pieces(f"{PROC}/{FOLDERS[kind]}/{target}/job_stats"),
            _seconds(_beside(host, kind, target, "job_cleanup_interval")),
        )
        for target in targets(host, kind)
    ]


def totals(host: Host, kind: str, target: str) -> str | None:
    """What the file with a target's totals says; None if it is not there. PermissionError if it is not for us."""
    for root in (PROC, ELSEWHERE[TOTALS[kind]]):
        try:
            return host.read(f"{root}/{FOLDERS[kind]}/{target}/{TOTALS[kind]}")
        except FileNotFoundError:
            continue
    return None


def printed_totals(host: Host, kind: str, limit: float) -> dict[str, str]:
    """The same of all targets, through lctl."""
    text = host.run(("lctl", "get_param", f"{FOLDERS[kind]}.*.{TOTALS[kind]}"), limit, most=MOST, codes=CODES).text
    return {target: part for target, name, part in sections(text) if name == TOTALS[kind]}


def sections(text: str) -> Iterator[tuple[str, str, str]]:
    """What lctl printed, cut up: target, name of the file, content."""
    found = list(_SECTION.finditer(text))
    for match, after in zip_longest(found, found[1:]):
        end = len(text) if after is None else after.start()
        yield match[1], match[2], text[match.end() : end].removeprefix("\n")


def _printed(host: Host, kind: str, limit: float) -> list[Source]:
    asked = [f"{FOLDERS[kind]}.*.{name}" for name in ("job_stats", "job_cleanup_interval")]
    text = host.run(("lctl", "get_param", *asked), limit, most=MOST, codes=CODES).text
    parts = {(target, name): part for target, name, part in sections(text)}
    return [
        Source(target, iter((part.encode(),)), _seconds(parts.get((target, "job_cleanup_interval"))))
        for (target, name), part in parts.items()
        if name == "job_stats"
    ]


def _beside(host: Host, kind: str, target: str, name: str) -> str | None:
    for root in (PROC, ELSEWHERE[name]):
        text = host.glimpse(f"{root}/{FOLDERS[kind]}/{target}/{name}")
        if text is not None:
            return text
    return None


def _seconds(text: str | None) -> float | None:
    word = (text or "").strip()
    return float(word) if word.isdecimal() and word.isascii() and len(word) < 10 else None
