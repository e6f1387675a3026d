"""What a job asked of a Lustre file system, on the terminal."""

from typing import Any

from jobsight.formats.number import digits, meter, ratio, spark, volume
from jobsight.show.terminal import table

WIDTH = 60
TARGETS = 8


def told(profile: dict[str, Any]) -> str:
    """Rates over time and the targets that it loads most; empty where nothing is known."""
    lustre = profile.get("lustre")
    if not lustre:
        return ""
    lines = [f"file system{'; partly found by user and node' if lustre['repaired'] else ''}"]
    for name, text in (("read", "read"), ("written", "written"), ("metadata", "names")):
        values = profile["series"][f"lustre_{name}"]["value"]
        if any(values):
            most = digits(max(values)) if name == "metadata" else volume(max(values))
            lines.append(f"{text:<8}{spark(_thinned(values))}  peak {most}/s")
    rows = [
        [
            row["target"], volume(row["read"]), volume(row["written"]), str(row["metadata"]), ratio(row["share"]),
            meter(row["share"], 1.0, 10),
        ]
        for row in lustre["targets"][:TARGETS]
    ]  # fmt: skip
    names = ["target", "read", "written", "metadata", "share of its load", ""]
    lines.append(table(names, rows, frozenset(names[1:5])))
    more = len(lustre["targets"]) - len(rows)
    return "\n".join(lines) + (f"\n… and {more} more" if more else "")


def _thinned(values: list[float]) -> list[float]:
    """The highest of each of so many parts."""
    size = -(-len(values) // WIDTH)
    return [max(values[first : first + size]) for first in range(0, len(values), size)]
