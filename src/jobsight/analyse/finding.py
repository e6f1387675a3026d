"""What a finding is: something worth telling somebody, with its thresholds, its evidence and what to do about it.

A finding is one file in `analyse/findings`: a function of that name that looks at one job, or at everything that
happened in a time, and says what it saw. Its thresholds are a named tuple beside it, which settings may change.
"""

import sys
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar, get_type_hints

from msgspec import Struct

HOUR = 3600.0
GIB = 2**30
# What was wasted, from which on it is more than a matter of style: core-hours, GPU-hours, GiB-hours.
MATTERS = (100.0, 10.0, 2000.0)
# So many times that is a matter for today.
URGENT = 10.0
SEVERITIES = ("careful", "warning", "critical")
JOB, USER, NODE = "job", "user", "node"


class Waste(NamedTuple):
    """What others could have had. None where that is not the point."""

    core_hours: float | None = None
    gpu_hours: float | None = None
    gib_hours: float | None = None

    @property
    def severity(self) -> str:
        worst = max((value or 0.0) / bound for value, bound in zip(self, MATTERS, strict=True))
        return SEVERITIES[0 if worst < 1 else 1 if worst < URGENT else 2]


class Mark(NamedTuple):
    """What one finding saw. Of a job's own what is not said is the job's: its nodes, its time."""

    sentence: str
    figures: dict[str, float]
    """The numbers it was judged by, in base units."""
    waste: Waste = Waste()
    nodes: tuple[str, ...] = ()
    begin: float | None = None
    end: float | None = None
    subject: str = ""
    """A user or node, where it is not about one job."""
    cluster: str = ""
    owner: str = ""
    account: str = ""
    jobs: tuple[str, ...] = ()
    """The keys of the jobs it is about."""
    confidence: str = ""
    going: bool = False
    """Whether it still holds, where it is not about one job."""
    severity: str = ""
    """As what was wasted says, if not said."""


class Finding(NamedTuple):
    """One kind of finding."""

    code: str
    title: str
    of: str
    """What it is about: `job`, `user` or `node`."""
    why: str
    how: str
    instead_of: tuple[str, ...]
    """Findings that need not be told of a job of which this one is."""
    limits: Any
    """Its thresholds as they are if settings say nothing."""
    applies: Callable[[Any, Any], bool]
    judge: Callable[[Any, Any], Any]


class Found(Struct):
    """A finding about somebody, as it is kept and shown."""

    id: str
    code: str
    title: str
    of: str
    subject: str
    """The key of a job, or the name of a user or a node."""
    cluster: str
    owner: str
    account: str
    number: str
    """What people know the job by; empty if it is not about one."""
    nodes: list[str]
    jobs: list[str]
    begin: float
    end: float
    """When it was seen to be so."""
    going: bool
    """Whether that still was so when it was last looked at."""
    sentence: str
    why: str
    how: str
    figures: dict[str, float]
    confidence: str
    severity: str
    core_hours: float | None
    gpu_hours: float | None
    gib_hours: float | None


Judge = TypeVar("Judge", bound=Callable[..., Any])


def finding(
    title: str,
    why: str,
    how: str,
    *,
    of: str = JOB,
    applies: Callable[[Any, Any], bool] = lambda *_: True,
    instead_of: Iterable[str] = (),
) -> Callable[[Judge], Judge]:
    """Declare the finding that a module is about. The function's last argument says what its thresholds are."""

    def declared(judge: Judge) -> Judge:
        hints = get_type_hints(judge, vars(sys.modules[judge.__module__]))
        limits = [hint for name, hint in hints.items() if name != "return"][-1]
        found = Finding(judge.__name__, title, of, why, how, tuple(instead_of), limits(), applies, judge)
        judge.finding = found  # type: ignore[attr-defined]
        return judge

    return declared


def number(code: str, cluster: str, subject: str, begin: float) -> str:
    """What people name a finding by: the same whenever it is found again."""
    return sha256(f"{code}\0{cluster}\0{subject}\0{begin:.0f}".encode()).hexdigest()[:10]
