"""The targets of a Lustre server: each is read once an interval, for the collector of its kind and for the account
of the scan. See `lustresource` for the reading, `lustrememory` for what is remembered.
"""

from collections.abc import Iterator
from typing import Any

from jobsight.clock import Clock, SystemClock
from jobsight.collector import ParseError
from jobsight.command import CommandError
from jobsight.drivers import lustresource as door
from jobsight.drivers import lustrestate
from jobsight.drivers.lustrememory import Life, Moment, Past
from jobsight.drivers.lustreoptions import Options
from jobsight.drivers.lustrerow import Layout
from jobsight.drivers.lustrestate import State
from jobsight.drivers.notebook import Notebook
from jobsight.formats.lustreentry import Entry, Operation, identifier
from jobsight.formats.lustreid import LONGEST, MALFORMED, Formats, to_text
from jobsight.formats.lustreshape import Parser
from jobsight.formats.lustrestats import Cutter, totals
from jobsight.host import Host

KINDS = ("mdt", "ost")
# One message takes no more: the server refuses those of 32 MiB. What is left out is told next time.
MOST_ROWS = 60_000
LONGEST_REASON = 200
# Seconds between two times at which what is remembered is written down. What is older is no less true.
SAVED = 600.0
DATA = ("read", "write")


class Scan:
    """How one target was read."""

    def __init__(self, target: str, kind: str, source: str, at: float | None) -> None:
        self.target, self.kind, self.source, self.at = target, kind, source, at
        self.reason: str | None = None
        """forbidden or failed."""
        self.error: str | None = None
        self.entries = self.changed = self.unchanged = self.postponed = self.system = 0
        self.torn = self.bad_lines = self.malformed = self.truncated = self.size = 0
        self.duration: float | None = None
        self.interval: float | None = None

    def fail(self, error: Exception) -> None:
        self.reason = "forbidden" if isinstance(error, PermissionError) else "failed"
        self.error = f"{type(error).__name__}: {error}"[:LONGEST_REASON]


class Lustre:
    """Lives with a host. Without the agent's folder it remembers nothing: every run is then a first one."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock: Clock = clock or SystemClock()
        self._states: dict[str, State] = {}
        self._done: dict[str, list[Scan]] = {}
        self._running: set[str] = set()
        self._collected: set[str] = set()

    def rows(self, host: Host, kind: str, record: type[Any], options: Options) -> Iterator[Any]:
        """The entries of all targets of a kind that have something new."""
        self._collected.add(kind)
        self._running.add(kind)
        scans: list[Scan] = []
        try:
            yield from self._scan(host, kind, Layout(record), options, scans)
        finally:
            self._running.discard(kind)
            self._done[kind] = scans
        for reason in {scan.reason for scan in scans if scan.reason}:
            host.miss("entry", reason)

    def scans(self, host: Host, record: type[Any], options: Options) -> Iterator[Any]:
        """How the targets were read since last time. A kind that nobody collects is read for this alone."""
        for kind in KINDS:
            if kind in self._running:
                host.miss("entries", "late")
                continue
            found = self._done.pop(kind, [])
            if kind not in self._collected and host.exists(f"{door.PROC}/{door.FOLDERS[kind]}"):
                for _ in self._scan(host, kind, None, options, found):
                    pass
            sums = self._totals(host, kind, options, found)
            for scan in found:
                if scan.reason:
                    host.miss("entries", scan.reason)
                yield account_of(record, scan, sums.get(scan.target))

    def _scan(
        self, host: Host, kind: str, layout: Layout | None, options: Options, scans: list[Scan]
    ) -> Iterator[Any]:
        wall = host.began()
        # As the message says it: to the microsecond.
        now = Moment(round(self.clock.wall() if wall is None else wall, 6), self.clock.steady())
        folder = host.keep(Notebook).folder if layout is not None else None
        path = f"{folder}/lustre{kind}.json"
        state = State() if folder is None else self._state(host, kind, path, now)
        # A copy of a machine gives the same at any time.
        at = now.wall if host.live or folder is not None else None
        try:
            found = door.sources(host, kind, options.through, options.limit)
        except CommandError as error:
            scans += [Scan(name, kind, options.through, at) for name in state.targets]
            for scan in scans:
                scan.fail(error)
            raise
        reading = Reading(layout, options)
        for source in found:
            scan = Scan(source.target, kind, options.through, at)
            scans.append(scan)
            began = self.clock.steady()
            yield from reading.rows(source, scan, state.target(source.target), now)
            scan.duration = self.clock.steady() - began if at is not None else None
        state.leave({source.target for source in found}, now)
        if folder is not None and now.steady - state.saved >= SAVED:
            state.saved = now.steady
            lustrestate.save(state, path, host.boot(), now)

    def _state(self, host: Host, kind: str, path: str, now: Moment) -> State:
        if kind not in self._states:
            self._states[kind] = lustrestate.load(path, host.boot(), now, host.uptime())
        return self._states[kind]

    def _totals(self, host: Host, kind: str, options: Options, scans: list[Scan]) -> dict[str, dict[str, Operation]]:
        """The targets' own totals, as far as they can be had."""
        found: dict[str, dict[str, Operation]] = {}
        printed: dict[str, str] | None = None
        for scan in scans:
            try:
                if scan.source == "lctl":
                    printed = door.printed_totals(host, kind, options.limit) if printed is None else printed
                    text = printed.get(scan.target)
                else:
                    text = door.totals(host, kind, scan.target)
                if text is not None:
                    found[scan.target] = totals(text)
            except PermissionError:
                host.miss("operations", "forbidden")
            except (OSError, CommandError, ParseError):
                printed = {} if printed is None else printed
                host.miss("operations", "failed")
        return found


class Reading:
    """One pass over all targets of a kind."""

    def __init__(self, layout: Layout | None, options: Options) -> None:
        self._layout = layout
        self._options = options
        self._summed = None if layout is None else layout.summed
        self._parser = Parser(self._summed)
        self._formats = Formats(options.formats)
        self._room = MOST_ROWS

    def rows(self, source: door.Source, scan: Scan, past: Past, now: Moment) -> Iterator[Any]:
        """The rows of one target; how it went is in `scan`. What was read before something broke is good."""
        scan.interval = source.interval
        past.begin(now, source.interval)
        cutter, self._parser = Cutter(), Parser(self._summed)
        try:
            for text in cutter.entries(source.pieces):
                row = self._entry(text, scan, past)
                if row is not None:
                    yield row
        except (OSError, ParseError) as error:
            scan.fail(error)
        scan.size, scan.torn = cutter.size, cutter.torn
        if cutter.torn and scan.error is None:
            scan.reason, scan.error = "failed", "the last entry ends in the middle"
        if scan.error is None:
            past.finish()

    def _entry(self, text: bytes, scan: Scan, past: Past) -> Any:
        """The row of an entry; None if it has none."""
        raw, mark = identifier(text), hash(text)
        life = past.entries.get(raw)
        if life is not None:
            if life.turn == past.turn:
                # Twice in one reading: a row each would be two totals at one time.
                scan.bad_lines += 1
                return None
            if life.mark == mark and life.told > self._options.again:
                life.turn = past.turn
                scan.unchanged += 1
                self.count(raw, life, scan)
                return None
        try:
            entry = self._parser.parse(text, raw)
        except ParseError:
            scan.bad_lines += 1
            # It is there, whatever it says.
            if life is not None:
                life.turn = past.turn
            return None
        return self.tell(entry, mark, scan, past)

    def tell(self, entry: Entry, mark: int, scan: Scan, past: Past) -> Any:
        """The row of an entry that is new, changed or to be told again; None if it is left out. `mark` is another one
        if it changed.
        """
        raw = entry.raw
        scan.bad_lines += entry.bad
        life = past.meet(raw, entry.start, entry.snapshot)
        past.changed(life, mark, entry.snapshot)
        life.turn = past.turn
        printed = to_text(raw)
        job, uid, node, executable, form = self._formats.identify(printed)
        life.malformed = form == MALFORMED
        self.count(raw, life, scan)
        if self._options.system == "drop" and uid is not None and uid < self._options.system_below:
            life.told = self._options.again + 1
            scan.system += 1
            return None
        if not self._room:
            scan.postponed += 1
            return None
        self._room -= 1
        life.told += 1
        scan.changed += 1
        if self._layout is None:
            return None
        head = (
            scan.target, printed, job, uid, node, executable, form, len(raw) >= LONGEST, entry.snapshot, entry.start,
            life.absent_at,
        )  # fmt: skip
        return self._layout.row(head, entry)

    def count(self, raw: bytes, life: Life, scan: Scan) -> None:
        scan.entries += 1
        scan.malformed += life.malformed
        scan.truncated += len(raw) >= LONGEST


def account_of(record: type[Any], scan: Scan, sums: dict[str, Operation] | None) -> Any:
    """The row of a scan. Of one that could not even begin nothing was counted."""
    counted = scan.reason is None or scan.size > 0
    names = ("entries", "changed", "unchanged", "postponed", "system", "torn", "bad_lines", "malformed", "truncated")
    counts = {name: getattr(scan, name) if counted else None for name in (*names, "size")}
    return record(
        target=scan.target,
        kind=scan.kind,
        source=scan.source,
        scanned_at=scan.at,
        ok=scan.error is None,
        error=scan.error,
        duration=scan.duration,
        cleanup_interval=scan.interval,
        **counts,
        **({} if sums is None else _sums(sums)),
    )


def _sums(sums: dict[str, Operation]) -> dict[str, int | None]:
    """What is not printed is zero; of bytes only where the sum is printed too."""
    made: dict[str, int | None] = {}
    for name in DATA:
        moved = sums.get(f"{name}_bytes")
        made[name] = (sums.get(name) or moved or Operation(0, "reqs")).samples
        made[f"{name}_bytes"] = 0 if moved is None else moved.total if moved.unit == "bytes" else None
    others = [one.samples for name, one in sums.items() if name.removesuffix("_bytes") not in DATA]
    return {**made, "operations": sum(others)}
