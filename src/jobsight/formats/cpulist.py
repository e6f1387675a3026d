"""Lists of numbers as the kernel writes them: `0-3,8,10-11`."""

from jobsight.collector import ParseError


def spans(text: str) -> list[tuple[int, int]]:
    """First and last of each range; an empty list has none."""
    found = []
    for part in text.strip().split(","):
        if not part:
            continue
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not (first.isascii() and first.isdecimal() and last.isascii() and last.isdecimal()):
            raise ParseError(f"cpu list: expected digits or a range, got {part[:40]!r} in {text[:80]!r}")
        if int(last) < int(first):
            raise ParseError(f"cpu list: impossible range {part[:40]!r}")
        found.append((int(first), int(last)))
    return found


def cpus(text: str) -> list[int]:
    """The numbers a list names; an empty list names none."""
    found: list[int] = []
    for first, last in spans(text):
        if last - first >= 100_000:
            raise ParseError(f"cpu list: impossible range {first}-{last}")
        found.extend(range(first, last + 1))
    return found
