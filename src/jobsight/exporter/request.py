"""One HTTP request without a body, from its bytes (RFC 9112). Pure.

By hand: the standard library's server comes with the e-mail parser, several megabytes of a node's memory.
"""

import re
from typing import NamedTuple

from jobsight.collector import ParseError

# More than any client of ours sends.
LONGEST = 16384
END = b"\r\n\r\n"
LINE = re.compile(r"([A-Z]{1,20}) ([!-~]{1,8000}) HTTP/1\.([01])", re.ASCII)
# Without the blanks around a value: a pattern that looks for them takes hours for a header that is nothing else.
HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\0\r\n]*)", re.ASCII)


class Request(NamedTuple):
    """What somebody wants."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: dict[str, str]
    """By small letters; those that came twice are one, with a comma."""
    lasting: bool
    """Whether the connection goes on after the answer."""

    def values(self, *names: str) -> list[str]:
        """Of the query, in its order."""
        return [value for name, value in self.query if name in names]


def parse(head: bytes) -> Request:
    """From the first line to the empty one. ParseError for anything else."""
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    found = LINE.fullmatch(first)
    if not found:
        raise ParseError(f"expected a request such as GET /metrics HTTP/1.1, got {first[:60]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        header = HEADER.fullmatch(line)
        if not header:
            raise ParseError(f"expected a header such as Accept: text/plain, got {line[:60]!r}")
        name, value = header[1].lower(), header[2].strip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    # Whoever goes through a proxy sends the whole address.
    target = re.sub(r"^https?://[^/?]*", "", found[2]) or "/"
    path, _, query = target.partition("?")
    pairs = [part.partition("=") for part in query.split("&") if part]
    wish = {word.strip().lower() for word in headers.get("connection", "").split(",")}
    lasting = "close" not in wish and (found[3] == "1" or "keep-alive" in wish)
    # A body nobody asked for would be taken for the next request.
    bodiless = headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
    return Request(
        found[1],
        unquoted(path),
        tuple((unquoted(name, plus=True), unquoted(value, plus=True)) for name, _, value in pairs),
        headers,
        lasting and bodiless,
    )


def unquoted(text: str, *, plus: bool = False) -> str:
    """`a%20b` → `a b`; in a query `a+b` too."""
    text = text.replace("+", " ") if plus else text
    content = re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes([int(found[1], 16)]), text.encode("latin-1"))
    return content.decode("utf-8", "backslashreplace")


def accepts(header: str, *kinds: str) -> str | None:
    """The kind of these that is liked best, by the weights of an Accept or Accept-Encoding header; the first of two
    that are liked as well. None if it names none of them.
    """
    liked: dict[str, float] = {}
    for part in header.split(","):
        kind, *rest = (word.strip() for word in part.split(";"))
        weight = next((word[2:] for word in rest if word.startswith("q=")), "1")
        if kind.lower() in kinds and re.fullmatch(r"[01](\.[0-9]{0,3})?", weight, re.ASCII):
            liked[kind.lower()] = max(liked.get(kind.lower(), 0.0), float(weight))
    best = max(liked.values(), default=0.0)
    return next((kind for kind in kinds if best and liked.get(kind) == best), None)
