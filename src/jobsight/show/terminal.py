"""Tables and colour for people at a terminal; plain and stable when piped."""

import csv
import io
import json
import os
import sys
from typing import Any

COLOURS = {"ok": "32", "careful": "33", "critical": "31", "quiet": "2", "strong": "1"}


def coloured(text: str, meaning: str) -> str:
    """Colour only on a terminal, and not for those who set NO_COLOR."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{COLOURS[meaning]}m{text}\x1b[0m"


def safe(text: str) -> str:
    """On one line and without control characters: names may hold anything."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def table(names: list[str], rows: list[list[str]], right: frozenset[str] = frozenset()) -> str:
    """Columns as wide as they need; those in `right` are numbers."""
    cells = [names, *([safe(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
    lines = []
    for row in cells:
        shown = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(names, row, widths, strict=True)
        ]
        lines.append("  ".join(shown).rstrip())
    return "\n".join(lines)


def export(items: list[dict[str, Any]], form: str) -> str:
    """JSON, CSV or TSV of plain values; lists and mappings inside a cell are JSON."""
    if form == "json":
        return json.dumps(items, indent=2)
    text = io.StringIO()
    names = list(items[0]) if items else []
    if form == "tsv":
        # TSV has no quotes: what would break a line is escaped.
        lines = [names, *([safe(_cell(item[name])).replace("\t", "\\t") for name in names] for item in items)]
        return "\n".join("\t".join(line) for line in lines)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    # What would move a terminal's cursor or run in a spreadsheet is defused.
    writer.writerows([_inert(safe(_cell(item[name]))) for name in names] for item in items)
    return text.getvalue().rstrip("\n")


def _inert(text: str) -> str:
    return f"'{text}" if text[:1] in ("=", "+", "@") or (text[:1] == "-" and not text[1:2].isdigit()) else text


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, list | dict) else str(value)
