"""What to ask for next time: what the run needed, a margin, and the reason for each line. Pure."""

from math import ceil
from typing import Any, NamedTuple

from msgspec import Struct

from jobsight.analyse.balance import Balance
from jobsight.analyse.cards import Card
from jobsight.analyse.ending import Ending
from jobsight.analyse.summary import Summary
from jobsight.analyse.track import Track
from jobsight.formats.number import cores as shown_cores
from jobsight.formats.number import duration, size

MIB, GIB = 2**20, 2**30
MINUTE, HOUR = 60.0, 3600.0


class Margins(NamedTuple):
    """How careful a suggestion is."""

    memory: float = 1.2
    time: float = 1.25
    pause: float = 300.0
    """Seconds on top: nodes and file systems have bad days."""
    slower: float = 1.01
    """With fewer cores the work may take so much longer, and no more."""
    full: float = 0.8
    """Whoever used this part of the cores given, keeps them."""
    samples: int = 5
    coverage: float = 0.5


CAREFUL = Margins()


class Line(Struct):
    """One thing to ask for."""

    option: str
    """As it is written in a job script."""
    value: float
    """In base units: CPUs, bytes, seconds, cards; on each node."""
    before: float | None
    """What it had."""
    reason: str


class Request(Struct):
    """What to ask for, or why that cannot be said."""

    lines: list[Line]
    refused: str
    """Why nothing is suggested; empty if something is."""
    sure: bool
    """Whether the run shows that this suffices. A run that was cut short shows only what did not."""
    core_hours: float | None
    """That the run held."""
    core_hours_next: float | None
    """That the same run would hold with this."""
    notes: list[str]

    @property
    def script(self) -> list[str]:
        return [f"#SBATCH {line.option}" for line in self.lines]

    def value(self, name: str) -> float | None:
        """Of the option of that name: `mem`, `time`, `nodes` …"""
        return next((line.value for line in self.lines if line.option.startswith(f"--{name}=")), None)


class Run(NamedTuple):
    """Everything known of the run."""

    figures: Summary
    ending: Ending
    track: Track
    balance: Balance
    cards: list[Card]


def rightsize(run: Run, margins: Margins = CAREFUL) -> Request:
    """From one run."""
    figures = run.figures
    held = figures.cpus * figures.elapsed / HOUR if figures.cpus else None
    if refused := _refused(run, margins):
        return Request([], refused, sure=False, core_hours=held, core_hours_next=None, notes=[])
    nodes, notes = _nodes(run)
    cpus = _cores(run, nodes, margins)
    lines = [nodes, *_spread(run, cpus), _memory(run, int(nodes.value), margins), _gpus(run), _time(run, margins)]
    following = None
    if cpus is not None:
        following = cpus.value * nodes.value * figures.elapsed / HOUR
    if run.cards and not any(card.used for card in run.cards):
        notes.append("It held GPUs and used none: ask for none, in a partition without.")
    if figures.scheduler != "slurm":
        notes.append("It did not run under Slurm: this is what to ask for if it ever does.")
    if figures.every > 60:
        notes.append(f"Bursts shorter than {duration(figures.every)} are not seen: that is how often it is sampled.")
    found = [line for line in lines if line is not None]
    return Request(found, "", run.ending.good, held, following, notes)


def _refused(run: Run, margins: Margins) -> str:
    figures = run.figures
    if run.ending.kind == "pending":
        return "It has not begun."
    if run.ending.kind == "running":
        return "It is still running: what it needs in the end is not known yet."
    samples = sum(len(intervals) for intervals in run.track.values()) / max(1, len(run.track))
    if not run.track:
        return "Nothing is kept of what it used over time."
    if samples < margins.samples:
        return f"It was seen {samples:.0f} times on each node; a suggestion takes {margins.samples} samples."
    if (figures.coverage or 0.0) < margins.coverage:
        return f"Less than {margins.coverage:.0%} of its time was observed: its peaks may have been missed."
    if run.ending.kind == "unknown" and run.ending.known:
        return "How it ended is not known yet."
    if run.ending.kind in ("failed", "signal", "cancelled", "node failure", "preempted", "silent"):
        return "It did not finish its work, so what the whole of it needs is not known."
    return ""


def _nodes(run: Run) -> tuple[Line, list[str]]:
    """Without those that did nothing, if what they held fits on the others."""
    shares = run.balance.nodes
    count, idle = len(shares), len(run.balance.idle)
    if not idle:
        return Line(f"--nodes={count}", count, count, "as before"), []
    left = count - idle
    held, room = _total(share.memory_peak for share in shares), shares[-1].memory_limit
    work, given = _total(share.cores for share in shares), shares[-1].cpus
    fits = held is not None and room and held / left <= room and work is not None and given and work / left <= given
    said = f"{idle} of {count} nodes did less than a tenth of what the busiest did"
    if fits:
        return Line(f"--nodes={left}", left, count, said), []
    return Line(f"--nodes={count}", count, count, "as before"), [f"{said}; their memory does not fit on the others."]


def _cores(run: Run, nodes: Line, margins: Margins) -> Line | None:
    """On each node: the fewest with which the work would have taken no longer."""
    given = max((share.cpus for share in run.balance.nodes if share.cpus), default=None)
    if given is None:
        return None
    fewer = nodes.value < len(run.balance.nodes)
    needed = given if fewer else max(fewest(intervals, margins.slower) for intervals in run.track.values())
    if fewer or needed >= margins.full * given:
        return Line("", given, given, f"it kept {needed} of {given} busy" if not fewer else "as before on each node")
    return Line("", needed, given, f"it never kept more than {needed} of {given} busy for long")


def fewest(intervals: list[Any], slower: float) -> int:
    """Cores with which the same work takes at most so much longer, if none of it is lost by waiting."""
    spans = [(one.seconds, one.cores) for one in intervals if one.cores is not None]
    whole = slower * sum(seconds for seconds, _ in spans)
    low, high = 1, max(1, ceil(max((used for _, used in spans), default=1.0)))
    while low < high:
        count = (low + high) // 2
        if sum(seconds * max(1.0, used / count) for seconds, used in spans) > whole:
            low = count + 1
        else:
            high = count
    return low


def _spread(run: Run, cores: Line | None) -> list[Line | None]:
    """As tasks where there is a process a core, else as CPUs of one task."""
    if cores is None:
        return []
    count, before, reason = int(cores.value), cores.before, cores.reason
    processes, threads = run.figures.processes_peak or 1, run.figures.threads_peak or 0
    # Its script is one, too.
    if count > 1 and processes - 1 >= 0.75 * (before or 1) and threads < 2 * processes:
        return [Line(f"--ntasks-per-node={count}", count, before, reason)]
    return [Line(f"--cpus-per-task={count}", count, before, reason)]


def _memory(run: Run, nodes: int, margins: Margins) -> Line | None:
    figures, shares = run.figures, run.balance.nodes
    limit = figures.memory_limit
    if run.ending.kind == "out of memory":
        if not limit:
            return None
        wanted = _gib(2 * limit)
        return Line(f"--mem={_size(wanted)}", wanted, limit, "it ran out of memory; twice as much is a guess")
    peaks = [share.memory_peak for share in shares if share.memory_peak is not None]
    if not peaks:
        return None
    peak = max(peaks) if nodes == len(shares) else max(*peaks, ceil(sum(peaks) / nodes))
    wanted = _gib(peak * margins.memory)
    said = f"at most {size(peak)} was in use on a node, and {margins.memory - 1:.0%} to spare"
    return Line(f"--mem={_size(wanted)}", wanted, limit, said)


def _gpus(run: Run) -> Line | None:
    """On each node as many as the node had that used the most."""
    if not run.cards:
        return None
    used: dict[str, int] = {}
    held: dict[str, int] = {}
    for card in run.cards:
        held[card.node] = held.get(card.node, 0) + 1
        used[card.node] = used.get(card.node, 0) + card.used
    count, before = max(used.values()), max(held.values())
    if not count:
        return None
    return Line(f"--gpus-per-node={count}", count, before, f"it used {count} of {before}")


def _time(run: Run, margins: Margins) -> Line | None:
    limit = run.figures.batch.time_limit if run.figures.batch else None
    if run.ending.kind == "time limit":
        if not limit:
            return None
        wanted = _steps(2 * limit)
        return Line(f"--time={clock(wanted)}", wanted, limit, "it was not done in time; twice as long is a guess")
    lasted = run.figures.elapsed
    if run.figures.batch is None or run.figures.batch.ended is None:
        # Its end is known to a sample.
        lasted += run.figures.every
    wanted = _steps(lasted * margins.time + margins.pause)
    said = f"it took {duration(run.figures.elapsed)}; {margins.time - 1:.0%} and {margins.pause / MINUTE:.0f} minutes"
    return Line(f"--time={clock(wanted)}", wanted, limit, f"{said} to spare")


def _total(values: Any) -> Any:
    known = list(values)
    return None if any(value is None for value in known) else sum(known)


def _gib(wanted: float) -> int:
    """In steps people ask for."""
    step = 256 * MIB if wanted < 2 * GIB else GIB
    return ceil(wanted / step) * step


def _size(wanted: int) -> str:
    return f"{wanted // GIB}G" if wanted % GIB == 0 else f"{wanted // MIB}M"


def _steps(seconds: float) -> float:
    step = 5 * MINUTE if seconds < HOUR else 10 * MINUTE if seconds < 4 * HOUR else HOUR
    return ceil(seconds / step) * step


def clock(seconds: float) -> str:
    """As Slurm reads it: 1-02:30:00."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{f'{days}-' if days else ''}{hour:02d}:{minute:02d}:{second:02d}"


def cost(request: Request) -> str:
    """Of the run and of the next, in a sentence; empty if neither is known."""
    if request.core_hours is None:
        return ""
    said = f"The run held {shown_cores(request.core_hours)} core hours"
    if request.core_hours_next is None:
        return f"{said}."
    following = shown_cores(request.core_hours_next)
    return (
        f"{said}; with this it would hold {'as many' if following == shown_cores(request.core_hours) else following}."
    )
