r"""What jobs ask of the object targets (OST) of this Lustre server: the files' content.

Source: /proc/fs/lustre/obdfilter/TARGET/job_stats, or `lctl get_param` where the settings say so; see
`formats.lustrestats`. A row is an entry that changed since it was last told, or was not told yet. An entry that holds
still is told once more, then left out: `lustrescan` proves that it was looked at. All counters are totals since the
entry began, counted in requests to the server, not in system calls.

(target, entry) names a series, whichever server has the target. `entry` is the identifier's bytes as text: UTF-8 as
it is, control characters and other bytes as \xHH, a backslash as \\ (`formats.lustreid` has both ways). What is
parsed of it only describes it.

`absent_at` is a time at which the entry was surely not there, so that all its counters were 0 then: the last good
scan without it, or its own start or the server's boot if that is later. Every row of this life of the entry carries
it: a row that is lost takes nothing with it. It says less than any row after it.
"""

from collections.abc import Iterator

from jobsight.collector import collector
from jobsight.drivers.lustreoptions import Options, check
from jobsight.host import Host
from jobsight.schema.record import counter, gauge, label, record
from jobsight.schema.units import Bytes, Count, Seconds

__all__ = ["Options", "check", "lustreost"]


@record
class Lustreost:
    """One entry of one object target, as it was when it was read."""

    target: str = label("The target: scratch-OST0001.")
    entry: str = label("The whole identifier, without loss: names the series together with the target.")
    job: str | None = label(
        "The job in it; of a format with a program and a user but no job program@uid, which no scheduler gives.",
        default=None,
    )
    uid: Count | None = label("The user's number in it.", default=None)
    host: str | None = label("The client's name in it, short or full as it was.", default=None)
    executable: str | None = label("The program's name in it.", default=None)
    format: str = label("The format of the settings that it has, or malformed.")
    truncated: bool = label("Whether it has all the 31 bytes there are, so that its end may be missing.")
    snapshot_time: Seconds | None = gauge("When the entry last changed, since 1970.", default=None)
    start_time: Seconds | None = gauge("When it began, since 1970: another one, another life.", default=None)
    absent_at: Seconds | None = gauge("A time at which it was surely not there, since 1970.", default=None)
    read: Count | None = counter("Reads.", default=None)
    write: Count | None = counter("Writes.", default=None)
    read_bytes: Bytes | None = counter("Bytes read.", default=None)
    write_bytes: Bytes | None = counter("Bytes written.", default=None)
    getattr: Count | None = counter("Attributes asked for.", default=None)
    setattr: Count | None = counter("Attributes set.", default=None)
    punch: Count | None = counter("Objects cut short.", default=None)
    sync: Count | None = counter("Waits until all is on disk.", default=None)
    destroy: Count | None = counter("Objects removed.", default=None)
    creates: Count | None = counter("Objects made; Lustre says create.", default=None)
    statfs: Count | None = counter("Asked how much room there is.", default=None)
    get_info: Count | None = counter("Asked about the target.", default=None)
    set_info: Count | None = counter("Told something about the target.", default=None)
    quotactl: Count | None = counter("Quotas asked for or set.", default=None)
    prealloc: Count | None = counter("Room reserved.", default=None)
    read_time: Seconds | None = counter("Time the server took for reads.", default=None)
    write_time: Seconds | None = counter("Time it took for writes.", default=None)
    getattr_time: Seconds | None = counter("Time for asking attributes.", default=None)
    setattr_time: Seconds | None = counter("Time for setting attributes.", default=None)
    punch_time: Seconds | None = counter("Time for cutting short.", default=None)
    sync_time: Seconds | None = counter("Time for waits until all is on disk.", default=None)
    read_sizes: str | None = gauge("Reads by size, up to and including: 4K=2,1M=8.", default=None)
    write_sizes: str | None = gauge("Writes by size, likewise.", default=None)
    other: str | None = gauge("Operations that have no column, those that were counted: name=count,…", default=None)


@collector("proc/fs/lustre/obdfilter", every=120, through=("lctl",))
def lustreost(host: Host, options: Options) -> Iterator[Lustreost]:
    # Loaded where there is a Lustre server, and nowhere else.
    from jobsight.drivers.lustre import Lustre

    return host.keep(Lustre).rows(host, "ost", Lustreost, options)
