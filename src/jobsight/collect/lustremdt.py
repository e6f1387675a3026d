"""What jobs ask of the metadata targets (MDT) of this Lustre server: names, attributes, small files.

Source: /proc/fs/lustre/mdt/TARGET/job_stats, or `lctl get_param` where the settings say so; see
`formats.lustrestats`. Rows, identifiers and `absent_at` are as `lustreost` has them.
"""

from collections.abc import Iterator

from jobsight.collector import collector
from jobsight.drivers.lustreoptions import Options, check
from jobsight.host import Host
from jobsight.schema.record import counter, gauge, label, record
from jobsight.schema.units import Bytes, Count, Seconds

__all__ = ["Options", "check", "lustremdt"]


@record
class Lustremdt:
    """One entry of one metadata target, as it was when it was read."""

    target: str = label("The target: scratch-MDT0000.")
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
    open: Count | None = counter("Files opened.", default=None)
    close: Count | None = counter("Files closed; may exceed open: clients keep files open for later.", default=None)
    mknod: Count | None = counter("Files made.", default=None)
    link: Count | None = counter("Hard links made.", default=None)
    unlink: Count | None = counter("Files removed.", default=None)
    mkdir: Count | None = counter("Directories made.", default=None)
    rmdir: Count | None = counter("Directories removed.", default=None)
    rename: Count | None = counter("Renames.", default=None)
    samedir_rename: Count | None = counter("Renames within a directory.", default=None)
    crossdir_rename: Count | None = counter("Renames into another directory.", default=None)
    getattr: Count | None = counter("Attributes asked for.", default=None)
    setattr: Count | None = counter("Attributes set.", default=None)
    getxattr: Count | None = counter("Extended attributes asked for.", default=None)
    setxattr: Count | None = counter("Extended attributes set.", default=None)
    statfs: Count | None = counter("Asked how much room there is.", default=None)
    sync: Count | None = counter("Waits until all is on disk.", default=None)
    migrate: Count | None = counter("Moves to another metadata target.", default=None)
    read: Count | None = counter("Reads of files kept on the metadata target.", default=None)
    write: Count | None = counter("Writes of such files.", default=None)
    read_bytes: Bytes | None = counter("Bytes read of them.", default=None)
    write_bytes: Bytes | None = counter("Bytes written.", default=None)
    punch: Count | None = counter("Such files cut short.", default=None)
    fallocate: Count | None = counter("Room reserved for them.", default=None)
    open_time: Seconds | None = counter("Time the server took for opening.", default=None)
    close_time: Seconds | None = counter("Time for closing.", default=None)
    mknod_time: Seconds | None = counter("Time for making files.", default=None)
    unlink_time: Seconds | None = counter("Time for removing.", default=None)
    rename_time: Seconds | None = counter("Time for renames.", default=None)
    getattr_time: Seconds | None = counter("Time for asking attributes.", default=None)
    setattr_time: Seconds | None = counter("Time for setting attributes.", default=None)
    sync_time: Seconds | None = counter("Time for waits until all is on disk.", default=None)
    read_time: Seconds | None = counter("Time for reads.", default=None)
    write_time: Seconds | None = counter("Time for writes.", default=None)
    read_sizes: str | None = gauge("Reads by size, up to and including: 4K=2,1M=8.", default=None)
    write_sizes: str | None = gauge("Writes by size, likewise.", default=None)
    other: str | None = gauge("Operations that have no column, those that were counted: name=count,…", default=None)


@collector("proc/fs/lustre/mdt", every=120, through=("lctl",))
def lustremdt(host: Host, options: Options) -> Iterator[Lustremdt]:
    # Loaded where there is a Lustre server, and nowhere else.
    from jobsight.drivers.lustre import Lustre

    return host.keep(Lustre).rows(host, "mdt", Lustremdt, options)
