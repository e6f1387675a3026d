"""The reference pages, derived: one section for each collector, with its record and settings."""

from typing import Any

from jobsight.collector import Collector
from jobsight.schema.exposition import metric
from jobsight.schema.record import Field, fields_of
from jobsight.schema.units import base, word

NAMES = {int: "integer", float: "number", str: "text", bool: "yes or no"}


def page(collectors: list[Collector], derived: dict[str, type[Any]]) -> str:
    """`docs/reference/records.md`."""
    parts = ["# Records", "", "Generated from the code by `make docs`. Do not edit.", ""]
    parts.append("Every row also carries `cluster`, `node`, `boot` and `time` (seconds since 1970, UTC).")
    for found in collectors:
        parts += ["", f"## {found.name}", "", found.about, "", f"Sampled every {found.every:g} s by default."]
        parts += ["", *_table(found.name, found.record)]
        if found.options:
            names = ", ".join(f"`{name}`" for name in found.options._fields)
            parts += [
                "",
                f"Settings under `collect.{found.name}`, besides `enabled`, `every`, `deadline`: {names}.",
            ]
    for name, record in derived.items():
        parts += [
            "",
            f"## {name}",
            "",
            f"{(record.__doc__ or '').strip()} Made by the server.",
            "",
            *_table(name, record),
        ]
    return "\n".join(parts) + "\n"


def _table(name: str, record: type[Any]) -> list[str]:
    lines = ["| column | kind | unit | meaning | metric |", "|---|---|---|---|---|"]
    return lines + [_line(name, field) for field in fields_of(record)]


def _line(name: str, field: Field) -> str:
    unit = word(field.unit) or NAMES[base(field.unit)]
    shown = f"`{metric(name, field)}`" if field.kind != "label" and field.unit is not str else ""
    meaning = field.help + (" May be missing." if field.optional else "")
    if field.grant:
        meaning += f" {field.grant}."
    return f"| `{field.name}` | {field.kind} | {unit} | {meaning} | {shown} |"
