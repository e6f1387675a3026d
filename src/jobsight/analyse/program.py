"""Which software was used how much, by whom and with how much memory. Commands become programs here, by the map that
holds now: a changed map changes the past too.
"""

from collections import defaultdict
from typing import Any

from msgspec import Struct

from jobsight.analyse.calendar import Span
from jobsight.analyse.programmap import Program, ProgramMap
from jobsight.analyse.sites import Asked, Site, chosen
from jobsight.store.protocol import Store
from jobsight.store.sight import Sight

TALLIES = """SELECT command, sum(used), sum(allocated), sum(gpu_used), sum(gpu_allocated) FROM tally
WHERE time >= ? AND time < ? AND {} GROUP BY command"""
KNOWN = """(SELECT unnest(CAST(? AS VARCHAR[])) AS command, unnest(CAST(? AS VARCHAR[])) AS program) AS known"""
OWNERS = f"""SELECT program, owner, sum(used) FROM (SELECT known.program AS program, owner, used FROM tally
  JOIN {KNOWN} ON known.command = tally.command WHERE time >= ? AND time < ? AND {{}}) AS work
GROUP BY program, owner"""
# Of jobs whose main command it is.
JOBS = f"""SELECT program, count(*), count(memory_peak),
  percentile_cont(ARRAY[0.1, 0.5, 0.9]) WITHIN GROUP (ORDER BY memory_peak), max(memory_peak), sum(energy)
FROM (SELECT known.program AS program, memory_peak, energy FROM stint JOIN {KNOWN} ON known.command = stint.command
  WHERE time >= ? AND time < ? AND {{}}) AS jobs GROUP BY program"""


class Use(Struct):
    """One program over a time. The name is empty for commands that no rule knows."""

    program: str
    tags: list[str]
    used: float
    """CPU time."""
    allocated: float
    gpu_used: float | None
    gpu_allocated: float | None
    users: int
    owners: list[str]
    """Those who used the most, first."""
    commands: list[str]
    """Those that used the most, first."""
    jobs: int = 0
    """That ended in the time, and of which it was the main program."""
    memory_jobs: int = 0
    """Of these, how many have a known peak of memory."""
    memory_low: float | None = None
    """The most memory on one node: nine of ten jobs needed more than this, half of them more than the median, one of
    ten more than `memory_high`.
    """
    memory_median: float | None = None
    memory_high: float | None = None
    memory_peak: float | None = None
    energy: float | None = None
    """Joules these jobs took, those that were measured."""


class Programs(Struct):
    """A report."""

    since: float
    until: float
    zone: str
    map_version: str
    used: float
    """CPU time of all programs: they add up to it."""
    allocated: float
    unmapped: float
    """CPU time of commands that no rule knows."""
    rows: list[Use]


class Unmapped(Struct):
    """A command that no rule knows."""

    command: str
    used: float
    allocated: float


class Sums:
    """What is added up for one program or tag."""

    def __init__(self) -> None:
        self.figures: list[float | None] = [None] * 4
        self.owners: dict[str, float] = {}
        self.commands: dict[str, float] = {}
        self.tags: tuple[str, ...] = ()
        self.jobs: tuple[Any, ...] = ()

    def add(self, command: str, figures: list[Any]) -> None:
        both = zip(self.figures, figures, strict=True)
        self.figures = [b if a is None else a if b is None else a + b for a, b in both]
        self.commands[command] = figures[0] or 0.0


def programs(store: Store, site: Site, asked: Asked, now: float, sight: Sight | None = None) -> Programs:
    """ValueError with a sentence for what cannot be asked; MapError is one."""
    span, known = asked.span(site, now), site.maps.current()
    if asked.by not in ("", "program", "tag"):
        raise ValueError(f"no way to report programs by {asked.by!r}; there are program, tag")
    sums: dict[str, Sums] = defaultdict(Sums)
    used = allocated = unmapped = 0.0
    for command, *figures in _tallies(store, asked, span, sight):
        program = known[command]
        used, allocated = used + figures[0], allocated + figures[1]
        unmapped += figures[0] if program is None else 0.0
        if asked.program and not (program and (program.name == asked.program or program.within(asked.program))):
            continue
        for name in _names(program, asked.by):
            sums[name].add(command, figures)
            sums[name].tags = program.tags if program and asked.by != "tag" else ()
    _complete(store, known, sums, asked, span, sight)
    rows = [_use(name, found) for name, found in sums.items()]
    rows.sort(key=lambda row: (-row.used, -row.allocated, row.program))
    return Programs(span.since, span.until, str(site.calendar.zone), known.version, used, allocated, unmapped, rows)


def unmapped(store: Store, site: Site, asked: Asked, now: float, sight: Sight | None = None) -> list[Unmapped]:
    """Commands that no rule knows, those first that used the most."""
    span, known = asked.span(site, now), site.maps.current()
    rows = _tallies(store, asked, span, sight)
    found = [
        Unmapped(command, used, given) for command, used, given, *_ in rows if command and known[command] is None
    ]
    return sorted(found, key=lambda row: (-row.used, -row.allocated, row.command))


def _tallies(store: Store, asked: Asked, span: Span, sight: Sight | None) -> list[tuple[Any, ...]]:
    where, values = chosen(asked, sight)
    return store.query(TALLIES.format(where), [span.since, span.until, *values], (span.since, span.until - 1))


def _names(program: Program | None, by: str) -> list[str]:
    """What a program is counted under: of tags all, so that these do not add up."""
    if by != "tag":
        return [program.name if program else ""]
    paths = [tag.split("/") for tag in program.tags] if program else []
    return sorted({"/".join(path[: depth + 1]) for path in paths for depth in range(len(path))}) or [""]


def _complete(
    store: Store, known: ProgramMap, sums: dict[str, Sums], asked: Asked, span: Span, sight: Sight | None
) -> None:
    """Who used each, and the jobs it was the main program of."""
    if not sums:
        return
    # Of a job that was never sampled no command is known.
    told = {command for found in sums.values() for command in found.commands} | {""}
    pairs = [(command, name) for command in told for name in _names(known[command], asked.by) if name in sums]
    if not pairs:
        return
    where, values = chosen(asked, sight)
    commands, names = map(list, zip(*pairs, strict=True))
    asking = [commands, names, span.since, span.until, *values]
    for name, owner, used in store.query(OWNERS.format(where), asking, (span.since, span.until - 1)):
        sums[name].owners[owner] = used
    for name, *figures in store.query(JOBS.format(where), asking, (span.since, span.until)):
        sums[name].jobs = tuple(figures)


def _use(name: str, sums: Sums) -> Use:
    owners = sorted(sums.owners, key=lambda owner: (-sums.owners[owner], owner))
    commands = sorted(sums.commands, key=lambda command: (-sums.commands[command], command))
    used, allocated, gpu_used, gpu_allocated = sums.figures
    jobs, remembered, quantiles, peak, energy = sums.jobs or (0, 0, None, None, None)
    low, median, high = quantiles or (None, None, None)
    return Use(
        name, list(sums.tags), used or 0.0, allocated or 0.0, gpu_used, gpu_allocated, len(owners), owners[:10],
        commands[:10], jobs, remembered, low, median, high, peak, energy,
    )  # fmt: skip
