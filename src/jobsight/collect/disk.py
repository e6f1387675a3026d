"""Traffic of whole block devices; partitions are parts of them and left out.

Source: /proc/diskstats, see the kernel's iostats.rst, and /sys/block for what is a whole device. Sectors there are
512 bytes, whatever the device's own are.
"""

from collections.abc import Iterator

from jobsight.collector import ParseError, collector
from jobsight.formats.keyvalue import whole
from jobsight.host import Host
from jobsight.schema.record import counter, gauge, label, record
from jobsight.schema.units import Bytes, Count, Seconds

SECTOR = 512
FIELDS = 11


@record
class Disk:
    """One block device since boot."""

    device: str = label("The kernel's name for it.")
    reads: Count = counter("Reads completed.")
    read: Bytes = counter("Bytes read.")
    read_time: Seconds = counter("Time spent in reads, summed over those under way at once.")
    writes: Count = counter("Writes completed.")
    written: Bytes = counter("Bytes written.")
    write_time: Seconds = counter("Time spent in writes, summed over those under way at once.")
    queue: Count = gauge("Reads and writes under way.")
    busy_time: Seconds = counter("Time with at least one under way.")
    major: int | None = label("The first part of the kernel's number for it: the driver.", default=None)
    minor: int | None = label("The second part: which of the driver's devices.", default=None)
    reads_merged: Count | None = counter("Reads that became part of a neighbouring one.", default=None)
    writes_merged: Count | None = counter("Writes that became part of a neighbouring one.", default=None)
    queue_time: Seconds | None = counter("Time spent by all, waiting included: grows by the queue.", default=None)


@collector("proc/diskstats")
def disk(host: Host) -> Iterator[Disk]:
    all_alike = not host.exists("sys/block")
    for row in parse(host.read("proc/diskstats")):
        # RAM disks and loops without use say nothing.
        if not (row.reads or row.writes):
            continue
        # /sys writes the slash of `cciss/c0d0` as an exclamation mark.
        if all_alike or host.exists(f"sys/block/{row.device.replace('/', '!')}"):
            yield row


def parse(text: str) -> Iterator[Disk]:
    """One row a line such as `254 0 vda 40 0 320 5 7 0 56 2 0 8 7 0 0 0 0`."""
    for line in text.splitlines():
        words = line.split()
        numbers = words[3 : 3 + FIELDS]
        if len(numbers) < FIELDS or not all(map(whole, words[:2] + numbers)):
            raise ParseError(f"/proc/diskstats: expected a device and eleven numbers, got {line[:100]!r}")
        reads, joined_reads, read, reading, writes, joined_writes, written, writing, queue, busy, queued = (
            int(n) for n in numbers
        )
        yield Disk(
            device=words[2],
            reads=Count(reads),
            read=Bytes(read * SECTOR),
            read_time=Seconds(reading / 1000),
            writes=Count(writes),
            written=Bytes(written * SECTOR),
            write_time=Seconds(writing / 1000),
            queue=Count(queue),
            busy_time=Seconds(busy / 1000),
            major=int(words[0]),
            minor=int(words[1]),
            reads_merged=Count(joined_reads),
            writes_merged=Count(joined_writes),
            queue_time=Seconds(queued / 1000),
        )
