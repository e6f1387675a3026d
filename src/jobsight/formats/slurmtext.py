"""What Slurm's commands print: tables between marks, durations, sizes, TRES, states, exit codes.

A user can put anything into a job's name: a `|`, a newline, a control character, a whole line of `sacct`. So each
call has a mark of its own that nobody can know (`mark()`), it stands after every field (`--parsable`), and records
are told apart by counting fields, not by lines.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from jobsight.collector import ParseError

# So much text is taken apart at a time: the parts need some ten times its memory, and a processor's cache is small.
PIECE = 2**17
IDENTITY = re.compile(r"[0-9]+(?:[._+][A-Za-z0-9_+.%,\[\]-]*)?")
STATE = re.compile(r"[A-Z][A-Z_]*\+?(?: by .*)?")
DURATION = re.compile(r"(?:([0-9]+)-)?(?:([0-9]+):)?([0-9]+):([0-9]+)(?:\.([0-9]{1,9}))?")
SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGTPE]?)(?:[cn])?")
FACTORS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
# How Slurm writes that it does not know, or that there is none.
NOTHING = frozenset(("", "Unknown", "None", "N/A", "(null)", "INVALID", "None assigned", "none", "n/a"))
# What a message may hold at most.
LARGEST = 2**62


class Block(NamedTuple):
    """Some records of a table, as columns of equal length."""

    columns: dict[str, list[str]]
    broken: int
    """Records that could not be told apart: what is left of them is in no column."""


class Tres(NamedTuple):
    """Trackable resources: `cpu=4,gres/gpu:a100=3,mem=1500M,node=3`."""

    cpus: int | None = None
    memory: int | None = None
    nodes: int | None = None
    gpus: int | None = None
    gpu_types: str | None = None
    """`a100=2,h100=1`; None where no type was named."""


def mark() -> str:
    """A mark for one call: one of 2^48, so no user can have put it into a name. It ends with a rare character, which
    is what a search looks for first.
    """
    from os import urandom

    return "".join(LETTERS[byte & 63] for byte in urandom(8)) + "\x1f"


def blocks(text: str, first: str, second: str) -> Iterator[Block]:
    """A table with a head line and a mark after every field. The names of the first two columns tell the mark."""
    head, _, body = text.partition("\n")
    place = head.find(second, len(first))
    if not head.startswith(first) or place <= len(first):
        raise ParseError(f"expected a head line that begins {first}, a mark, {second}, got {head[:80]!r}")
    sign = head[len(first) : place]
    names = head.split(sign)
    if names.pop() or not all(names):
        raise ParseError(f"expected {sign!r} after every name of the head line, got {head[-80:]!r}")
    parts: list[str] = []
    start = 0
    while start < len(body):
        # To the last mark of the piece; what stands behind it belongs to the next.
        stop = body.rfind(sign, start, start + PIECE)
        stop = len(body) if stop < 0 or len(body) - start <= PIECE else stop
        parts += body[start:stop].split(sign)
        start = stop + len(sign)
        last = start >= len(body)
        block, parts = _cut(parts, names, last=last)
        yield block


def _cut(parts: list[str], names: list[str], *, last: bool) -> tuple[Block, list[str]]:
    """Whole records, and the fields that wait for more text."""
    width = len(names)
    # A record counts when it is known where it ends: by the line break that begins the next, or the text's end.
    whole = (len(parts) - 1) // width
    used = parts[: whole * width]
    starts = parts[: whole * width + 1 : width]
    done = last and len(parts) == whole * width + 1 and parts[-1] == "\n"
    if (
        (done or not last)
        and all(start[:1] == "\n" for start in starts[1:])
        and all(map(_begins, starts[:-1] if done or not whole else starts))
        and all(map(STATE.fullmatch, set(used[1::width])))
    ):
        columns = {name: used[place::width] for place, name in enumerate(names)}
        columns[names[0]] = [text.lstrip("\n") for text in columns[names[0]]]
        return Block(columns, 0), parts[whole * width :]
    return _mended(parts, names, last=last)


def _begins(text: str) -> bool:
    return IDENTITY.fullmatch(text, 1 if text[:1] == "\n" else 0) is not None


def _mended(parts: list[str], names: list[str], *, last: bool) -> tuple[Block, list[str]]:
    """The same where a record is short or damaged: go on with the next that is whole. A record begins with a line, a
    number and a state; one within which another begins is none.
    """
    width = len(names)
    lines = {place for place, part in enumerate(parts) if (not place or part[:1] == "\n") and _begins(part)}
    starts = [place for place in sorted(lines) if STATE.fullmatch("".join(parts[place + 1 : place + 2]))]
    if last and parts[-1] in ("", "\n"):
        lines.add(len(parts) - 1)
    records: list[list[str]] = []
    broken = place = 0
    for start in starts:
        if start < place:
            # One began within the last: neither can be trusted to be whole.
            place = start
            records.pop()
            broken += 1
        if start + width >= len(parts) and not last:
            break
        broken += start > place
        place = start
        if start + width in lines:
            records.append(parts[start : start + width])
            place = start + width
    # Of what began and has not ended yet there is never more than a record.
    left = parts[max(place, len(parts) - width) :] if not last else parts[place:]
    if last and left not in ([], [""], ["\n"]):
        broken, left = broken + 1, []
    columns = {name: [record[index] for record in records] for index, name in enumerate(names)}
    columns[names[0]] = [text.lstrip("\n") for text in columns[names[0]]]
    return Block(columns, broken), left


def duration(text: str) -> float | None:
    """Seconds of `2-03:04:05`, `04:05`, `22:53.824`; None where there is none."""
    # Most are of three kinds, and these are read in a third of the time: 22:53.824, 02:03:04 and 1-02:03:04.
    if len(text) == 9 and text[2] == ":" and text[5] == ".":
        digits = text[:2] + text[3:5] + text[6:]
        if digits.isdecimal() and digits.isascii():
            figure = int(digits)
            return (figure // 100_000 * 60_000 + figure % 100_000) / 1000
    elif len(text) == 8 and text[2] == text[5] == ":":
        digits = text[:2] + text[3:5] + text[6:]
        if digits.isdecimal() and digits.isascii():
            figure = int(digits)
            return float(figure // 10_000 * 3600 + figure // 100 % 100 * 60 + figure % 100)
    elif len(text) == 10 and text[1] == "-" and text[4] == text[7] == ":":
        digits = text[0] + text[2:4] + text[5:7] + text[8:]
        if digits.isdecimal() and digits.isascii():
            figure = int(digits)
            clock = figure // 10_000 % 100 * 3600 + figure // 100 % 100 * 60 + figure % 100
            return float(figure // 1_000_000 * 86400 + clock)
    if text in NOTHING or text in ("UNLIMITED", "Partition_Limit"):
        return None
    found = DURATION.fullmatch(text)
    if found is None:
        raise ParseError(f"duration: expected days-hours:minutes:seconds, got {text[:40]!r}")
    days, hours, minutes, seconds, fraction = found.groups()
    whole = (int(days or 0) * 24 + int(hours or 0)) * 3600 + int(minutes) * 60 + int(seconds)
    if whole > LARGEST:
        raise ParseError(f"duration: impossible {text[:40]!r}")
    return float(f"{whole}.{fraction or 0}")


def size(text: str, unit: str = "") -> int | None:
    """Bytes of `160356K`, `0.08M`, `98304`; a number without a unit is in `unit`. Rounded up: a bit is not none."""
    if text in NOTHING:
        return None
    if not unit and text.isdecimal() and text.isascii():
        return bounded(int(text), text)
    found = SIZE.fullmatch(text)
    if found is None:
        raise ParseError(f"size: expected a number with K, M, G, T or P, got {text[:40]!r}")
    number, letter = found.groups()
    factor = FACTORS[letter or unit]
    whole = int(number) * factor if "." not in number else -int(-float(number) * factor // 1)
    return bounded(whole, text)


def number(text: str) -> int | None:
    """A whole number; None where there is none."""
    if text in NOTHING:
        return None
    if not (text.isascii() and text.isdecimal()):
        raise ParseError(f"expected a whole number, got {text[:40]!r}")
    return bounded(int(text), text)


def instant(text: str) -> float | None:
    """A time in seconds since 1970, as SLURM_TIME_FORMAT=%s makes it. A date without an offset is refused: the hour
    that a change of the clock repeats would be one of two.
    """
    if text in NOTHING:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 12):
        raise ParseError(f"time: expected seconds since 1970 (SLURM_TIME_FORMAT=%s), got {text[:40]!r}")
    return float(text) or None


def tres(text: str) -> Tres:
    """What of a TRES list has a column; the rest stays in the text."""
    if text in NOTHING:
        return Tres()
    found: dict[str, str] = {}
    types = []
    for item in text.split(","):
        name, equals, value = item.partition("=")
        if not equals:
            raise ParseError(f"TRES: expected name=value, got {item[:40]!r}")
        found[name] = value
        if name.startswith("gres/gpu:"):
            types.append(f"{name[9:]}={value}")
    typed = sum(number(one.rpartition("=")[2]) or 0 for one in types) if types else None
    return Tres(
        cpus=number(found.get("cpu", "")),
        memory=size(found.get("mem", ""), "M"),
        nodes=number(found.get("node", "")),
        gpus=number(found["gres/gpu"]) if "gres/gpu" in found else typed,
        gpu_types=",".join(sorted(types)) or None,
    )


def state(text: str) -> tuple[str, int | None]:
    """`CANCELLED by 1001` → CANCELLED, 1001. A state we have not met is a state; what is no word is none."""
    word, _, rest = text.partition(" ")
    if not (word.isascii() and word.replace("_", "").replace("+", "").isalpha()):
        raise ParseError(f"state: expected a word, got {text[:40]!r}")
    return word.rstrip("+").upper(), number(rest[3:]) if rest.startswith("by ") and rest[3:].isdecimal() else None


def exit_code(text: str) -> tuple[int | None, int | None]:
    """Code and signal of `0:9`."""
    if text in NOTHING:
        return None, None
    code, colon, signal = text.partition(":")
    return number(code), number(signal) if colon else None


def bounded(value: int, text: str) -> int:
    if not 0 <= value <= LARGEST:
        raise ParseError(f"impossible number {text[:40]!r}")
    return value
