"""Prometheus names and text, derived from records: base units, counters end in `_total`, labels are labels."""

from collections.abc import Iterable, Iterator
from typing import Any

from jobsight.schema.record import Field, fields_of
from jobsight.schema.units import word

PREFIX = "jobsight"


def metric(table: str, field: Field) -> str:
    """`jobsight_process_cpu_user_seconds_total`."""
    unit = word(field.unit)
    parts = [PREFIX, table, field.name]
    if unit and not field.name.endswith(unit):
        parts.append(unit)
    if field.kind == "counter":
        parts.append("total")
    return "_".join(parts)


def labels(record: type[Any]) -> list[Field]:
    """Which thing a row is about. Not gauges that are words: a process that wakes up is no other series."""
    return [field for field in fields_of(record) if field.kind == "label"]


def values(record: type[Any]) -> list[Field]:
    return [field for field in fields_of(record) if field.kind != "label" and field.unit is not str]


def exposition(table: str, record: type[Any], rows: Iterable[Any]) -> Iterator[str]:
    """Lines of the text format. Missing values have no line."""
    rows = list(rows)
    marks = [_marks([(field.name, getattr(row, field.name)) for field in labels(record)]) for row in rows]
    for field in values(record):
        name = metric(table, field)
        shown = [
            f"{name}{mark} {_number(value)}"
            for mark, row in zip(marks, rows, strict=True)
            if (value := getattr(row, field.name)) is not None
        ]
        if shown:
            yield f"# HELP {name} {field.help.replace(chr(92), chr(92) * 2)}"
            yield f"# TYPE {name} {'counter' if field.kind == 'counter' else 'gauge'}"
            yield from shown


def _marks(pairs: list[tuple[str, Any]]) -> str:
    shown = [f'{name}="{_escaped(str(value))}"' for name, value in pairs if value is not None]
    return "{" + ",".join(shown) + "}" if shown else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return repr(float(value)) if isinstance(value, float) else str(int(value))
