"""What is kept of the use of a Lustre file system: tables made of the rows that its servers send.

`lustreslice` has who asked what of which target in five minutes; `lustretotal` the whole of each target, and whether
it was seen; `lustreshare` hours by user; `lustredensity` how many users or jobs asked how much. Parts add up to the
whole: all of them are made of the same increments (`analyse.increment`). The columns of operations are those of the
two records that servers send.
"""

from types import NoneType
from typing import Any

from jobsight.collect.lustremdt import Lustremdt
from jobsight.collect.lustreost import Lustreost
from jobsight.schema.record import Field, counter, fields_of, gauge, label, record
from jobsight.schema.units import Bytes, Count, Seconds

STEP = 300.0
HOUR = 3600.0
KINDS: dict[str, type[Any]] = {"ost": Lustreost, "mdt": Lustremdt}
TABLES = {"ost": "lustreost", "mdt": "lustremdt"}
# Whose messages change what is known of a target.
SOURCES = (*TABLES.values(), "lustrescan")
# The owner of what the system's own users do.
SYSTEM = "(system)"
TIME = "_time"


def counters(kind: str) -> list[str]:
    """What rows of a kind count, in their order."""
    return [field.name for field in fields_of(KINDS[kind]) if field.kind == "counter"]


# Every counter of either kind, once.
COUNTERS: dict[str, Field] = {
    field.name: field for kind in KINDS for field in fields_of(KINDS[kind]) if field.kind == "counter"
}
# What one may ask for: counts and bytes. Times stand beside them.
OPERATIONS = [name for name in COUNTERS if not name.endswith(TIME)]
# Operations on names and attributes, of either kind; their sum is what loads a metadata target.
METADATA = [name for name in OPERATIONS if name not in ("read", "write", "read_bytes", "write_bytes")]


def whole(name: str) -> bool:
    """Whether a counter has whole numbers."""
    return COUNTERS[name].unit is not Seconds


def _counting(cls: type[Any]) -> type[Any]:
    """A declaration with all counters after its own fields."""
    for name, field in COUNTERS.items():
        cls.__annotations__[name] = field.unit | NoneType
        setattr(cls, name, counter(field.help, default=None))
    made: type[Any] = record(cls)
    return made


@_counting
class LustreSlice:
    """Five minutes, which begin at this row's time: what one user, job, node or program asked of one target."""

    target: str = label("The target: scratch-OST0001.")
    job_key: str = label("The job, as the store knows it; empty if it does not.")
    job: str = label("The job's number, or what stands for one; empty if unknown.")
    owner: str = label("The user, by name if that is known, else by number; (system) for the system's own.")
    account: str = label("The account the job is charged to; empty if unknown.")
    host: str = label("The client's name, as it was; empty if unknown.")
    executable: str = label("The program's name; empty if unknown.")
    repaired: str = label(
        "How the job was found where the identifier did not say it: `torn` or `node`; empty where it did."
    )
    entries: Count = gauge("How many entries of the target this was.")


@_counting
class LustreTotal:
    """Five minutes, which begin at this row's time, of one target as a whole. Without a row it was not seen."""

    target: str = label("The target: scratch-OST0001.")
    kind: str = label("mdt or ost.")
    observed: Seconds = gauge("How much of the time lies between good scans.")
    entries: Count = gauge("Users, jobs, nodes and programs that asked something.")


@_counting
class LustreShare:
    """An hour, which begins at this row's time: what one user asked of one target, for one account."""

    target: str = label("The target: scratch-OST0001.")
    owner: str = label("The user; (system) for the system's own.")
    account: str = label("The account; empty if unknown.")
    jobs: Count = gauge("How many jobs.")


@record
class LustreDensity:
    """An hour, which begins at this row's time: how many asked for an operation of one target how often."""

    target: str = label("The target: scratch-OST0001.")
    operation: str = label("The operation: read, write_bytes, open …")
    members: str = label("What is counted: `user` or `job`.")
    decade: Count = label("The rate's power of ten: 2 for 100 up to 1000 a second.")
    cells: Count = gauge("Users or jobs with such a rate, summed over the hour's twelve steps.")


@record
class LustreSeries:
    """A series of counters, described once, when it was first met."""

    identifier: str = label("UUID (version 5) of `<target>:<entry>` in the site's namespace.")
    target: str = label("The target.")
    entry: str = label("The whole identifier that the client gave.")
    job: str | None = label("The job in it.", default=None)
    uid: Count | None = label("The user's number in it.", default=None)
    host: str | None = label("The client's name in it.", default=None)
    executable: str | None = label("The program's name in it.", default=None)
    format: str = label("The format it has, or malformed.")


@record
class LustreDue:
    """Five minutes, which begin at this row's time, in which something was read that is not in slices yet."""

    collector: str = label("Whose message.")


DERIVED: dict[str, type[Any]] = {
    "lustreslice": LustreSlice,
    "lustretotal": LustreTotal,
    "lustreshare": LustreShare,
    "lustredensity": LustreDensity,
    "lustreseries": LustreSeries,
    "lustredue": LustreDue,
}


def unit(operation: str) -> str:
    """`bytes` or `operations`."""
    return "bytes" if COUNTERS[operation].unit is Bytes else "operations"
