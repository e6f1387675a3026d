"""Who submits what, and when."""

from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from jobsight.simulate import series
from jobsight.simulate.draft import Draft
from jobsight.simulate.healthy import HEALTHY
from jobsight.simulate.misfit import FAILURES, MISFITS
from jobsight.simulate.site import Site, User
from jobsight.simulate.work import length

DAY = 86400.0
# Of what is drawn: jobs with a misfit, jobs that fail, arrays.
MISFIT, FAILURE, ARRAY = 0.12, 0.06, 0.03
# Requeued if a node fails, in this part of the jobs.
REQUEUED = 0.7


class Submission(NamedTuple):
    """One job on its way to the queue."""

    time: float
    user: User
    draft: Draft
    array: int | None = None
    """Submissions with the same number are tasks of one array."""
    task: int | None = None
    urgent: bool = False
    """Goes before all that wait: what is planted must have run before the end."""


class Window(NamedTuple):
    """The time in which people submit."""

    begin: float
    seconds: float


class Sure(NamedTuple):
    """What is planted for certain, in the time that is looked at."""

    span: Window
    sets: int
    """So many of each misfit and failure."""
    scalings: int
    """So many series of one run on more and more cores."""


def demand(site: Site, span: Window, load: float, sure: Sure, chance: Random) -> list[Submission]:
    """Enough for this part of the cores of every partition. What would take more than a third of a partition is
    left out, and of what is planted what does not fit.
    """
    room = {node.make.partition: 0.0 for node in site.nodes}
    for node in site.nodes:
        room[node.make.partition] += load * span.seconds * node.make.cores
    found: list[Submission] = []
    for batch in _batches(site, sure, chance):
        fit = [one for one in batch if one.draft.nodes <= len(site.partition(one.draft.partition))]
        found += [one._replace(urgent=True) for one in fit]
        for one in fit:
            room[one.draft.partition] -= _cost(one.draft)
    drawn = 0
    while room["normal"] > 0:
        drawn += 1
        batch = _drawn(site, span, drawn, chance)
        for one in batch:
            most = max(1, len(site.partition(one.draft.partition)) // 3)
            if room[one.draft.partition] > 0 and one.draft.nodes <= most:
                room[one.draft.partition] -= _cost(one.draft)
                found.append(one)
    return sorted(found, key=lambda one: one.time)


def _batches(site: Site, sure: Sure, chance: Random) -> Iterator[list[Submission]]:
    """Early in each part of the time, so that it has ended before the end."""
    users, (span, sets, scalings) = site.users, sure
    for turn in range(sets):
        part = Window(span.begin + turn * span.seconds / sets, 0.3 * span.seconds / sets)
        for make in (*MISFITS, *FAILURES):
            yield _one(make, chance.choice(users), part, chance)
        for number, many in enumerate((series.vampire, series.whale, series.array)):
            user = users[(turn + number) % len(users)]
            yield _many(many(chance, user), user, part, 10**6 + 10 * turn + number, chance)
    for number in range(scalings):
        user = chance.choice(users)
        time = span.begin + 600 + 0.5 * span.seconds * number / scalings
        yield [Submission(time + 60 * k, user, d) for k, d in enumerate(series.scaling(chance, user, number + 1))]


def _drawn(site: Site, span: Window, number: int, chance: Random) -> list[Submission]:
    user = chance.choices(site.users, [user.appetite for user in site.users])[0]
    draw = chance.random()
    if draw < ARRAY:
        return _many(series.array(chance, user), user, span, number, chance)
    if draw < ARRAY + MISFIT:
        return _one(chance.choice(MISFITS), user, span, chance)
    if draw < ARRAY + MISFIT + FAILURE:
        return _one(chance.choice(FAILURES), user, span, chance)
    make = chance.choices([make for make, _ in HEALTHY], [weight for _, weight in HEALTHY])[0]
    return _one(make, user, span, chance)


def _one(make: Callable[[Random, User], Draft], user: User, span: Window, chance: Random) -> list[Submission]:
    draft = make(chance, user)._replace(requeue=chance.random() < REQUEUED)
    return [Submission(_when(span, chance), user, draft)]


def _many(drafts: list[Draft], user: User, span: Window, array: int, chance: Random) -> list[Submission]:
    time = _when(span, chance)
    if drafts[0].kind == "array":
        return [Submission(time, user, draft, array, index) for index, draft in enumerate(drafts)]
    # Those who send one by one send for hours.
    return [Submission(time + float(round(k * 60)), user, draft) for k, draft in enumerate(drafts)]


def _when(span: Window, chance: Random) -> float:
    """By day more than by night, on weekdays more than on others."""
    while True:
        time = float(round(span.begin + chance.random() * span.seconds))
        hour, weekday = time % DAY / 3600, int(time // DAY + 3) % 7
        if chance.random() < (1.0 if 8 <= hour < 18 else 0.4) * (1.0 if weekday < 5 else 0.5):
            return time


def _cost(draft: Draft) -> float:
    return draft.nodes * draft.cores * min(length(draft.phases), draft.limit)
