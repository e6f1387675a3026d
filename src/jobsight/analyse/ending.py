"""Why a job ended, from what its scheduler says and from what was seen of it."""

import signal

from msgspec import Struct

from jobsight.analyse.batch import Batch
from jobsight.analyse.summary import Summary
from jobsight.formats.number import duration, size

# What Slurm reports in the place of a signal when memory ran out.
OUT_OF_MEMORY = 125
FATAL = {
    "NODE_FAIL": ("node failure", "one of its nodes failed"),
    "BOOT_FAIL": ("node failure", "one of its nodes did not start"),
    "PREEMPTED": ("preempted", "another job took its place"),
    "DEADLINE": ("time limit", "its deadline came"),
    "REVOKED": ("cancelled", "its scheduler took it back"),
    "LAUNCH_FAILED": ("failed", "its program could not be started"),
}


class Ending(Struct):
    """Why it ended, as far as anybody knows."""

    kind: str
    """`pending`, `running`, `completed`, `failed`, `signal`, `out of memory`, `time limit`, `node failure`,
    `cancelled`, `preempted`, `silent`, `unknown`.
    """
    sentence: str
    known: bool
    """Whether somebody said so; else it is what was seen."""

    @property
    def good(self) -> bool:
        """Whether what it used is what it needed: nothing cut it short."""
        return self.kind == "completed" or (self.kind == "unknown" and not self.known)


def ending(figures: Summary) -> Ending:
    """The scheduler's word first, then what was seen."""
    batch = figures.batch
    if batch is not None and batch.over:
        return _told(figures, batch)
    if figures.state == "pending":
        return Ending("pending", "", known=True)
    if figures.state == "running":
        return Ending("running", "", known=True)
    if figures.oom_kills:
        return Ending("out of memory", _memory(figures), known=False)
    if batch is not None and figures.state == "ended":
        # Its processes are gone; its scheduler says so a minute later, or never.
        return Ending("unknown", "Its scheduler has not said how it ended.", known=True)
    if figures.state == "silent":
        return Ending("silent", "Its node has not been heard of since, so how it ended is not known.", known=False)
    return Ending("unknown", "", known=False)


def _told(figures: Summary, batch: Batch) -> Ending:
    state, code, number = batch.state, batch.exit_code or 0, batch.exit_signal or 0
    if state == "OUT_OF_MEMORY" or number == OUT_OF_MEMORY:
        return Ending("out of memory", _memory(figures), known=True)
    if state == "TIMEOUT":
        limit = f" of {duration(batch.time_limit)}" if batch.time_limit else ""
        return Ending("time limit", f"It was stopped at its time limit{limit}.", known=True)
    if state == "CANCELLED":
        mine = batch.cancelled_by is not None and batch.cancelled_by == batch.uid
        return Ending("cancelled", f"It was cancelled{' by its user' if mine else ''}.", known=True)
    if state in FATAL:
        kind, said = FATAL[state]
        return Ending(kind, f"It ended because {said}.", known=True)
    if state == "COMPLETED" and not code and not number:
        return Ending("completed", "It ended well.", known=True)
    # A shell says 128 and more for a program that a signal ended.
    number = number or (code - 128 if 128 < code <= 128 + 64 else 0)
    if figures.oom_kills and number in (0, signal.SIGKILL):
        return Ending("out of memory", _memory(figures), known=True)
    if number:
        return Ending("signal", f"It was ended by signal {number}{_name(number)}.", known=True)
    return Ending("failed", f"It ended with exit code {code}." if code else "It failed.", known=True)


def _name(number: int) -> str:
    try:
        found = signal.Signals(number)
    except ValueError:
        return ""
    return f" ({found.name}: {signal.strsignal(found)})"


def _memory(figures: Summary) -> str:
    limit = f" of {size(figures.memory_limit)}" if figures.memory_limit else ""
    return f"The kernel stopped it because its memory{limit} was used up."
