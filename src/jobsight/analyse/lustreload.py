"""Who loads which target of a Lustre file system: what pages and commands ask of the tables of `analyse.lustre`.

Whole targets are everybody's to see, as machines are; of what users and jobs did, a viewer's own. Rates are means
over steps of which something is known; that of the step that is still filling, over what was observed of it.
"""

from math import ceil
from typing import Any, NamedTuple

from jobsight.analyse.lustre import COUNTERS, HOUR, METADATA, OPERATIONS, STEP, TIME, unit
from jobsight.analyse.lustresql import decade
from jobsight.store.protocol import Store
from jobsight.store.sight import Sight, within

# A longer time than this is shown by the hour (seconds).
FINE = 2 * 86400.0
# Users that have a line of their own.
USERS = 8
# The trend is the mean of the last minutes against that of the day (seconds).
SHORT, LONG = 600.0, 86400.0
# A step is complete so long after its end (seconds): the next scan, and its way to us.
LAG = 180.0
# So many times as much, or as little, is a change.
CHANGE = 2.0
# What rows are put together by; the first is the name. Jobs that have none are each user's own.
BY = {
    "user": ("owner",),
    "account": ("account",),
    "job": ("job", "job_key", "owner"),
    "node": ("host",),
    "program": ("executable",),
}
# What loads a target most, in one number: bytes of an OST, operations of an MDT.
MEASURES = {
    "read": ("read_bytes",),
    "written": ("write_bytes",),
    "metadata": tuple(METADATA),
}
MAIN = {"ost": ("read_bytes", "write_bytes"), "mdt": tuple(METADATA)}


class Load(NamedTuple):
    """What one user or job asked of a target in a time."""

    target: str
    kind: str
    owner: str
    job_key: str
    amount: float
    """Bytes of an object target, operations of a metadata target."""
    share: float
    """Of all that was asked of the target."""


def summed(names: tuple[str, ...], of: str = "") -> str:
    """The sum over rows of several counters, of which some may be missing."""
    return "sum(" + " + ".join(f"coalesce({of}{name}, 0)" for name in names) + ")"


def loads(store: Store, since: float, until: float) -> list[Load]:
    """By target, user and job, largest share first: what is worth telling of who hammers a target."""
    span = (since // STEP * STEP, until)
    found = []
    for kind, names in MAIN.items():
        totals = dict(
            store.query(
                f"SELECT target, {summed(names)} FROM lustretotal WHERE kind = ? AND time >= ? AND time < ? "
                "GROUP BY target",
                [kind, *span],
                span,
            )
        )
        rows = store.query(
            f"SELECT target, owner, job_key, {summed(names)} FROM lustreslice WHERE time >= ? AND time < ? "
            "GROUP BY target, owner, job_key",
            span,
            span,
        )
        for target, owner, job_key, amount in rows:
            if amount and totals.get(target):
                share = float(amount / totals[target])
                found.append(Load(target, kind, owner, job_key, float(amount), share))
    return sorted(found, key=lambda load: (-load.share, load))


class Loads:
    """The tables as one viewer sees them."""

    def __init__(self, store: Store, sight: Sight | None = None) -> None:
        self._store, self._sight = store, sight

    def targets(self, since: float, until: float) -> list[dict[str, Any]]:
        """Every target that was heard of: how loaded, and whether that changes."""
        listed = ", ".join(f"{summed(names)} AS {name}" for name, names in MEASURES.items())
        # Clusters may have file systems of the same name.
        rows = self._store.query(
            f"SELECT target, kind, sum(observed), sum({_length(until)}), max(time), max(entries), "
            f"{', '.join(f'sum({name})' for name in MEASURES)} FROM (SELECT target, kind, time, "
            f"max(observed) AS observed, sum(entries) AS entries, {listed} FROM lustretotal "
            "WHERE time >= ? AND time < ? GROUP BY target, kind, time) AS steps "
            "GROUP BY target, kind ORDER BY kind, target",
            [since // STEP * STEP, until],
            (since - STEP, until),
        )
        changes = self._trends(until)
        found = []
        for target, kind, observed, length, last, entries, *amounts in rows:
            rates = {f"{name}_rate": _per(amount, length) for name, amount in zip(MEASURES, amounts, strict=True)}
            seen = min(1.0, observed / max(STEP, until - since))
            said = {"target": target, "kind": kind, "observed": seen, "last": last + STEP, "entries": int(entries)}
            found.append(said | rates | {"trend": changes.get(target)})
        return found

    def _trends(self, until: float) -> dict[str, float]:
        """By target, the mean of the last minutes as a multiple of the day's; none where nothing happened."""
        found = {}
        for kind, names in MAIN.items():
            amount = " + ".join(f"coalesce({name}, 0)" for name in names)
            # The last step is still filling.
            closed = (until - LAG) // STEP * STEP
            lately = f"time >= {closed - SHORT!r}"
            rows = self._store.query(
                f"SELECT target, sum(CASE WHEN {lately} THEN {amount} END), count(CASE WHEN {lately} THEN 1 END), "
                f"sum({amount}), count(*) FROM lustretotal WHERE kind = ? AND time >= ? AND time < ? GROUP BY target",
                [kind, closed - LONG, closed],
                (closed - LONG, closed),
            )
            for target, short, few, long, steps in rows:
                if few and long:
                    found[target] = float(short) / few / (float(long) / steps)
        return found

    def panels(self, target: str, operation: str, since: float, until: float) -> dict[str, Any]:
        """One operation of a target over time: all of it, by user, and how many asked how much."""
        step = STEP if until - since <= FINE else HOUR
        span = _whole(since, until, step)
        total, lengths = self._total(target, operation, span, step, until)
        return {
            "target": target, "operation": operation, "unit": unit(operation), "step": step, "since": span[0],
            "until": until, "total": total, "users": self._users(target, operation, span, step, lengths),
            "density": self._density(target, operation, span, step) if self._sight is None else None,
        }  # fmt: skip

    def _total(
        self, target: str, operation: str, span: tuple[float, float], step: float, until: float
    ) -> tuple[dict[str, list[Any]], dict[float, float]]:
        """The whole target, and how long steps are of which not all is known yet."""
        rows = self._store.query(
            f"SELECT floor(time / {step!r}) * {step!r}, sum({operation}), sum(observed) FROM lustretotal "
            f"WHERE target = ? AND time >= ? AND time < ? GROUP BY floor(time / {step!r}) "
            f"ORDER BY floor(time / {step!r})",
            [target, *span],
            span,
        )
        filling = {at: seen for at, _, seen in rows if 0 < seen < step and at + step > until - LAG}
        found = {
            "time": [row[0] for row in rows],
            "value": [_per(row[1], filling.get(row[0], step)) for row in rows],
            "observed": [min(1.0, row[2] / step) for row in rows],
        }
        return found, filling

    def _users(
        self, target: str, operation: str, span: tuple[float, float], step: float, lengths: dict[float, float]
    ) -> list[dict[str, Any]]:
        """The largest, each with its own line; zeros are left out."""
        table = "lustreslice" if step == STEP else "lustreshare"
        seen, values = within(self._sight, "?")
        rows = self._store.query(
            f"SELECT owner, floor(time / {step!r}) * {step!r}, sum({operation}) FROM {table} WHERE target = ? "
            f"AND time >= ? AND time < ? AND {operation} > 0 AND {seen} GROUP BY owner, floor(time / {step!r})",
            [target, *span, *values],
            span,
        )
        by: dict[str, list[tuple[float, float]]] = {}
        for owner, time, amount in rows:
            by.setdefault(owner, []).append((time, float(amount)))
        ordered = sorted(by, key=lambda owner: (-sum(amount for _, amount in by[owner]), owner))
        found = []
        for owner in ordered[:USERS]:
            points = sorted(by[owner])
            amount = sum(amount for _, amount in points)
            line = {
                "time": [time for time, _ in points],
                "value": [amount / lengths.get(at, step) for at, amount in points],
            }
            found.append({"name": owner, "amount": amount} | line)
        return found

    def _density(
        self, target: str, operation: str, span: tuple[float, float], step: float, members: str = "user"
    ) -> dict[str, list[Any]]:
        """How many users have a rate of each power of ten; over an hour the mean of its steps."""
        if step == STEP:
            rows = self._store.query(
                f"SELECT time, {decade('amount')}, count(*) FROM (SELECT time, owner, "
                f"CAST(sum({operation}) AS DOUBLE PRECISION) AS amount FROM lustreslice WHERE target = ? "
                f"AND time >= ? AND time < ? AND {operation} > 0 GROUP BY time, owner) AS sums "
                f"GROUP BY time, {decade('amount')} ORDER BY time, {decade('amount')}",
                [target, *span],
                span,
            )
        else:
            rows = self._store.query(
                f"SELECT time, decade, sum(cells) / {HOUR / STEP!r} FROM lustredensity WHERE target = ? "
                "AND operation = ? AND members = ? AND time >= ? AND time < ? GROUP BY time, decade "
                "ORDER BY time, decade",
                [target, operation, members, *span],
                span,
            )
        columns = list(zip(*rows, strict=True)) or [(), (), ()]
        return {"time": list(columns[0]), "decade": list(columns[1]), "number": [float(n) for n in columns[2]]}

    def top(
        self, target: str, operation: str, since: float, until: float, by: str = "user", most: int = 50
    ) -> list[dict[str, Any]]:
        """Who asked the most for an operation, with their share of all that the target was asked for."""
        # Steps are few in a short time; over a long one users and accounts have hours.
        hourly = by in ("user", "account") and until - since > FINE
        table, step = ("lustreshare", HOUR) if hourly else ("lustreslice", STEP)
        span = _whole(since, until, step)
        ((whole, length),) = self._store.query(
            f"SELECT sum(amount), sum({_length(until)}) FROM (SELECT time, sum({operation}) AS amount, "
            "max(observed) AS observed FROM lustretotal WHERE target = ? AND time >= ? AND time < ? "
            "GROUP BY time) AS steps",
            [target, *span],
            span,
        )
        seen, values = within(self._sight, "?")
        timed = _timed(operation)
        time = f"sum({timed}{TIME}), sum({timed})" if timed else "NULL, NULL"
        guessed = "0" if hourly else f"sum(CASE WHEN repaired <> '' THEN {operation} ELSE 0 END)"
        names = BY[by]
        rows = self._store.query(
            f"SELECT {', '.join(names)}, min(owner), max(owner), max(account), sum({operation}), {time}, {guessed} "
            f"FROM {table} WHERE target = ? AND time >= ? AND time < ? AND {operation} > 0 AND {seen} "
            f"GROUP BY {', '.join(names)}",
            [target, *span, *values],
            span,
        )
        found = []
        for *which, owner, other, account, amount, seconds, count, repaired in rows:
            found.append({
                by: which[0], **dict(zip(names[1:], which[1:], strict=True)),
                "owner": owner if owner == other else "", "account": account, "amount": int(amount),
                "rate": _per(amount, length or until - span[0]),
                "share": float(amount / whole) if whole else None,
                "latency": float(seconds) / float(count) if seconds is not None and count else None,
                "size": float(amount / count) if unit(operation) == "bytes" and count else None,
                "repaired": float(repaired / amount),
            })  # fmt: skip
        return sorted(found, key=lambda row: (-row["amount"], str(row[by])))[:most]


def checked(operation: str) -> str:
    """ValueError with what is known for an operation that there is not: it becomes part of a statement."""
    if operation not in OPERATIONS:
        raise ValueError(f"no operation {operation!r}; there are {', '.join(OPERATIONS)}")
    return operation


def word(trend: float | None) -> str:
    """A trend in a word."""
    if trend is None:
        return ""
    return "rising" if trend > CHANGE else "falling" if trend < 1 / CHANGE else "steady"


def _whole(since: float, until: float, step: float) -> tuple[float, float]:
    """The steps that a time reaches into: rows are of whole ones."""
    return since // step * step, ceil(until / step) * step


def _length(until: float) -> str:
    """Of a step, in seconds: the last may still be filling."""
    return (
        f"CASE WHEN observed > 0 AND observed < {STEP!r} AND time + {STEP!r} > {until - LAG!r} "
        f"THEN observed ELSE {STEP!r} END"
    )


def _timed(operation: str) -> str | None:
    """The operation whose time is known and that this one is part of: bytes are read by reads."""
    name = operation.removesuffix("_bytes")
    return name if name + TIME in COUNTERS else None


def _per(amount: Any, seconds: Any) -> float | None:
    return float(amount) / float(seconds) if amount is not None and seconds else None
