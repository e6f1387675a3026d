"""Room on the node's own filesystems.

Source: /proc/self/mountinfo, see proc_pid_mountinfo(5), and statvfs(3). Network filesystems are left out unless asked
for: a server that is away would hold up the collector. Each device is listed once, where it was mounted first.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from jobsight.collector import ParseError, collector
from jobsight.host import Host
from jobsight.schema.record import gauge, label, record
from jobsight.schema.units import Bytes, Count

# What a node has of its own. Not /proc, /sys and their like: they have no room to run out of.
LOCAL = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "vfat", "tmpfs", "overlay")


@record
class Filesystem:
    """One mounted filesystem at one instant."""

    mount: str = label("Where it is mounted.")
    device: str = label("What is mounted there.")
    kind: str = label("Its type: ext4, xfs, …")
    size: Bytes = gauge("Room it has.")
    free: Bytes = gauge("Room nothing uses.")
    available: Bytes = gauge("Room an ordinary user may still use.")
    files: Count | None = gauge("Files it can have; missing where it makes room as needed.", default=None)
    files_free: Count | None = gauge("Files it can still take.", default=None)


class Options(NamedTuple):
    """Which filesystems."""

    kinds: tuple[str, ...] = LOCAL


class Mount(NamedTuple):
    """One line of mountinfo."""

    number: str
    mount: str
    kind: str
    device: str


@collector("proc/self/mountinfo", every=300)
def filesystem(host: Host, options: Options) -> Iterator[Filesystem]:
    seen: set[str] = set()
    # What is mounted last at a place hides what was there before.
    visible = {found.mount: found for found in parse(host.read("proc/self/mountinfo"))}
    for found in visible.values():
        if found.kind not in options.kinds or found.number in seen or found.mount.startswith("/sys/"):
            continue
        seen.add(found.number)
        room = host.space(found.mount.lstrip("/"))
        if room is not None and room.size:
            yield Filesystem(
                mount=found.mount,
                device=found.device,
                kind=found.kind,
                size=Bytes(room.size),
                free=Bytes(room.free),
                available=Bytes(room.available),
                files=Count(room.files) if room.files else None,
                files_free=Count(room.files_free) if room.files else None,
            )


def parse(text: str) -> Iterator[Mount]:
    """Lines such as `36 35 98:0 / /mnt rw,noatime master:1 - ext3 /dev/root rw`; optional fields end at a dash."""
    for line in text.splitlines():
        left, dash, right = line.partition(" - ")
        place, source = left.split(" "), right.split(" ")
        if not dash or len(place) < 6 or len(source) < 2:
            raise ParseError(
                f"mountinfo: expected a mount and, after a dash, its type and source, got {line[:100]!r}"
            )
        yield Mount(place[2], _plain(place[4]), source[0], _plain(source[1]))


def _plain(text: str) -> str:
    r"""Blanks and their like are written as octal: `\040`."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
