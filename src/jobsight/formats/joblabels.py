"""What a job is called and what it was given, as a prolog wrote it or as the scheduler put it in the environment.

A prolog's file has lines `key=value`; an environment has `NAME=value` ended by zero bytes. Of an environment only the
variables named here are looked at. Both may hold what a user made up: every value is checked, and one that is not
what its name promises is refused alone, the others stay.
"""

import re
from typing import NamedTuple

from jobsight.collector import ParseError
from jobsight.formats.keyvalue import whole

# Far more than a prolog writes, and more than the node list of any job we heard of.
LONGEST_FILE = 65536
LONGEST_VALUE = 4096

# The variables of each scheduler, and what they tell. Only those that it sets for every job: others, as Slurm's
# SLURM_JOB_GPUS and SLURM_RESTART_COUNT, may be left from the job out of which this one was submitted. (So may the
# name of a script that came by standard input and was given none; all others have their own.)
VARIABLES = {
    "slurm": {
        "SLURM_JOB_ID": "number",
        "SLURM_JOB_SLUID": "sluid",
        "SLURM_JOB_ACCOUNT": "account",
        "SLURM_JOB_PARTITION": "partition",
        "SLURM_JOB_NAME": "name",
        "SLURM_JOB_NODELIST": "nodes",
        "SLURM_JOB_CPUS_PER_NODE": "cpus",
    },
    "pbs": {"PBS_JOBID": "number", "PBS_ACCOUNT": "account", "PBS_QUEUE": "partition", "PBS_JOBNAME": "name"},
    "lsf": {
        "LSB_JOBID": "number",
        "LSB_PROJECT_NAME": "account",
        "LSB_QUEUE": "partition",
        "LSB_JOBNAME": "name",
    },
    "gridengine": {"JOB_ID": "number", "SGE_ACCOUNT": "account", "QUEUE": "partition", "JOB_NAME": "name"},
}

_KEY = re.compile(r"[a-z_]+")
_PATTERNS = {
    scheduler: re.compile(b"(?:^|(?<=\\0))(" + "|".join(names).encode() + b")=([^\\0]*)\\0")
    for scheduler, names in VARIABLES.items()
}


class Labels(NamedTuple):
    """What one source says of a job; None where it says nothing."""

    number: str | None = None
    sluid: str | None = None
    owner: str | None = None
    uid: str | None = None
    account: str | None = None
    partition: str | None = None
    name: str | None = None
    nodes: str | None = None
    cpus: str | None = None
    devices: str | None = None
    restarts: str | None = None


# What a value must look like, where more is known than that it can be printed. A SLUID never looks like a number.
SHAPES = {
    "sluid": re.compile(r"s[0-9A-Za-z]{13}"),
    "uid": re.compile(r"[0-9]{1,10}"),
    "restarts": re.compile(r"[0-9]{1,9}"),
    "cpus": re.compile(r"[0-9]{1,9}(\(x[0-9]{1,9}\))?(,[0-9]{1,9}(\(x[0-9]{1,9}\))?)*"),
}


def of_file(content: bytes) -> tuple[str, Labels, list[str]]:
    """The scheduler, what the prolog's file says, and which values were refused. Keys of later releases are passed
    over; a line of another shape, or a key twice, means that the file is not a prolog's.
    """
    if len(content) >= LONGEST_FILE:
        raise ParseError(f"prolog file: expected less than {LONGEST_FILE} bytes, got {len(content)} or more")
    text = content.decode("utf-8", "backslashreplace")
    found: dict[str, str] = {}
    for line in text.removesuffix("\n").split("\n"):
        key, equals, value = line.partition("=")
        if not equals or not _KEY.fullmatch(key) or key in found:
            raise ParseError(f"prolog file: expected lines key=value, each key once, got {line[:100]!r}")
        found[key] = value
    scheduler = found.pop("scheduler", "")
    labels, refused = checked({key: value for key, value in found.items() if key in Labels._fields})
    if scheduler not in VARIABLES or labels.number is None:
        raise ParseError(f"prolog file: expected a scheduler we know and a number, got {text[:100]!r}")
    return scheduler, labels, refused


def of_environ(scheduler: str, environ: bytes, *, batch: bool) -> tuple[Labels, list[str]]:
    """What a process's environment says, and which values were refused. `batch`: it is of the job's own script; in a
    step of Slurm's the job's name may be the step's. Of a variable that is there twice the first counts, as for
    getenv(3). An end without its zero byte was cut off.
    """
    found: dict[str, str] = {}
    for name, value in _PATTERNS[scheduler].findall(environ):
        field = VARIABLES[scheduler][name.decode()]
        if batch or field != "name":
            found.setdefault(field, value.decode("utf-8", "backslashreplace"))
    return checked(found)


def named(environ: bytes) -> bytes:
    """The environment without all that is not named here: it may hold secrets."""
    names = {name.encode() for variables in VARIABLES.values() for name in variables}
    return b"".join(item + b"\0" for item in environ.split(b"\0") if item.partition(b"=")[0] in names)


def checked(found: dict[str, str]) -> tuple[Labels, list[str]]:
    """The values that are what they should be, and the names of the others. An empty one says nothing."""
    texts = {key: value.strip() for key, value in found.items() if value.strip()}
    good = {key: value for key, value in texts.items() if _sound(key, value)}
    return Labels(**good), sorted(texts.keys() - good.keys())


def merged(first: Labels, second: Labels) -> Labels:
    """The first, and what it leaves open from the second."""
    return Labels(*(mine if mine is not None else other for mine, other in zip(first, second, strict=True)))


def cpus_here(text: str | None) -> int | None:
    """CPUs on this node, from `4` or `4(x3)`. From `4(x3),2` one would have to know which of the nodes it is."""
    number = (text or "").partition("(")[0]
    return int(number) if whole(number, digits=9) and "," not in (text or "") else None


def _sound(key: str, value: str) -> bool:
    if len(value) > LONGEST_VALUE or not value.isprintable():
        return False
    shape = SHAPES.get(key)
    return shape is None or shape.fullmatch(value) is not None
