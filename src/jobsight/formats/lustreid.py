r"""Identifiers of Lustre's job statistics: what a client put there, and what can be read out of it.

A client makes them from a format of its own (`jobid_name`): %j job, %u user, %g group, %h node, %H node without its
domain, %e program, %p process. They are bytes, at most 31. Since 2.15.2 the server prints them quoted, with \xHH for
odd ones; the same job must have the same name before and after, so what counts is what they were.

A client before 2.16 may send one it is still writing. What is torn fits no format and is called malformed; a half
number that looks like a job would be worse than none.
"""

import re
from typing import Any, NamedTuple

from jobsight.collector import ParseError

# Of 32 the last is the zero that ends it.
LONGEST = 31
MALFORMED = "malformed"
LARGEST_UID = 2**32 - 1

# What the codes can stand for. A job begins with a digit: 17, 17_4, 17.0, 17[4].server.
CODES = {
    "j": r"\d[\w.\[\]+-]",
    "u": r"\d",
    "g": r"\d",
    "p": r"\d",
    "h": r"[\w.-]",
    "H": r"[\w-]",
    "e": r".",
}
CODE = re.compile(r"%(?:\.(\d+))?([a-zA-Z])(?:\?%(?:\.(\d+))?([a-zA-Z]))?")
_ESCAPE = re.compile(rb"\\x([0-9A-Fa-f]{2})")
_MARKED = re.compile(r"\\(\\|x[0-9a-f]{2})")


class Identity(NamedTuple):
    """What an identifier says."""

    job: str | None = None
    uid: int | None = None
    host: str | None = None
    executable: str | None = None
    format: str = MALFORMED


NOTHING = Identity()


def decoded(printed: bytes) -> bytes:
    r"""The identifier itself. Only within quotes is \xHH one byte: old servers print no quotes and mark nothing."""
    if printed[:1] == b'"' == printed[-1:] and len(printed) > 1:
        inner = printed[1:-1]
        return _ESCAPE.sub(lambda found: bytes((int(found[1], 16),)), inner) if b"\\" in inner else inner
    return printed


def to_text(raw: bytes) -> str:
    r"""Any bytes as text, without loss: UTF-8 as it is, other bytes and control characters as \xHH, \ as \\."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and "\\" not in text and text:
        return text
    text = raw.decode("utf-8", "surrogateescape")
    return "".join(map(_marked, text))


def _marked(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def to_bytes(text: str) -> bytes:
    """The way back; ParseError for what `to_text` never gives."""
    rest = _MARKED.sub("", text)
    if "\\" in rest:
        raise ParseError(f"identifier: expected \\\\ or \\xHH after a backslash, got {text!r}")
    made, at = [], 0
    for found in _MARKED.finditer(text):
        made.append(text[at : found.start()].encode())
        made.append(b"\\" if found[1] == "\\" else bytes((int(found[1][1:], 16),)))
        at = found.end()
    return b"".join((*made, text[at:].encode()))


class Formats:
    """Named formats, tried in their order."""

    def __init__(self, named: dict[str, str]) -> None:
        patterns = {name: _pattern(text) for name, text in named.items()}
        self._named = [
            (name, pattern.fullmatch, tuple(pattern.groupindex.get(code) for code in "juhHe"))
            for name, pattern in patterns.items()
        ]
        # A node, a program and a user are in many identifiers: one copy of each will do.
        self._same: dict[Any, Any] = {}

    def identify(self, text: str) -> Identity:
        """What an identifier says by the first format that it has."""
        for name, match, given in self._named:
            found = match(text)
            if found is None:
                continue
            job_at, number_at, host_at, short_at, program_at = given
            job = (found[job_at] or None) if job_at else None
            number = (found[number_at] or None) if number_at else None
            host = found[host_at] if host_at else found[short_at] if short_at else None
            executable = (found[program_at] or None) if program_at else None
            uid = None if number is None else int(number)
            if uid is not None and uid > LARGEST_UID:
                continue
            if job_at is None and executable is not None and uid is not None:
                # As on login nodes, where nobody gives numbers.
                job = f"{executable}@{uid}"
            same = self._same.setdefault
            if executable is not None:
                executable = same(executable, executable)
            return tuple.__new__(Identity, (job, same(uid, uid), same(host, host), executable, name))
        return NOTHING


def _pattern(text: str) -> re.Pattern[str]:
    """What a format can make. Blanks in one vanish at the client, and so do codes it does not know."""
    compact = "".join(text.split())
    made, at, seen = [], 0, set()
    for found in CODE.finditer(compact):
        made.append(re.escape(compact[at : found.start()]))
        at = found.end()
        first, second = found[2], found[4]
        for code in filter(None, (first, second)):
            if code not in CODES or code in seen:
                raise ParseError(f"format: expected each of {', '.join('%' + c for c in CODES)} once, got {text!r}")
            seen.add(code)
        if second:
            made.append(f"(?:{_group(first, found[1], empty=False)}|{_group(second, found[3])})")
        else:
            made.append(_group(first, found[1]))
    made.append(re.escape(compact[at:]))
    if not seen or "%" in CODE.sub("", compact):
        raise ParseError(f"format: expected one such as %j:%u:%H, got {text!r}")
    return re.compile("".join(made), re.ASCII | re.DOTALL)


def _group(code: str, length: str | None, *, empty: bool = True) -> str:
    """A job may be missing, and a program may have no name; a number and a node are always there."""
    if code == "j":
        body = CODES[code] + (f"{{0,{max(0, int(length) - 1)}}}" if length else "*")
        return f"(?P<j>(?:{body}){'?' if empty else ''})"
    if code == "e":
        return f"(?P<e>{CODES[code]}{f'{{0,{length}}}' if length else '*'})"
    most = length or ("10" if code in "ugp" else "")
    return f"(?P<{code}>{CODES[code]}{f'{{1,{most}}}' if most else '+'})"
