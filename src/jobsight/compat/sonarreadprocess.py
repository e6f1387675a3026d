"""The processes of a Sonar `sample` as rows of ours, and who is who from one sample to the next.

The format names a process by its number alone. It is the same process as in the last sample if it has the number,
has not used less since, and still has its user and job, its command or its parent. When it started is not told: a
process that the last sample did not have started since, and its mean share of a core says about when; of one that
is met with its node, what it used before is not counted, since nobody knows over what time.
"""

from typing import Any, NamedTuple
from zlib import crc32

from jobsight.compat.cpushare import Ident, Used, inherited
from jobsight.compat.sonarreadfields import Fields, UnreadableError

KIB = 1024
# Linux gives no larger pid: a number above it stands for several processes.
LARGEST_PID = 4_194_304
DEFUNCT = " <defunct>"
TRAFFIC = ("data_read", "data_written", "data_cancelled")
# Of each row, what adds up when several stand for one.
SUMS = ("threads", "cpu_children", "memory_anon", "memory_data", "merged")
# So far apart that one number on one boot never has the same start twice.
APART = 0.001
# How much rounding to seconds may make of the difference between what a child had and what its parent inherited.
ROUNDED = 2.0

Row = dict[str, Any]


class Seen(NamedTuple):
    """A process as the last sample had it."""

    started: float
    cpu: float
    owner: str
    job: str
    command: str
    parent: int
    partial: bool
    """Whether it was counted from first sight on only: it may have started long before."""
    passed_on: float
    """The CPU time that our row has."""


class Past(NamedTuple):
    """The last sample of this boot."""

    since: float | None
    """Its uptime: what it did not have started later. None if there was none, and nobody knows."""
    seen: dict[int, Seen]
    blurred: frozenset[str]
    """Jobs some of whose processes were told as sums: one that is met there may have been in such a sum."""


def rows(jobs: list[Fields], uptime: float, past: Past) -> tuple[list[Row], Past]:
    """One row a process, and what the next sample will be compared with."""
    found: dict[int, Row] = {}
    for job in jobs:
        for process in job.objects("processes"):
            _put(found, raw(job, process), process)
    blurred = frozenset(row["job"] for row in found.values() if row["merged"] is not None)
    seen = {}
    for pid, row in found.items():
        before = past.seen.get(pid)
        same = before is not None and _same(before, row)
        now = before._replace(**_traits(row)) if before and same else _met(row, uptime, past)
        row["started"] = now.started
        if now.partial and row["merged"] is None:
            # Not a sum, and yet nobody knows since when it was counted: growth begins with the next sample.
            row["merged"] = 0
        seen[pid] = now
    for pid, total in _evened(past.seen, seen).items():
        found[pid]["cpu_children"] = total
        seen[pid] = seen[pid]._replace(passed_on=total)
    return list(found.values()), Past(uptime, seen, blurred)


def raw(job: Fields, process: Fields) -> Row:
    """What the document says of one process."""
    number, rolled = job.whole("job"), process.whole("rolledup")
    command = process.text("cmd")
    pid = process.whole("pid")
    sum_of_many = pid == 0 or pid > LARGEST_PID or rolled > 0
    row: Row = {
        "pid": pid,
        "parent": process.whole("ppid"),
        # Not told. The kernel says 0 too where it cannot name one.
        "session": 0,
        "process_group": number if job.whole("epoch") else 0,
        "scheduler": "slurm" if number and not job.whole("epoch") else "session",
        "job": str(number),
        "owner": owner(job.text("user")),
        "command": command.removesuffix(DEFUNCT),
        "state": "Z" if command.endswith(DEFUNCT) else "?",
        "threads": process.whole("num_threads") + 1 + rolled,
        "cpu_user": 0.0,
        "cpu_system": 0.0,
        # Its own and its children's in one number, which jumps when a child ends: here is where growth expects that.
        "cpu_children": float(process.whole("cpu_time")),
        "memory_anon": process.whole("resident_memory") * KIB,
        "memory_data": process.whole("virtual_memory") * KIB,
        "memory_virtual": 0,
        "container": "containerd" if process.flag("in_container") else None,
        "merged": rolled if sum_of_many else None,
        "share": process.real("cpu_avg") / 100,
    }
    # Zero and unreadable look the same; where one of the three is told, the file could be read.
    known = any(process.whole(name) for name in TRAFFIC)
    row["read"] = process.whole("data_read") * KIB if known else None
    row["written"] = process.whole("data_written") * KIB if known else None
    if not pid:
        row["pid"] = -1 - crc32("\0".join((row["job"], row["owner"], str(row["parent"]), command)).encode())
    if not number:
        # No number: each process stands for itself.
        row["job"] = str(row["pid"])
    return row


def owner(user: str) -> str:
    """Our owner is the uid where nobody has that uid."""
    number = user.removeprefix("_user_")
    return number if number.isdecimal() else user or "_user_unknown"


def _put(found: dict[int, Row], row: Row, process: Fields) -> None:
    """Add a row. Sums without a number of their own may stand there several times; a process may not."""
    while (other := found.get(row["pid"])) is not None:
        if row["merged"] is None or row["pid"] > 0:
            raise UnreadableError(f"{process.path}.pid", f"process {row['pid']} stands there twice")
        if all(other[name] == row[name] for name in ("job", "owner", "parent", "command")):
            other |= {name: other[name] + row[name] for name in SUMS}
            other["merged"] += 1
            for name in ("read", "written"):
                other[name] = None if other[name] is None or row[name] is None else other[name] + row[name]
            return
        row["pid"] -= 1
    found[row["pid"]] = row


def _same(before: Seen, row: Row) -> bool:
    # Rather the same than another: then at worst something is not counted, otherwise it would be counted twice.
    alike = (before.owner, before.job) == (row["owner"], row["job"])
    alike = alike or before.command == row["command"] or before.parent == row["parent"]
    return alike and (row["cpu_children"] >= before.cpu or row["merged"] is not None)


def _met(row: Row, uptime: float, past: Past) -> Seen:
    """A process met for the first time."""
    partial = past.since is None or row["merged"] is not None or row["job"] in past.blurred
    started = uptime
    if past.since is not None:
        started = max(past.since + APART, uptime - lifetime(row["cpu_children"], row["share"], uptime - past.since))
    return Seen(round(started, 3), partial=partial, passed_on=row["cpu_children"], **_traits(row))


def _evened(before: dict[int, Seen], now: dict[int, Seen]) -> dict[int, float]:
    """CPU times of those whose number must be another than the document's. Rounded to seconds, a parent may seem to
    have inherited less than its child had, as if it had not waited for it; then the child's bytes would be counted
    again as the parent's own. And no time ever goes back.
    """
    owed = inherited(_used(before), _used(now))
    found = {}
    for pid, seen in now.items():
        earlier = before.get(pid)
        if earlier is None or earlier.started != seen.started:
            continue
        least = earlier.passed_on + owed.get(Ident(pid, seen.started), 0.0)
        told = least if seen.cpu < least <= seen.cpu + ROUNDED else seen.cpu
        found[pid] = max(told, min(earlier.passed_on, seen.cpu + ROUNDED))
    return found


def _used(seen: dict[int, Seen]) -> dict[Ident, Used]:
    return {Ident(pid, one.started): Used(one.parent, 0, 0.0, one.passed_on) for pid, one in seen.items()}


def lifetime(cpu: float, share: float, most: float) -> float:
    """About how long ago a process started, at most `most` seconds. The time counts its children, the share does not,
    so this errs on the long side, and never shows more work than there was time for.
    """
    if share > 0:
        return min(most, cpu / share)
    return most if cpu else 0.0


def _traits(row: Row) -> dict[str, Any]:
    return {"cpu": row["cpu_children"], **{name: row[name] for name in ("owner", "job", "command", "parent")}}
