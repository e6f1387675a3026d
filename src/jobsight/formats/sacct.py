"""Jobs and steps as `sacct` tells them, from text to columns.

Whole columns are turned at a time and equal texts once: half a million jobs are then a matter of seconds. A value
that does not read is None and its column is named; a row without a number or a state is no row.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from jobsight.formats import slurmtext
from jobsight.formats.memo import BAD, Memo, indexes, instants, looked_up, numbers, seconds, unlike, words
from jobsight.formats.slurmtext import NOTHING, Tres

# The first two tell the mark; JobName and WorkDir may hold anything. Those below not every release has.
COLUMNS = (
    "JobIDRaw", "State", "JobID", "User", "UID", "Group", "GID", "Account", "Partition", "QOS", "Reservation",
    "JobName", "WorkDir", "Submit", "Eligible", "Start", "End", "ElapsedRaw", "Suspended", "TimelimitRaw",
    "ExitCode", "DerivedExitCode", "Reason", "Priority", "Layout", "NNodes", "NodeList", "NTasks", "ReqCPUS",
    "ReqMem", "ReqNodes", "ReqTRES", "AllocTRES", "UserCPU", "SystemCPU", "TotalCPU", "MaxRSS", "MaxRSSNode",
    "AveRSS", "TRESUsageInTot", "TRESUsageOutTot", "DBIndex",
)  # fmt: skip
NEWER = ("SLUID", "Restarts")
# States a job does not leave. One we do not know is seen when all are asked for.
ENDED = (
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
    "REQUEUED", "REVOKED", "TIMEOUT",
)  # fmt: skip


class Jobs(NamedTuple):
    """Rows as columns, by the names the record has."""

    columns: dict[str, list[Any]]
    size: int
    bad: set[str]
    """Columns with values that did not read; `job` where a whole row did not."""


class Identity(NamedTuple):
    """What `JobID` says beyond the number: `9_4.batch`, `9_[5-20%2]`, `2+1`."""

    array: str | None = None
    task: int | None = None
    waiting: str | None = None
    het: str | None = None
    offset: int | None = None


PLAIN = Identity()


def jobs(text: str) -> Iterator[Jobs]:
    """The rows of what `sacct` printed with a mark after every field, some thousand at a time."""
    readers = {name: Memo(convert) for name, convert in READERS.items()}
    parent: dict[str, Any] = {}
    for block in slurmtext.blocks(text, "JobIDRaw", "State"):
        yield _turned(block, readers, parent)


def command(mark: str, columns: Iterable[str], since: float, until: float, *, ends: bool) -> tuple[str, ...]:
    """How `sacct` is asked: everybody's jobs that lived in a window, or with `ends` those that ended in it; every
    life of a job that was requeued, sizes in bytes. Times are told in seconds since 1970.
    """
    return (
        "sacct", "--allusers", "--duplicates", "--parsable", "--noconvert", f"--delimiter={mark}",
        f"--starttime=uts{int(since)}", f"--endtime=uts{int(until)}",
        *((f"--state={','.join(ENDED)}",) if ends else ()), f"--format={','.join(columns)}",
    )  # fmt: skip


def identity(text: str) -> Identity:
    if "_" not in text and "+" not in text:
        return PLAIN
    whole = text.partition(".")[0]
    number, under, index = whole.partition("_")
    if under:
        if index.isdecimal():
            return Identity(array=number, task=slurmtext.number(index))
        return Identity(array=number, waiting=index[:1000])
    number, plus, offset = whole.partition("+")
    return Identity(het=number, offset=slurmtext.number(offset)) if plus else Identity()


def limit(text: str) -> tuple[float | None, bool | None]:
    """Seconds, and whether there is no limit at all. `Partition_Limit` says neither."""
    if text.isdecimal():
        return float(slurmtext.number(text) or 0) * 60, False
    return (None, True) if text == "UNLIMITED" else (None, None)


def memory(text: str) -> int | None:
    """What was asked for: `600M`; before 21.08 `300Mc` (a core) or `300Mn` (a node), which is no total."""
    return None if text[-1:] in ("c", "n") else slurmtext.size(text, "M")


def resident(text: str) -> int | None:
    """Bytes of memory. No process has none: a nought says that Slurm never looked."""
    return slurmtext.size(text) or None


def disk(text: str) -> int | None:
    """Bytes of `fs/disk` in a list of what was used."""
    place = text.find("fs/disk=")
    if place < 0 or (place and text[place - 1] != ","):
        return None
    digits = text[place + 8 :].partition(",")[0]
    if len(digits) < 18 and digits.isdecimal() and digits.isascii():
        return int(digits)
    return slurmtext.size(digits)


def whole_seconds(text: str) -> float | None:
    found = slurmtext.number(text)
    return None if found is None else float(found)


def known(text: str) -> str | None:
    return None if text in NOTHING else text


def nodes(text: str) -> str | None:
    return None if text in NOTHING or text == "None allocated" else text


def own(text: str) -> str | None:
    """A name. One that is called `Unknown` or `None` is called so."""
    return text or None


READERS: dict[str, Callable[[str], Any]] = {
    "JobID": identity, "State": slurmtext.state, "ExitCode": slurmtext.exit_code,
    "DerivedExitCode": slurmtext.exit_code, "TimelimitRaw": limit, "ReqTRES": slurmtext.tres,
    "AllocTRES": slurmtext.tres, "ReqMem": memory, "MaxRSS": resident, "AveRSS": resident,
    "ElapsedRaw": whole_seconds, "TRESUsageInTot": disk, "TRESUsageOutTot": disk,
    "Suspended": slurmtext.duration, "UserCPU": slurmtext.duration,
    "SystemCPU": slurmtext.duration, "TotalCPU": slurmtext.duration, "NodeList": nodes, "JobName": own, "User": own,
    "Account": own, "Group": own, "WorkDir": own, "Partition": own, "QOS": own,
    **dict.fromkeys(("Submit", "Eligible", "Start", "End"), slurmtext.instant),
    **dict.fromkeys(("Reservation", "Reason", "Layout", "MaxRSSNode", "SLUID"), known),
    **dict.fromkeys(
        ("UID", "GID", "Priority", "NNodes", "NTasks", "ReqCPUS", "ReqNodes", "DBIndex", "Restarts"),
        slurmtext.number,
    ),
}  # fmt: skip

# The record's column, and the one of sacct it is read from; a number says which part of what was read.
SOURCES: dict[str, tuple[str, int | None]] = {
    "array_job": ("JobID", 0), "array_index": ("JobID", 1), "array_waiting": ("JobID", 2), "het_job": ("JobID", 3),
    "het_offset": ("JobID", 4), "sluid": ("SLUID", None), "entry": ("DBIndex", None), "owner": ("User", None),
    "uid": ("UID", None), "group_name": ("Group", None), "gid": ("GID", None), "account": ("Account", None),
    "partition": ("Partition", None), "qos": ("QOS", None), "reservation": ("Reservation", None),
    "name": ("JobName", None), "work_dir": ("WorkDir", None), "state": ("State", 0), "cancelled_by": ("State", 1),
    "reason": ("Reason", None), "nodes": ("NodeList", None), "layout": ("Layout", None),
    "requested": ("ReqTRES", None), "allocated": ("AllocTRES", None), "gpu_types": ("AllocTRES", 4),
    "submit": ("Submit", None), "eligible": ("Eligible", None), "start": ("Start", None), "ended": ("End", None),
    "elapsed": ("ElapsedRaw", None), "suspended": ("Suspended", None), "time_limit": ("TimelimitRaw", 0),
    "unlimited": ("TimelimitRaw", 1), "exit_code": ("ExitCode", 0), "exit_signal": ("ExitCode", 1),
    "worst_exit_code": ("DerivedExitCode", 0), "priority": ("Priority", None), "restarts": ("Restarts", None),
    "requested_cpus": ("ReqCPUS", None), "requested_memory": ("ReqMem", None),
    "requested_nodes": ("ReqNodes", None), "requested_gpus": ("ReqTRES", 3), "cpus": ("AllocTRES", 0),
    "memory": ("AllocTRES", 1), "node_count": ("NNodes", None), "gpus": ("AllocTRES", 3),
    "tasks": ("NTasks", None), "cpu_time": ("TotalCPU", None), "cpu_user": ("UserCPU", None),
    "cpu_system": ("SystemCPU", None), "memory_peak": ("MaxRSS", None), "memory_peak_node": ("MaxRSSNode", None),
    "memory_mean": ("AveRSS", None), "read": ("TRESUsageInTot", None), "written": ("TRESUsageOutTot", None),
}  # fmt: skip
# How many parts a reader gives; what is bad has as many holes.
PARTS = {"JobID": 5, "State": 2, "TimelimitRaw": 2, "ExitCode": 2, "DerivedExitCode": 2}
# What sacct says of these before the end is a beginning or a nought.
FINAL = (
    "exit_code", "exit_signal", "worst_exit_code", "cpu_time", "cpu_user", "cpu_system", "memory_peak", "memory_mean",
    "read", "written",
)  # fmt: skip
# What a step has of its job. Slurm leaves some of it out, and says of others when the step was begun.
INHERITED = (
    "sluid", "owner", "uid", "group_name", "gid", "account", "partition", "qos", "reservation", "submit", "priority",
)  # fmt: skip


def _identities(texts: list[str], memo: Memo) -> list[Any]:
    # Steps of a job are like it.
    return [PLAIN if "_" not in text and "+" not in text else memo[text.partition(".")[0]] for text in texts]


QUICK: dict[str, Callable[[list[str], Memo], list[Any]]] = {
    "JobID": _identities,
    **dict.fromkeys(("JobName", "User", "Account", "Group", "WorkDir", "Partition", "QOS"), words),
    **dict.fromkeys(("Submit", "Eligible", "Start", "End"), instants),
    "ElapsedRaw": seconds,
    "DBIndex": indexes,
    **dict.fromkeys(("UID", "GID", "Priority", "MaxRSS", "AveRSS"), numbers),
    **dict.fromkeys(("UserCPU", "SystemCPU", "TotalCPU", "TRESUsageInTot", "TRESUsageOutTot"), unlike),
}


def _turned(block: slurmtext.Block, readers: dict[str, Memo], parent: dict[str, Any]) -> Jobs:
    given = block.columns
    bad = {"job"} if block.broken else set()
    if "State" not in given or not given["JobIDRaw"]:
        return Jobs({}, 0, bad)
    states = list(map(readers["State"].__getitem__, given["State"]))
    if readers["State"].bad:
        readers["State"].bad = False
        kept = [place for place, value in enumerate(states) if value is not BAD]
        given = {name: [values[place] for place in kept] for name, values in given.items()}
        bad.add("job")
    count = len(given["JobIDRaw"])
    read: dict[str, list[Any]] = {}
    columns: dict[str, list[Any]] = {}
    for field, (source, part) in SOURCES.items():
        if source not in given:
            continue
        if source not in read:
            memo = readers[source]
            read[source] = QUICK.get(source, looked_up)(given[source], memo)
            if memo.bad:
                memo.bad = False
                bad.add(field)
                hole = Tres() if source in ("ReqTRES", "AllocTRES") else (None,) * PARTS.get(source, 0) or None
                read[source] = [hole if value is BAD else value for value in read[source]]
        columns[field] = read[source] if part is None else list(map(itemgetter(part), read[source]))
    for field in ("requested", "allocated"):
        if field in columns:
            columns[field] = [text or None for text in given[SOURCES[field][0]]]
    _name(columns, given["JobIDRaw"])
    finish(columns, parent)
    return Jobs(columns, count, bad)


def _name(columns: dict[str, list[Any]], raw: list[str]) -> None:
    """`123.batch` is step `batch` of job `123`."""
    cut = [text.partition(".") for text in raw]
    columns["job"] = list(map(itemgetter(0), cut))
    columns["step"] = [step or None for _, _, step in cut]


def finish(columns: dict[str, list[Any]], parent: dict[str, Any]) -> None:
    """Leave out what is not known before the end, and give steps what is their job's. `parent` is the last job of the
    block before, and then of this one.
    """
    unended = [place for place, end in enumerate(columns.get("ended", ())) if end is None]
    for field in FINAL:
        if field in columns and unended:
            values = columns[field]
            for place in unended:
                values[place] = None
    owners: list[int] = []
    last, of = -1, parent.get("job")
    for place, (job, step) in enumerate(zip(columns["job"], columns["step"], strict=True)):
        if step is None:
            last, of = place, job
        # A step whose job is not here has none.
        owners.append(last if job == of else -2)
    for field in INHERITED:
        if field in columns:
            values = [*columns[field], None, parent.get(field)]
            columns[field] = [values[owner] for owner in owners]
    if last >= 0:
        parent.update({field: values[last] for field, values in columns.items() if field in (*INHERITED, "job")})
