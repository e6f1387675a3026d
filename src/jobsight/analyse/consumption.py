"""Energy, carbon and money of a job, a user, a node, a time: read from the table, and made at once of the hours that
are not in it yet.
"""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from jobsight.analyse.attribution import IDLE, JOB, SYSTEM
from jobsight.analyse.late import HOUR
from jobsight.analyse.takings import SUMS, Asked, Row, Takings
from jobsight.formats.number import ratio, scaled
from jobsight.metering import USUAL, Energy
from jobsight.store.protocol import JobQuery, Store
from jobsight.store.sight import Sight

# Of an amount, what does not change how good it is.
HARDLY = 0.05
KINDS = ("user", "account", "program", "partition", "node", "part", "job")


class Amount(Struct):
    """Energy of one thing, in base units, with how good the figure is."""

    name: str
    jobs: int
    energy: float
    """Joules that its work added."""
    energy_full: float
    """With its part of what nodes take anyway."""
    energy_cards: float
    energy_building: float
    """`energy_full` times what the building takes for each joule."""
    emissions: float
    """Grams of CO2 equivalent, of that."""
    cost: float | None
    currency: str | None
    unsure: float | None
    """Part by which `energy_full` may be more or less: gaps, and time that nobody measured. None: nothing was."""
    coverage: float | None
    """Part of its time that was measured."""
    grade: str
    """The worst of its parts: A meter, B counters, C sensors, D model; empty if nothing is known."""
    sources: list[str]
    factors: list[str]
    """Whose words the emissions are."""
    approximate: bool
    idle_known: bool
    """Whether what nodes take anyway could be told apart."""
    whole: float | None = None
    """Of a node: what it took as it was measured, which its parts add up to."""
    waiting: int = 0
    """Of a job: hours that are not in it yet."""


def amount(name: str, some: Iterable[Row]) -> Amount:
    """The sum of rows."""
    some = list(some)
    total = {key: _total(row.sums[key] for row in some) for key in SUMS}
    seconds, covered, full = total["seconds"] or 0.0, total["covered"] or 0.0, total["energy_full"] or 0.0
    gap = max(0.0, seconds - covered) / covered if covered > 0 else 0.0
    measured = [row for row in some if row.labels["grade"]]
    known = _telling(measured)
    currencies = {row.labels["currency"] for row in measured} - {None}
    # Money of two currencies is no sum.
    currency = currencies.pop() if len(currencies) == 1 else None
    return Amount(
        name=name,
        jobs=len({row.labels["job_key"] for row in some} - {""}),
        energy=total["energy"] or 0.0,
        energy_full=full,
        energy_cards=total["energy_cards"] or 0.0,
        energy_building=sum(row.built for row in some),
        emissions=total["emissions"] or 0.0,
        cost=total["cost"] if currency else None,
        currency=currency,
        # What nobody measured would have been about as much as what was.
        unsure=(total["unsure"] or 0.0) / full + gap if full > 0 and covered > 0 else None,
        coverage=min(1.0, covered / seconds) if seconds > 0 else None,
        grade=max((row.labels["grade"] for row in known), default=""),
        sources=sorted({row.labels["source"] for row in known}),
        factors=sorted({row.labels["factor_source"] for row in known}),
        approximate=any(row.labels["approximate"] for row in known),
        idle_known=bool(known) and all(row.baseline is not None for row in known),
        whole=total["whole"],
    )


def _telling(known: list[Row]) -> list[Row]:
    """Without grades and sources that have hardly a part in it."""
    weight: dict[tuple[str, str, bool], float] = {}
    for row in known:
        kind = row.labels["grade"], row.labels["source"], row.baseline is not None
        weight[kind] = weight.get(kind, 0.0) + (row.sums["energy_full"] or 0.0)
    least = HARDLY * sum(weight.values())
    return [
        row for row in known if weight[row.labels["grade"], row.labels["source"], row.baseline is not None] >= least
    ]


def _total(values: Iterable[float | None]) -> float | None:
    """A sum in which missing is not zero."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


class Consumption:
    """What one store knows, as somebody sees it."""

    def __init__(self, store: Store, options: Energy = USUAL, sight: Sight | None = None) -> None:
        self._store, self._sight = store, sight
        self._takings = Takings(store, options)
        self._known: dict[tuple[str, float, float], dict[str, str]] = {}

    @property
    def waiting(self) -> int:
        """Hours of the last question that are not in its answer yet."""
        return self._takings.waiting

    def of_job(self, document: dict[str, Any], now: float) -> Amount | None:
        """One job's; None where nothing was measured."""
        places = [(document["cluster"], part["node"]) for part in document["parts"]]
        if not places:
            return None
        asked = Asked(document["started"] - HOUR, document["seen"] + HOUR, document["key"], places)
        found = amount(document["key"], self._takings.rows(asked, now))
        found.waiting = self.waiting
        return found if found.grade else None

    def listing(self, by: str, asked: Asked, now: float) -> list[Amount]:
        """Who took how much, most first. Who may not see everything sees jobs in sight, and nothing of nodes."""
        groups: dict[str, list[Row]] = {}
        for row, name in self._named(by, self._takings.rows(asked, now), asked):
            groups.setdefault(name, []).append(row)
        return sorted((amount(name, some) for name, some in groups.items()), key=lambda one: -one.energy_full)

    def timeline(self, by: str, asked: Asked, now: float, width: float) -> dict[str, dict[float, float]]:
        """Joules in full by name and step of time."""
        found: dict[str, dict[float, float]] = {}
        for row, name in self._named(by, self._takings.rows(asked, now, width), asked):
            steps = found.setdefault(name, {})
            begun = row.time // width * width
            steps[begun] = steps.get(begun, 0.0) + (row.sums["energy_full"] or 0.0)
        return found

    def _names(self, by: str, asked: Asked) -> dict[str, str]:
        """What jobs in sight are listed as, by key. Looked up once, and if it matters: there may be a million."""
        if by not in NAMES and self._sight is None:
            return {}
        place = by, asked.since, asked.until
        if place not in self._known:
            query = JobQuery(since=asked.since - HOUR, until=asked.until, limit=10**9, sight=self._sight)
            name = NAMES.get(by, NAMES["job"])
            self._known[place] = {one["key"]: name(one) for one in self._store.jobs(query, asked.until)}
        return self._known[place]

    def _named(self, by: str, found: list[Row], asked: Asked) -> Iterable[tuple[Row, str]]:
        name_of = self._names(by, asked)
        for row in found:
            key, part = row.labels["job_key"], row.labels["part"]
            if self._sight is not None and (part != JOB or key not in name_of):
                continue
            if by == "node":
                yield row, row.node
            elif by == "part":
                yield row, part
            elif part == JOB:
                # Of a job that is no longer known its energy is.
                yield row, name_of.get(key, "")
            else:
                yield row, {SYSTEM: "(system)", IDLE: "(idle)"}[part]


def _program(document: dict[str, Any]) -> str:
    commands = document["commands"]
    return max(commands, key=lambda name: commands[name], default="")


NAMES: dict[str, Callable[[dict[str, Any]], str]] = {
    "user": lambda document: document["owner"],
    "account": lambda document: document["account"],
    "program": _program,
    "partition": lambda document: document["partition"],
    "job": lambda document: document["key"],
}


def sentence(one: dict[str, Any]) -> str:
    """An amount as people read it, with how good it is."""
    said = f"{watthours(one['energy_full'])}, of which {watthours(one['energy'])} by its own work"
    if not one["idle_known"]:
        said = f"{watthours(one['energy_full'])}, idle power not told apart"
    said += f"; {grams(one['emissions'])} of CO₂e"
    if one["cost"] is not None:
        said += f"; {one['cost']:.2f} {one['currency']}"
    return f"{said}; {quality(one)}"


def quality(one: dict[str, Any]) -> str:
    """Grade, source and uncertainty."""
    said = f"grade {one['grade']} ({', '.join(one['sources'])})"
    if one["unsure"]:
        said += f", ± {ratio(one['unsure'])}"
    said += ", shared cards by activity" if one["approximate"] else ""
    return said + (f", {one['waiting']} hours still to be reckoned" if one.get("waiting") else "")


def watthours(joules: float) -> str:
    return scaled(joules / 3600.0, 1000, ("Wh", "kWh", "MWh", "GWh"))


def grams(value: float) -> str:
    return scaled(value, 1000, ("g", "kg", "t"))


def outlook(one: dict[str, Any], request: dict[str, Any]) -> str:
    """What the run took, and what it would take with the next request: the same work, and less that is held."""
    said = f"It took {watthours(one['energy_building'])} and {grams(one['emissions'])} of CO₂e"
    said += "" if one["cost"] is None else f" for {one['cost']:.2f} {one['currency']}"
    held, following = request["core_hours"], request["core_hours_next"]
    if held and following is not None and one["idle_known"] and following < 0.95 * held and one["energy_full"] > 0:
        less = (one["energy_full"] - one["energy"]) * (1 - following / held) / one["energy_full"]
        said += f"; with this about {ratio(less)} less"
    return f"{said} (grade {one['grade']})."
