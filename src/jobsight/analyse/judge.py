"""Runs findings over what happened. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from jobsight import catalogue
from jobsight.analyse.case import Case, Scene
from jobsight.analyse.finding import JOB, Finding, Found, Mark, number

Limits = Mapping[str, Any]
"""Thresholds by the code of the finding."""


def judge(scene: Scene, limits: Limits | None = None, only: Iterable[str] = ()) -> list[Found]:
    """All that is to be told, what wastes the most first. `only` those codes, if there are any."""
    chosen = set(only)
    active = [(one, _limits(one, limits)) for one in catalogue.findings() if one.code in chosen or not chosen]
    active = [(one, bounds) for one, bounds in active if bounds.enabled]
    found = []
    of_jobs = [(one, bounds) for one, bounds in active if one.of == JOB]
    for case in scene.cases:
        marks = [
            (one, mark) for one, bounds in of_jobs if one.applies(case, bounds) and (mark := one.judge(case, bounds))
        ]
        if marks:
            muted = {code for one, _ in marks for code in one.instead_of}
            found += [_of_job(one, case, mark) for one, mark in marks if one.code not in muted]
    for one, bounds in active:
        if one.of != JOB:
            found += [_of_many(one, mark, scene) for mark in one.judge(scene, bounds)]
    return sorted(found, key=_weight)


def _limits(one: Finding, limits: Limits | None) -> Any:
    return (limits or {}).get(one.code, one.limits)


def _weight(found: Found) -> tuple[float, ...]:
    """A card's hour is worth many cores' hours."""
    cost = (found.core_hours or 0.0) + 50 * (found.gpu_hours or 0.0) + 0.2 * (found.gib_hours or 0.0)
    return (-cost, -found.end)


def _of_job(one: Finding, case: Case, mark: Mark) -> Found:
    job = case.figures
    return Found(
        id=number(one.code, job.cluster, job.key, 0.0),
        code=one.code,
        title=one.title,
        of=JOB,
        subject=job.key,
        cluster=job.cluster,
        owner=job.owner,
        account=job.account,
        number=job.number or job.id,
        nodes=list(mark.nodes or job.nodes),
        jobs=[job.key],
        begin=job.started if mark.begin is None else mark.begin,
        end=case.end if mark.end is None else mark.end,
        going=case.going,
        sentence=mark.sentence,
        why=one.why,
        how=one.how,
        figures={name: float(value) for name, value in mark.figures.items()},
        confidence=mark.confidence or case.confidence,
        severity=mark.severity or mark.waste.severity,
        **mark.waste._asdict(),
    )


def _of_many(one: Finding, mark: Mark, scene: Scene) -> Found:
    begin, end = mark.begin or scene.begin, mark.end or scene.end
    return Found(
        id=number(one.code, mark.cluster, mark.subject, begin),
        code=one.code,
        title=one.title,
        of=one.of,
        subject=mark.subject,
        cluster=mark.cluster,
        owner=mark.owner,
        account=mark.account,
        number="",
        nodes=list(mark.nodes),
        jobs=list(mark.jobs),
        begin=begin,
        end=end,
        going=mark.going,
        sentence=mark.sentence,
        why=one.why,
        how=one.how,
        figures={name: float(value) for name, value in mark.figures.items()},
        confidence=mark.confidence or "medium",
        severity=mark.severity or mark.waste.severity,
        **mark.waste._asdict(),
    )


class Backtest(NamedTuple):
    """What changed thresholds would tell, against those in force."""

    before: list[Found]
    after: list[Found]

    @property
    def added(self) -> list[Found]:
        return _without(self.after, self.before)

    @property
    def gone(self) -> list[Found]:
        return _without(self.before, self.after)

    def counts(self) -> dict[str, int]:
        """Jobs, users and nodes, and whose they are."""
        return {
            f"{name}_{when}": len(set(map(of, some)) - {""})
            for when, some in (("before", self.before), ("after", self.after))
            for name, of in COUNTED.items()
        }


COUNTED: dict[str, Callable[[Found], Any]] = {
    "findings": lambda found: found.id,
    "subjects": lambda found: (found.of, found.cluster, found.subject),
    "users": lambda found: found.owner,
}


def backtest(
    scene: Scene, limits: Limits, changed: Limits, asked: Callable[[Found], bool] = lambda _: True
) -> Backtest:
    """Which of the findings whose thresholds are changed there would be, and which there are; those `asked` for."""
    only = [one.code for one in catalogue.findings() if _limits(one, limits) != _limits(one, changed)]
    # Others are looked at too: one finding may be told in place of another.
    before, after = judge(scene, limits), judge(scene, changed)
    touched = {code for one in catalogue.findings() if one.code in only for code in (one.code, *one.instead_of)}
    chosen = ([found for found in some if found.code in touched and asked(found)] for some in (before, after))
    return Backtest(*chosen)


def _without(some: list[Found], others: list[Found]) -> list[Found]:
    # What is told of a user may begin at another time with another threshold, and is the same.
    known = {(found.code, found.cluster, found.subject) for found in others}
    return [found for found in some if (found.code, found.cluster, found.subject) not in known]
