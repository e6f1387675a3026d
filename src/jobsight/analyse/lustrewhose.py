"""Whose an entry of a Lustre target is: the job it names, or the one it must be of where it names none. Pure.

A client that cannot read a job's environment at once leaves the job out, and one that is overtaken while it writes
the identifier sends a torn one. If a user had exactly one job on a node then, what that user did there is that job's.
A torn identifier is that of the one live entry of the target that begins with it, or that it has a domain more than.
What was read stays as it is: only what is made of it says `repaired`, and is made again when more is known.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from jobsight.analyse.lustre import STEP, SYSTEM
from jobsight.serving import Lustre

MALFORMED = "malformed"
# Clocks of clients, servers and schedulers may differ by so much, and what was written is sent a little later.
SLACK = 60.0
# What stands between the parts of identifiers.
SIGNS = ":.@"
# Columns of the rows of `labels`.
NAMES = ("cluster", "target", "entry", "step", "owner", "account", "job_key", "job", "host", "repaired")
Label = tuple[str, ...]


class Line(NamedTuple):
    """A series as its rows describe it, and when there were such."""

    cluster: str
    target: str
    entry: str
    job: str | None
    uid: int | None
    host: str | None
    form: str
    first: float
    last: float


class Life(NamedTuple):
    """A job: whose, where and when."""

    key: str
    cluster: str
    number: str
    owner: str
    account: str
    started: float
    seen: float
    nodes: tuple[str, ...]
    uid: int | None = None
    """The owner's number, where the scheduler told it."""


def life(document: dict[str, Any], nodes: Sequence[str], uid: int | None) -> Life:
    """Of a stored job."""
    return Life(
        document["key"],
        document["cluster"],
        document["number"] or document["id"],
        document["owner"],
        document["account"],
        document["started"],
        document["seen"],
        tuple(nodes),
        uid,
    )


class Whose:
    """What is known when lines are told whose they are."""

    def __init__(self, lives: Sequence[Life], name: Callable[[int], str], options: Lustre | None = None) -> None:
        self._options = options or Lustre()
        self._name = name
        # A scheduler knows users that this machine may not know.
        self._told = {(one.cluster, one.uid): one.owner for one in lives if one.uid is not None}
        # File systems may be of no cluster that has jobs; clusters may give one number to different users.
        self._owners: dict[int, set[str]] = {}
        for (_, uid), owner in self._told.items():
            self._owners.setdefault(uid, set()).add(owner)
        self._numbered: dict[str, list[Life]] = {}
        self._placed: dict[tuple[str, str], list[Life]] = {}
        for one in lives:
            self._numbered.setdefault(one.number, []).append(one)
            for node in one.nodes:
                self._placed.setdefault((one.owner, short(node)), []).append(one)

    def labels(self, lines: Sequence[Line], span: tuple[float, float]) -> list[Label]:
        """A row for each line, its step empty; and one for each step of the time in which a job was found for it."""
        found = []
        live = _Live(line for line in lines if line.form != MALFORMED)
        for line in lines:
            meant = live.meant(line) if line.form == MALFORMED else None
            whose = line if meant is None else line._replace(job=meant.job, uid=meant.uid, host=meant.host)
            found.append(self._label(whose, "" if meant is None else "torn"))
            if not whose.job and whose.host and whose.uid is not None and found[-1][4] != SYSTEM:
                found += self._placed_labels(whose, whose.uid, span)
        return found

    def _label(self, line: Line, how: str) -> Label:
        place = (line.cluster, line.target, line.entry)
        if line.uid is not None and line.uid < self._options.system_below and self._options.system != "keep":
            return (*place, "", SYSTEM, "", "", "", "", "")
        job = self._named(line) if line.job else None
        if job is None:
            owner = "" if line.uid is None else self._owner(line.cluster, line.uid)
            return (*place, "", owner, "", "", line.job or "", line.host or "", how)
        return (*place, "", job.owner, job.account, job.key, line.job or "", line.host or "", how)

    def _owner(self, cluster: str, uid: int) -> str:
        if (cluster, uid) in self._told:
            return self._told[cluster, uid]
        owners = self._owners.get(uid, set())
        return min(owners) if len(owners) == 1 else self._name(uid)

    def _agrees(self, line: Line, one: Life) -> bool:
        """Whether the user in an identifier is the job's: a client's environment can name any job."""
        if line.uid is None:
            return True
        if one.uid is not None:
            return one.uid == line.uid
        return self._owner(line.cluster, line.uid) in (one.owner, str(line.uid))

    def _named(self, line: Line) -> Life | None:
        """The job of the number. One that several clusters use then is nobody's, unless one is the servers' own."""
        then = [
            one
            for one in self._numbered.get(line.job or "", ())
            if _meets(one, line.first, line.last) and self._agrees(line, one)
        ]
        near = [one for one in then if one.cluster == line.cluster] or then
        return near[0] if len(near) == 1 else None

    def _placed_labels(self, line: Line, uid: int, span: tuple[float, float]) -> list[Label]:
        host = line.host or ""
        lives = self._placed.get((self._owner(line.cluster, uid), short(host)), ())
        found: list[Label] = []
        for number in range(int(span[0] // STEP), int(-(-span[1] // STEP))) if lives else ():
            then = [one for one in lives if _meets(one, number * STEP, (number + 1) * STEP)]
            if len(then) == 1:
                (one,) = then
                place = (line.cluster, line.target, line.entry, str(number))
                found.append((*place, one.owner, one.account, one.key, one.number, host, "node"))
        return found


class _Live:
    """Identifiers that are whole, by target, to find those that a torn one may be of."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._lines: dict[tuple[str, str], dict[str, Line]] = {}
        for line in lines:
            self._lines.setdefault((line.cluster, line.target), {})[line.entry] = line
        self._sorted = {place: sorted(known) for place, known in self._lines.items()}

    def meant(self, torn: Line) -> Line | None:
        """The one that it must be; None if there is none or several."""
        known = self._lines.get((torn.cluster, torn.target), {})
        ordered = self._sorted.get((torn.cluster, torn.target), [])
        text = torn.entry
        if not text.strip(SIGNS):
            return None
        # They are written part by part: one that ends within a part is somebody else's.
        begins = []
        for part in [text] if text[-1] in SIGNS else [text + sign for sign in SIGNS]:
            place = bisect_left(ordered, part)
            begins += [entry for entry in ordered[place : place + 2] if entry.startswith(part)]
        longer = [text[:end] for end, sign in enumerate(text) if sign == "." and text[:end] in known]
        found = {*begins, *longer}
        return known[found.pop()] if len(found) == 1 else None


def short(node: str) -> str:
    """A node's name without its domain: clients and schedulers write either."""
    return node.partition(".")[0]


def _meets(one: Life, first: float, last: float) -> bool:
    return one.started - SLACK <= last and one.seen + SLACK >= first
