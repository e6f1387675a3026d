"""CPU lists as the kernel writes them: `0-3,8,10-11`."""

from jobsight.collector import ParseError


def cpus(text: str) -> list[int]:
    """The numbers a list names; an empty list names none."""
    found: list[int] = []
    for part in text.strip().split(","):
        if not part:
            continue
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not (first.isascii() and first.isdecimal() and last.isascii() and last.isdecimal()):
            raise ParseError(f"cpu list: expected digits or a range, got {part[:40]!r} in {text[:80]!r}")
        if not 0 <= int(last) - int(first) < 100_000:
            raise ParseError(f"cpu list: impossible range {part[:40]!r}")
        found.extend(range(int(first), int(last) + 1))
    return found
