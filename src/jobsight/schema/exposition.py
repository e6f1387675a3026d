"""Prometheus names and text, derived from records: base units, counters end in `_total`, labels are labels.

Two formats, as the one who asks wants it: Prometheus' own text, and OpenMetrics.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jobsight.schema.record import Field, fields_of
from jobsight.schema.units import base, word

PREFIX = "jobsight"
# They say how a thing is, not which one it is: a series whose name changes is two, and a counter's rate is lost.
STATES = frozenset({"throttle", "xid", "trouble", "held_by"})
# Prometheus has a label `job` of its own, for where it scrapes; ours would become `exported_job`.
RENAMED = {"job": "jobid"}
# Records that describe, and what names the thing: what they say in words is one series, `_info`, and their numbers
# carry the name alone.
DESCRIPTIONS = {"allocation": ("scheduler", "job"), "gpucard": ("uuid",), "hardware": ()}


class Family(NamedTuple):
    """One metric: its name as its samples have it, and its samples as lines."""

    name: str
    kind: str
    """gauge or counter."""
    help: str
    samples: list[str]


def metric(table: str, field: Field) -> str:
    """`jobsight_process_cpu_user_seconds_total`."""
    unit = word(field.unit)
    parts = [PREFIX, table, field.name]
    if unit and not field.name.endswith(unit):
        parts.append(unit)
    if field.kind == "counter":
        parts.append("total")
    return "_".join(parts)


def labels(table: str, record: type[Any]) -> list[Field]:
    """Which thing a row is about. Not gauges that are words: a process that wakes up is no other series."""
    found = [field for field in fields_of(record) if field.kind == "label" and field.name not in STATES]
    return [field for field in found if field.name in DESCRIPTIONS.get(table, (field.name,))]


def values(record: type[Any]) -> list[Field]:
    """Numbers; a state that is one, too."""
    return [
        field
        for field in fields_of(record)
        if (field.kind != "label" and field.unit is not str)
        or (field.name in STATES and base(field.unit) in (int, float))
    ]


def families(table: str, record: type[Any], columns: Mapping[str, Sequence[Any]]) -> Iterator[Family]:
    """The metrics of a table, from its rows as columns. Missing values have no sample."""
    if not columns:
        return
    marks = _marks(labels(table, record), columns)
    for field in values(record):
        name = metric(table, field)
        samples = [
            f"{name}{mark} {number(value)}"
            for mark, value in zip(marks, columns[field.name], strict=True)
            if value is not None
        ]
        if samples:
            yield Family(name, "counter" if field.kind == "counter" else "gauge", field.help, samples)
    if table in DESCRIPTIONS:
        words = [field for field in fields_of(record) if field.kind == "label" and field.name not in STATES]
        name = f"{PREFIX}_{table}_info"
        samples = [f"{name}{mark} 1" for mark in _marks(words, columns)]
        yield Family(name, "gauge", f"{_sentence(record)} The value is always 1.", samples)


def text(families: Iterable[Family]) -> Iterator[str]:
    """Prometheus' text format, a piece for each family that has samples."""
    for family in families:
        if not family.samples:
            continue
        about = family.help.replace("\\", "\\\\").replace("\n", "\\n")
        yield "\n".join((f"# HELP {family.name} {about}", f"# TYPE {family.name} {family.kind}", *family.samples, ""))


def openmetrics(families: Iterable[Family]) -> Iterator[str]:
    """OpenMetrics 1.0: a counter's family is called without `_total`, and the end is said."""
    for family in families:
        if not family.samples:
            continue
        name = family.name.removesuffix("_total") if family.kind == "counter" else family.name
        about = escaped(family.help)
        yield "\n".join((f"# HELP {name} {about}", f"# TYPE {name} {family.kind}", *family.samples, ""))
    yield "# EOF\n"


def mark(pairs: Iterable[tuple[str, Any]]) -> str:
    """`{job="8",step="0"}`; a label without a value is left out."""
    shown = [f'{name}="{escaped(shown_as(value))}"' for name, value in pairs if value is not None]
    return "{" + ",".join(shown) + "}" if shown else ""


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def number(value: float) -> str:
    return repr(value) if isinstance(value, float) else str(int(value))


def shown_as(value: Any) -> str:
    """As Prometheus' own programs write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _marks(fields: list[Field], columns: Mapping[str, Sequence[Any]]) -> list[str]:
    count = len(next(iter(columns.values())))
    if not fields:
        return [""] * count
    names = [field.name for field in fields]
    rows = zip(*(columns[name] for name in names), strict=True)
    shown = [RENAMED.get(name, name) for name in names]
    return [mark(zip(shown, row, strict=True)) for row in rows]


def _sentence(record: type[Any]) -> str:
    return (record.__doc__ or "").strip().splitlines()[0]
