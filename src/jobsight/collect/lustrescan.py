"""How each target of this Lustre server was read: what tells a target nobody used from one nobody saw.

Source: what `lustremdt` and `lustreost` found in the same interval; where they did not run, the same files. Where a
scan is not `ok`, an entry without a row may have changed. Beside it stand the target's own totals (`stats`,
`md_stats`), as a check: the growth of all entries together is never more than theirs. Since 2.17 those of object
targets need root.
"""

from collections.abc import Iterator

from jobsight.collector import collector
from jobsight.drivers.lustreoptions import Options, check
from jobsight.host import Host
from jobsight.schema.record import counter, gauge, label, record
from jobsight.schema.units import Bytes, Count, Seconds

__all__ = ["Options", "check", "lustrescan"]

GRANT = "root, or a debugfs that the agent may read"


@record
class Lustrescan:
    """One target, read once."""

    target: str = label("The target: scratch-OST0001.")
    kind: str = label("mdt or ost.")
    source: str = label("files or lctl.")
    scanned_at: Seconds | None = gauge(
        "The time of the message with the rows that came of it, since 1970; none in a copy of a machine.",
        default=None,
    )
    ok: bool = gauge("Whether the job statistics were read to their end.")
    error: str | None = gauge("Why not.", default=None)
    entries: Count | None = gauge("Entries seen.", default=None)
    changed: Count | None = gauge("Of those, told in rows.", default=None)
    unchanged: Count | None = gauge("Left out because nothing is new.", default=None)
    postponed: Count | None = gauge("Left to the next scan: there were too many for one message.", default=None)
    system: Count | None = gauge("Left out because they are the system's.", default=None)
    torn: Count | None = gauge("Entries that ended in the middle, dropped.", default=None)
    bad_lines: Count | None = gauge("Lines that did not read.", default=None)
    malformed: Count | None = gauge("Identifiers in none of the formats.", default=None)
    truncated: Count | None = gauge("Identifiers of 31 bytes.", default=None)
    size: Bytes | None = gauge("How much was read.", default=None)
    duration: Seconds | None = gauge("How long reading and parsing took.", default=None)
    cleanup_interval: Seconds | None = gauge("After so long without use an entry may go; 0 for never.", default=None)
    read: Count | None = counter("Reads of the whole target.", default=None, grant=GRANT)
    write: Count | None = counter("Writes.", default=None, grant=GRANT)
    read_bytes: Bytes | None = counter("Bytes read of the whole target.", default=None, grant=GRANT)
    write_bytes: Bytes | None = counter("Bytes written to it.", default=None, grant=GRANT)
    operations: Count | None = counter("All operations but reads and writes.", default=None, grant=GRANT)


@collector("proc/fs/lustre/obdfilter", "proc/fs/lustre/mdt", every=120, through=("lctl",))
def lustrescan(host: Host, options: Options) -> Iterator[Lustrescan]:
    # Loaded where there is a Lustre server, and nowhere else.
    from jobsight.drivers.lustre import Lustre

    return host.keep(Lustre).scans(host, Lustrescan, options)
