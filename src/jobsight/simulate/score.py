"""Findings set against what was planted: how many of them are right, and how many were missed."""

from collections.abc import Iterable
from typing import NamedTuple

from jobsight.analyse.case import Scene
from jobsight.analyse.finding import JOB, Found
from jobsight.simulate.draft import Misfit
from jobsight.simulate.plan import Plan
from jobsight.simulate.truth import Truth

# A clock and a sample may be so far off (seconds).
NEAR = 120.0
# Jobs that lived for less are not long enough to be anything.
LONG = 2400.0
# What a node or the batch system cut off may never have come to what was planted.
CUT = frozenset({"NODE_FAIL", "CANCELLED", "PENDING"})
OF_USERS = frozenset({Misfit.VAMPIRE, Misfit.WHALE})
OF_NODES = frozenset({Misfit.RESPONSE})


class Score(NamedTuple):
    """One finding's."""

    code: str
    planted: int
    found: int
    right: int
    """Of those found."""
    missed: tuple[str, ...]
    wrong: tuple[str, ...]

    @property
    def precision(self) -> float | None:
        return self.right / self.found if self.found else None

    @property
    def recall(self) -> float | None:
        return 1 - len(self.missed) / self.planted if self.planted else None


def scores(plan: Plan, scene: Scene, found: Iterable[Found]) -> list[Score]:
    """By code. Planted are those that began and ended in the time that was looked at."""
    known = _truths(plan, scene)
    some = list(found)
    return [_score(Misfit(code), plan, known, [one for one in some if one.code == code]) for code in sorted(Misfit)]


def _truths(plan: Plan, scene: Scene) -> dict[str, Truth]:
    """By the key of the job."""
    lives: dict[tuple[str, str], list[Truth]] = {}
    for truth in plan.truths:
        if truth.started:
            lives.setdefault((truth.scheduler, truth.number), []).append(truth)
    found = {}
    for case in scene.cases:
        job = case.figures
        near = [
            truth
            for truth in lives.get((job.scheduler, job.id), [])
            if abs(truth.start - job.started) <= NEAR and set(job.nodes) <= set(truth.nodes)
        ]
        if near:
            found[job.key] = near[0]
    return found


def _score(code: Misfit, plan: Plan, known: dict[str, Truth], found: list[Found]) -> Score:
    told = {_subject(one, known) for one in found}
    planted = {_name(code, truth) for truth in plan.truths if code in truth.planted}
    sure = {_name(code, truth) for truth in plan.truths if code in truth.planted and _certain(code, truth, plan)}
    return Score(
        code, len(sure), len(told), len(told & planted), tuple(sorted(sure - told)), tuple(sorted(told - planted))
    )


def _subject(one: Found, known: dict[str, Truth]) -> str:
    if one.of != JOB:
        return one.owner or one.subject
    return _life(known[one.subject]) if one.subject in known else one.subject


def _name(code: Misfit, truth: Truth) -> str:
    if code in OF_NODES:
        return truth.nodes[0]
    return truth.user.name if code in OF_USERS else _life(truth)


def _life(truth: Truth) -> str:
    return f"{truth.number}/{truth.restarts}/{truth.nodes[0] if truth.nodes else ''}"


def _certain(code: Misfit, truth: Truth, plan: Plan) -> bool:
    """Whether it can be seen: it ran in that time from begin to end, and long enough."""
    if truth.ending.state in CUT or not truth.started or truth.end > plan.end or truth.start < plan.wish.begin:
        return False
    if code is Misfit.STRAY:
        # The process that is left behind is what is seen of it.
        return truth.kind == "stray" and truth.end - truth.start >= LONG
    return code in OF_USERS or truth.end - truth.start >= LONG


def table(scores: Iterable[Score]) -> str:
    """For people, in Markdown."""
    lines = ["| finding | planted | found | right | precision | recall |", "|---|--:|--:|--:|--:|--:|"]
    for one in scores:
        parts = ["—" if value is None else f"{value:.3f}" for value in (one.precision, one.recall)]
        lines.append(f"| `{one.code}` | {one.planted} | {one.found} | {one.right} | {parts[0]} | {parts[1]} |")
    return "\n".join(lines)
