"""Entries that are alike, read four times as quickly as line by line.

All entries of a target have the same lines but for the numbers. So from the first one that reads well a pattern of a
whole entry is made; what fits it is read by it, what does not is read line by line and may give another pattern.
"""

import re
from operator import itemgetter
from typing import Any

from jobsight.collector import ParseError
from jobsight.formats.lustreentry import LINE, TIME, Columns, Entry, identifier, parse, since_1970

# Eighteen digits fit a table whatever they are.
_NUMBER = rb"(\d{1,18}+)"
_ANY = rb"\d++"
_INSTANT = rb"(\d{1,12}+(?:\.\d{1,9}+)?+)"
_LASTED = rb"\d{1,12}+(?:\.\d{1,9}+)?+"
_HIST = rb"((?: \d{1,4}+[KMGTPE]?+: \d{1,20}+,?+)*+) ++"
# The groups of `LINE` that are numbers or sizes, and what is wanted of them.
_GROUPS = {2: _NUMBER, 4: _ANY, 5: _ANY, 6: _NUMBER, 7: _ANY, 8: _HIST}
_COUNTED = _GROUPS | {6: _ANY}
# A file whose entries are not alike is read without patterns.
MOST = 16


class Shape:
    """What entries that are alike have in common."""

    def __init__(self, text: bytes, entry: Entry) -> None:
        """From an entry's text and what is wanted of it; ParseError if a line of it is of no usual form."""
        summed = {column.operation.encode() for column in entry.columns if column.part == "total"}
        self.columns: Columns = entry.columns
        self._times: dict[bytes, int] = {}
        numbers: list[int] = []
        sizes: list[int] = []
        lines = [rb"[^\n]*+"]
        for line in text.split(b"\n")[1:]:
            count = len(self._times) + len(numbers) + len(sizes)
            timed, found = TIME.fullmatch(line), LINE.fullmatch(line)
            if timed is not None:
                wanted = timed[1] != b"elapsed_time"
                if wanted:
                    self._times[timed[1]] = count
                lines.append(_pattern(line, timed, {2: _INSTANT if wanted else _LASTED}))
            elif found is not None:
                many = 2 if found[1] in summed else 1
                numbers += range(count, count + many)
                if found[8] is not None:
                    sizes.append(count + many)
                lines.append(_pattern(line, found, _GROUPS if many > 1 else _COUNTED))
            else:
                raise ParseError(f"job_stats: expected a line of a usual form, got {line[:80]!r}")
        self._match = re.compile(rb"\n".join(lines)).fullmatch
        self._sizes = sizes
        # Two at least: one alone would not come as a tuple.
        self._numbers = itemgetter(*numbers) if len(numbers) > 1 else None
        self._snapshot = self._times.get(b"snapshot_time")
        self._start = self._times.get(b"start_time")

    def parse(self, text: bytes, raw: bytes) -> Entry | None:
        """What an entry says that has this identifier; None if it is not of this shape."""
        match = self._match(text)
        if match is None or self._numbers is None:
            return None
        groups = match.groups()
        values: list[Any] = list(map(int, self._numbers(groups)))
        values += [groups[index][1:].replace(b": ", b"=").replace(b", ", b",").decode() for index in self._sizes]
        snapshot = start = None
        if self._snapshot is not None:
            snapshot = since_1970(float(groups[self._snapshot]))
        if self._start is not None:
            start = since_1970(float(groups[self._start]))
        # Half the time of Entry(…), for each of them.
        return tuple.__new__(Entry, (raw, snapshot, start, self.columns, values, 0))


def _pattern(line: bytes, match: re.Match[bytes], groups: dict[int, bytes]) -> bytes:
    """The line with its numbers made free. Before one there may be more blanks or fewer."""
    made, at = [], 0
    for group, pattern in groups.items():
        begin, end = match.span(group)
        if begin >= 0:
            before = line[at:begin]
            made += [re.escape(before.rstrip(b" ")), b"" if pattern is _HIST else b" *+", pattern]
            at = end
    return b"".join((*made, re.escape(line[at:])))


class Parser:
    """Reads the entries of one file. `summed` are the operations of which the sum is wanted; all if not said."""

    def __init__(self, summed: frozenset[str] | None = None) -> None:
        self._summed = summed
        self._shape: Shape | None = None
        self._tried = 0

    def parse(self, text: bytes, raw: bytes | None = None) -> Entry:
        """One entry as it was cut; see `lustreentry.parse`. `raw` is its identifier, where somebody knows it."""
        known = identifier(text) if raw is None else raw
        if self._shape is not None and (entry := self._shape.parse(text, known)) is not None:
            return entry
        entry = parse(text, self._summed)
        if self._tried < MOST and not entry.bad:
            self._tried += 1
            self._learn(text, entry)
        return entry

    def _learn(self, text: bytes, entry: Entry) -> None:
        try:
            shape = Shape(text, entry)
        except ParseError:
            return
        # Only one that reads what it was made of, and the same: else something stands in it that we do not know.
        again = shape.parse(text, entry.raw)
        if again is not None and again[:-1] == entry[:-1]:
            self._shape = shape
