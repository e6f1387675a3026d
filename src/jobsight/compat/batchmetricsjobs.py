"""Slurm's jobs on this node for the batch job exporter's metrics: whose they are, and what our records leave out.

Whose a job is, in its order: the file its prolog left (`user account nodes`), our own prolog's file, the environment
of one of its processes, which needs capabilities or root. The last two are what the collector `allocation` says.
"""

from collections.abc import Iterable, Mapping, Sequence

from jobsight.collect.allocation import Allocation
from jobsight.collect.cgroup import NO_LIMIT, Cgroup, Tree, tree
from jobsight.collect.memory import Memory
from jobsight.collector import ParseError
from jobsight.compat.batchmetrics import Beside, Group, Owner
from jobsight.formats import keyvalue, pressure
from jobsight.host import Host
from jobsight.serving import Batchjob

# Far more than a prolog writes.
LONGEST_FILE = 65536
EVENTS = frozenset({"oom", "fail"})


def properties(text: str) -> tuple[str, str, str]:
    """User, account and nodes, from a file such as `ada physics n[1-3]`; later words are older releases'."""
    words = text.split()
    if len(words) < 3 or not text.strip().replace("\n", " ").isprintable():
        raise ParseError(f"job properties: expected a user, an account and nodes, got {text[:100]!r}")
    return words[0], words[1], words[2]


def owners(host: Host, path: str, jobs: Iterable[str], rows: Iterable[Allocation]) -> dict[str, Owner]:
    """By the name of the job's control group."""
    known = {row.job: row for row in rows if row.scheduler == "slurm"}
    place = path.strip("/")
    left = set(host.names(place)) if path else set()
    found = {}
    for job in jobs:
        row = known.get(job)
        number = (row.number if row else None) or job
        found[job] = Owner(number)
        if row is not None:
            found[job] = Owner(number, row.owner or "", row.account or "", row.nodes or "")
        if number in left:
            try:
                text = host.piece(f"{place}/{number}", LONGEST_FILE).decode("utf-8", "backslashreplace")
                found[job] = Owner(number, *properties(text))
            except (OSError, ParseError):
                pass  # the epilog was quicker, or it is no file of its prolog's
    return found


def groups(
    host: Host, options: Batchjob, rows: Sequence[Cgroup], owners: Mapping[str, Owner], memory: Memory | None
) -> list[Group]:
    """What there is to tell of each group."""
    mounts = tree(host)
    return [
        Group(owners[row.job], row, beside(host, mounts, row, options, memory))
        for row in rows
        if row.scheduler == "slurm"
    ]


def beside(host: Host, mounts: Tree, row: Cgroup, options: Batchjob, memory: Memory | None) -> Beside:
    """The few files of the group that our own record does without."""
    total = row.memory_limit
    if total is None and row.memory_used is not None and memory is not None:
        total = memory.total
    if "memory" in mounts.legacy:
        return legacy(host, f"{mounts.legacy['memory']}/{row.path}", row, options, memory)._replace(
            memory_total=total
        )
    if mounts.unified is None:
        return Beside(memory_total=total)
    path = f"{mounts.unified}/{row.path}"
    events = keyvalue.chosen(host.glimpse(f"{path}/memory.events") or "", EVENTS)
    waited = pressure.totals(host.glimpse(f"{path}/cpu.pressure") or "") if options.pressure else {}
    most = host.glimpse(f"{path}/memory.swap.max") if options.swap else None
    refused = keyvalue.chosen(host.glimpse(f"{path}/memory.swap.events") or "", EVENTS) if options.swap else {}
    return Beside(
        memory_total=total,
        failures=events.get("oom"),
        cpu_full=waited.get("full"),
        swap_used=row.swap if options.swap else None,
        swap_limit=limit(most, memory.swap_total if memory else None),
        swap_failures=refused.get("fail"),
    )


def legacy(host: Host, path: str, row: Cgroup, options: Batchjob, memory: Memory | None) -> Beside:
    """v1 counts memory and swap together."""
    if not options.swap:
        return Beside(failures=row.limit_hits)
    used, most, failures = (
        host.glimpse(f"{path}/memory.memsw.{name}") for name in ("usage_in_bytes", "limit_in_bytes", "failcnt")
    )
    both = memory.total + memory.swap_total if memory and memory.swap_total is not None else None
    return Beside(
        failures=row.limit_hits,
        swap_used=limit(used, None),
        swap_limit=limit(most, both),
        swap_failures=limit(failures, None),
    )


def limit(text: str | None, most: int | None) -> int | None:
    """A number alone in its file; `most` where that says there is no limit."""
    number = (text or "").strip()
    if not number:
        return None
    if number == "max" or (keyvalue.whole(number, digits=20) and int(number) >= NO_LIMIT):
        return most
    return int(number) if keyvalue.whole(number) else None
