"""Lists of nodes as schedulers write them: `n[1-3,07-10],gpu-[01-02]-x[0-1],login`.

Elements stand between commas outside brackets; brackets hold numbers and ranges, and several of them in one element
multiply. Leading zeros belong to the name: `n[08-10]` is n08, n09, n10, and n8 is another node.
"""

import re
from collections.abc import Iterable
from itertools import product
from math import prod

from jobsight.collector import ParseError

# More than any cluster has; a list that names more is a mistake or a trap, and is refused before it takes memory.
MOST = 100_000
# A name's last run of digits is what a range counts.
NUMBERED = re.compile(r"(.*?)([0-9]{1,18})([^0-9]*)", re.DOTALL)
# What can stand in brackets is also what cannot stand in a name.
UNNAMEABLE = re.compile(r"[\s\[\],]")

Spans = list[tuple[int, int, int]]
"""First, last and width of what stands in brackets."""


def expand(text: str, most: int = MOST) -> list[str]:
    """All names, in the order of the list. ParseError for what is no list, or names more than `most`."""
    names: list[str] = []
    for element in elements(text):
        parts = pieces(element)
        if len(names) + _size(parts) > most:
            raise ParseError(f"node list: more than {most} nodes in {text[:80]!r}")
        names += ["".join(name) for name in product(*map(_choices, parts))]
    return names


def count(text: str) -> int:
    """How many names a list has; nothing is expanded."""
    return sum(_size(pieces(element)) for element in elements(text))


def elements(text: str) -> list[str]:
    """The list cut at the commas outside brackets."""
    found, depth, start = [], 0, 0
    for place, character in enumerate(text):
        if character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
        elif character == "," and depth == 0:
            found.append(text[start:place])
            start = place + 1
        if depth not in (0, 1):
            raise ParseError(f"node list: brackets do not match in {text[:80]!r}")
    if depth:
        raise ParseError(f"node list: brackets do not match in {text[:80]!r}")
    if text:
        found.append(text[start:])
    return found


def pieces(element: str) -> list[str | Spans]:
    """Texts and brackets by turns, a text first: `a[1-2]b` → `["a", [(1, 2, 1)], "b"]`."""
    parts: list[str | Spans] = []
    for place, part in enumerate(re.split(r"\[([^\]]*)\]", element)):
        if place % 2:
            parts.append([_span(item, element) for item in part.split(",")])
        elif re.search(r"[\s\[\]]", part):
            raise ParseError(f"node list: expected a name, got {element[:80]!r}")
        else:
            parts.append(part)
    if parts == [""]:
        raise ParseError("node list: a name is empty")
    return parts


def compress(names: Iterable[str]) -> str:
    """The shortest list of ranges that names the same set, sorted; ParseError for what cannot stand in one."""
    plain: list[str] = []
    groups: dict[tuple[str, str, int], set[int]] = {}
    for name in names:
        if not name or UNNAMEABLE.search(name):
            raise ParseError(f"node list: expected a name, got {name[:80]!r}")
        found = NUMBERED.fullmatch(name)
        if found is None:
            plain.append(name)
            continue
        head, digits, tail = found.groups()
        # Names of different widths cannot share a range: 9 and 10 can, 09 and 9 cannot.
        width = len(digits) if digits[0] == "0" and len(digits) > 1 else 0
        groups.setdefault((head, tail, width), set()).add(int(digits))
    texts = [*dict.fromkeys(plain)]
    for (head, tail, width), numbers in _joined(groups).items():
        spans = [_written(first, last, width) for first, last in _runs(sorted(numbers))]
        alone = len(spans) == 1 and "-" not in spans[0]
        texts.append(f"{head}{spans[0] if alone else '[' + ','.join(spans) + ']'}{tail}")
    return ",".join(sorted(texts))


def _joined(groups: dict[tuple[str, str, int], set[int]]) -> dict[tuple[str, str, int], set[int]]:
    """Padded names go on beyond the padding: 08, 09 and 10 are one range of width two."""
    for (head, tail, width), padded in groups.items():
        unpadded = groups.get((head, tail, 0)) if width else None
        if unpadded:
            fitting = {number for number in unpadded if len(str(number)) == width}
            padded.update(fitting)
            unpadded.difference_update(fitting)
    return {key: numbers for key, numbers in groups.items() if numbers}


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _written(first: int, last: int, width: int) -> str:
    return f"{first:0{width}d}" if first == last else f"{first:0{width}d}-{last:0{width}d}"


def _span(item: str, element: str) -> tuple[int, int, int]:
    """First, last and width of `07-10`."""
    first, dash, last = item.partition("-")
    last = last if dash else first
    for end in (first, last):
        if not (end.isascii() and end.isdecimal() and len(end) <= 18):
            raise ParseError(f"node list: expected digits or a range, got {item[:40]!r} in {element[:80]!r}")
    if int(last) < int(first):
        raise ParseError(f"node list: impossible range {item[:40]!r}")
    return int(first), int(last), len(first)


def _size(parts: list[str | Spans]) -> int:
    sums = [sum(last - first + 1 for first, last, _ in part) for part in parts if not isinstance(part, str)]
    return prod(sums)


def _choices(part: str | Spans) -> Iterable[str]:
    if isinstance(part, str):
        return (part,)
    return [f"{number:0{width}d}" for first, last, width in part for number in range(first, last + 1)]
