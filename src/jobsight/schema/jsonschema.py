"""The wire format as JSON Schema, derived: one schema for each collector's messages."""

from typing import Any

from jobsight.collector import Collector
from jobsight.schema.message import SCHEMA, Status
from jobsight.schema.record import Field, fields_of
from jobsight.schema.units import base, word

TYPES = {int: "integer", float: "number", str: "string", bool: "boolean"}


def message(collector: Collector) -> dict[str, Any]:
    """What a message of this collector looks like."""
    fields = fields_of(collector.record)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": collector.name,
        "description": (collector.record.__doc__ or "").strip(),
        "type": "object",
        "required": ["schema", "cluster", "node", "boot", "collector", "time", "status", "rows"],
        "additionalProperties": False,
        "properties": {
            "schema": {"const": SCHEMA},
            "cluster": _word("The cluster the node belongs to."),
            "node": _word("The node's host name."),
            "boot": _word("The kernel's name for this boot of the node."),
            "collector": {"const": collector.name},
            "time": {"type": "string", "format": "date-time", "description": "The call, UTC with offset."},
            "uptime": {"type": "number", "description": "Seconds since boot at the call."},
            "every": {"type": ["number", "null"], "description": "Seconds until the next run is due."},
            "status": {"enum": [status.value for status in Status]},
            "seconds": {"type": "number", "description": "How long the run took."},
            "error": {"type": ["string", "null"]},
            "missing": {
                "type": "object",
                "description": "Columns with values that could not be had, and why.",
                "additionalProperties": {"type": "string"},
            },
            "rows": {
                "type": "object",
                "description": "Columns of equal length.",
                "additionalProperties": False,
                "properties": {field.name: _column(field) for field in fields},
            },
        },
    }


def _word(text: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": 255, "description": text}


def _column(field: Field) -> dict[str, Any]:
    kind = TYPES[base(field.unit)]
    unit = word(field.unit)
    return {
        "type": "array",
        "items": {"type": [kind, "null"] if field.optional else kind},
        "description": field.help + (f" In {unit}." if unit else ""),
        "x-kind": field.kind,
    }
