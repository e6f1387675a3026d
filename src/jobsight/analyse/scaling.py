"""Will it scale: what one run shows, and the law that several runs of the same program follow."""

from math import sqrt
from typing import Any, NamedTuple

from msgspec import Struct

from jobsight.analyse.ending import ending
from jobsight.analyse.law import Law, Timing, fit
from jobsight.analyse.summary import Summary, summary
from jobsight.analyse.track import Level
from jobsight.formats.number import digits, duration, volume
from jobsight.store.protocol import JobQuery, Store
from jobsight.store.sight import Sight

DAY = 86400.0
# Runs this long before and after are taken to be of the same program (seconds), and at most so many.
NEAR, MOST = 180 * DAY, 500
# So much of one core and no more is busy where one thread works.
ALONE = 1.3
# A serial part below this is not spoken of: to read the input takes as much.
LITTLE = 0.01


class Limits(NamedTuple):
    """When runs tell nothing about each other."""

    runs: int = 4
    sizes: int = 3
    """Different core counts."""
    reach: float = 4.0
    """From the fewest cores to the most, at least."""
    spread: float = 1.35
    """Between the slowest and the quickest run on the same cores."""
    written: float = 1.5
    """Between the most and the least that was written, where it is more than a little."""
    shrunk: float = 0.7
    """Of the CPU time on the fewest cores, what a run on more of them must at least use."""
    noise: float = 0.15
    steeper: float = 1.15
    """A speed-up that much above the number of cores is no speed-up."""


USUAL = Limits()


class Once(Struct):
    """What one run shows of how it would scale."""

    cpus: int | None
    cores_mean: float | None
    cores_peak: float | None
    serial: float | None
    """Part of the work that was done by one core alone, as far as samples show. The truth may be higher: cores that
    wait in a loop look busy.
    """
    serial_low: float | None
    serial_high: float | None
    sentence: str


class Measured(Struct):
    """One of several runs."""

    key: str
    id: str
    cores: int
    seconds: float
    started: float


class Scaling(Struct):
    """Of one run, and of all runs of its program."""

    once: Once
    runs: list[Measured]
    law: Law | None
    refused: str
    """Why there is no law; empty if there is."""
    sentence: str


class _Run(NamedTuple):
    figures: Summary
    timing: Timing


def scaling(
    store: Store, figures: Summary, levels: list[Level], now: float, sight: Sight | None, limits: Limits = USUAL
) -> Scaling:
    """Of a job and of what else its owner ran of it, as far as whoever asks may see it."""
    alone = once(figures, levels)
    runs = _runs(store, figures, now, sight)
    listed = [
        Measured(r.figures.key, r.figures.id, r.timing.cores, r.timing.seconds, r.figures.started) for r in runs
    ]
    listed.sort(key=lambda run: (run.cores, run.started))
    refused = why_not(runs, figures, limits)
    law = None if refused else fit([run.timing for run in runs])
    if law is None:
        refused = refused or "The runs do not tell a law."
    elif law.noise > limits.noise:
        refused = f"No law fits: the times are off by {law.noise:.0%}, so the runs differ in something else."
    found = None if refused else law
    return Scaling(alone, listed, found, refused, said(found) if found else refused)


def once(figures: Summary, levels: list[Level]) -> Once:
    """From one run: when one core worked alone, and how much was done by many."""
    cpus, mean = figures.cpus, figures.cores_mean
    peak = max((level.cores for level in levels), default=None)
    if not cpus or cpus < 2 or not levels or peak is None or figures.state == "running":
        return Once(cpus, mean, peak, None, None, None, _once_said(figures, peak))
    # Of each core a little is the system's.
    full = peak / cpus if 0.8 <= peak / cpus <= 1 else 1.0
    alone = sum(level.end - level.start for level in levels if level.cores <= ALONE)
    many = sum((level.end - level.start) * level.cores for level in levels if level.cores > ALONE)
    whole = alone + many / full
    part, unsure = alone / whole, 2 * figures.every / whole
    low, high = max(0.0, part - unsure), min(1.0, part + unsure)
    text = _once_said(figures, peak)
    if part > 0.9:
        text += " Nearly all of its work was done by one core alone."
    elif part > max(unsure, LITTLE):
        most = digits(1 / part, 2)
        text += (
            f" One core worked alone on {part:.1%} of the work: many cores are at most {most} times as quick as one."
        )
    return Once(cpus, mean, peak, part, low, high, text)


def _once_said(figures: Summary, peak: float | None) -> str:
    cpus, mean = figures.cpus, figures.cores_mean
    if not cpus or mean is None or peak is None:
        return "How it uses its cores is not known."
    used = f"It used {digits(mean)} of {cpus} cores on average and {digits(peak)} at the most."
    if peak < 0.5 * cpus:
        return f"{used} It will hardly be quicker on more: it does not use those it has."
    if mean >= 0.8 * cpus:
        return f"{used} It used all it had, so more may help; runs on other core counts would tell how much."
    return used


def _runs(store: Store, figures: Summary, now: float, sight: Sight | None) -> list[_Run]:
    """Finished runs of the same command by the same owner, under the same name where jobs have names."""
    if not figures.owner or not figures.command:
        return []
    query = JobQuery(
        since=figures.started - NEAR, until=figures.started + NEAR, owner=figures.owner, command=figures.command,
        scheduler=figures.scheduler, limit=MOST, sight=sight,
    )  # fmt: skip
    found = []
    for document in store.jobs(query, now):
        other = summary(document, now)
        alike = other.cluster == figures.cluster and other.name == figures.name and other.cpus
        end = ending(other)
        if alike and end.good and not other.oom_kills and other.elapsed > 0:
            found.append(_Run(other, timing(other)))
    return found


def timing(figures: Summary) -> Timing:
    """A scheduler knows the seconds; without one the end is known to a sample."""
    cores, batch = figures.cpus or 1, figures.batch
    if batch is not None and batch.ended is not None and batch.start is not None:
        return Timing(cores, max(1.0, batch.ended - batch.start - (batch.suspended or 0.0)), 0.5)
    return Timing(cores, figures.elapsed + figures.every / 2, figures.every / sqrt(12))


def why_not(runs: list[Any], figures: Summary, limits: Limits = USUAL) -> str:
    """Why several runs do not make a law; empty if they may."""
    times = [run.timing for run in runs]
    what = f"{figures.command or 'this program'}{f' named {figures.name}' if figures.name else ''}"
    if len(times) < limits.runs:
        found = "is 1 finished run" if len(times) == 1 else f"are {len(times)} finished runs"
        return f"There {found} of {what} by {figures.owner or 'its owner'}; a law takes {limits.runs}."
    sizes = sorted({time.cores for time in times})
    if len(sizes) < limits.sizes or sizes[-1] < limits.reach * sizes[0]:
        counts = ", ".join(map(str, sizes))
        return (
            f"Runs of {what} had {counts} cores; a law takes {limits.sizes} core counts, the most 4 times the least."
        )
    return _differ(runs, limits)


def _differ(runs: list[Any], limits: Limits) -> str:
    """Whether the runs were of different problems."""
    by_cores: dict[int, list[Any]] = {}
    for run in runs:
        by_cores.setdefault(run.timing.cores, []).append(run)
    for cores, alike in sorted(by_cores.items()):
        quick, slow = (act(alike, key=lambda run: run.timing.seconds).timing for act in (min, max))
        if slow.seconds - 3 * slow.error > limits.spread * (quick.seconds + 3 * quick.error):
            took = f"from {duration(quick.seconds)} to {duration(slow.seconds)}"
            return f"The runs differ in size: on {cores} cores they took {took}."
    written = [run.figures.written for run in runs if run.figures.written is not None]
    if written and max(written) > 1e8 and max(written) > limits.written * min(written):
        wrote = f"from {volume(min(written))} to {volume(max(written))}"
        return f"The runs differ in size: they wrote {wrote}."
    first, last = (by_cores[act(by_cores)] for act in (min, max))
    worked = [
        sum(run.figures.cpu_time for run in some) / len(some)
        for some in (first, last)
        if all(run.figures.cpu_time is not None for run in some)
    ]
    if len(worked) == 2 and worked[1] < limits.shrunk * worked[0]:
        return f"The runs differ in size: on more cores they did less work ({duration(worked[1])} of CPU time)."
    few, many = (min(run.timing.seconds for run in some) for some in (first, last))
    if few / many > limits.steeper * max(by_cores) / min(by_cores):
        return "The runs differ in size: with more cores they got quicker by more than their number."
    return ""


def said(law: Law) -> str:
    """A law in two sentences."""
    share = f"{law.serial.value:.1%} of the work is serial ({law.serial.low:.1%} to {law.serial.high:.1%})"
    if law.kind == "usl":
        share += ", and cores cost by talking to each other"
    if law.fastest is not None:
        share += f"; beyond {int(law.fastest.value)} it gets slower"
    worth = f"Half of the cores' power is still used on {int(law.useful.value)}"
    return f"{share}. {worth} ({int(law.useful.low)} to {int(law.useful.high)})."
