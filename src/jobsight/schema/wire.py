"""The wire format, written with the standard library: one JSON object a line, compressed as gzip members.

Members can be glued together, so a message is compressed once, kept in the spool as it is, and sent as it is.
"""

import io
import json
import time
import zlib
from typing import Any

from jobsight.schema.message import SCHEMA, Message

# gzip -1: level 6 costs five times the CPU of all other encoding for a tenth less size.
LEVEL = 1
GZIP = 31
# Shorter columns are written in one go: remembering them would cost more than it saves. So are those that are as long
# as no node's processes are: their memory would be the agent's from then on.
LONG, LONGEST = 64, 20_000

_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def instant(seconds: float) -> str:
    """`2026-11-15T08:16:37.123456+00:00`. Microseconds, so that two runs never share an identity."""
    whole, micro = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{micro:06d}+00:00"


def envelope(message: Message) -> dict[str, Any]:
    """The message as plain values, in the order they are written."""
    return {
        "schema": SCHEMA,
        "cluster": message.origin.cluster,
        "node": message.origin.node,
        "boot": message.origin.boot,
        "collector": message.collector,
        "time": instant(message.time),
        "uptime": round(message.uptime, 3),
        "every": message.every,
        "status": message.status.value,
        "seconds": round(message.seconds, 6),
        "error": message.error,
        "missing": message.missing,
        "rows": message.rows,
    }


def encode(message: Message) -> bytes:
    """One line of JSON, newline included."""
    rows = {name: values for name, values in message.rows.items() if _said(values)}
    if not rows or len(next(iter(rows.values()))) < LONG:
        return f"{_json({**envelope(message), 'rows': rows})}\n".encode()
    # Column by column: the encoder makes a small text of every value before it joins them, and those of one column
    # are a few hundred kilobytes where those of all would be megabytes of an agent's memory.
    head = _json({**envelope(message), "rows": None}).removesuffix("null}")
    line = io.BytesIO()
    line.write(head.encode())
    before = b"{"
    for name, values in rows.items():
        line.write(before)
        line.write(_column(message.collector, name, values))
        before = b","
    line.write(b"}}\n")
    # No copy: what was written is what is given.
    return line.getvalue()


def _said(values: Any) -> bool:
    """Whether a column says anything: one that is missing in every row need not be sent to be missing."""
    return values[0] is not None or values.count(None) < len(values)


# Each long column as it was last, and its text once it has held still: half of a process's columns do while none
# comes or goes, and comparing values that are mostly the same objects costs a tenth of writing them.
_written: dict[tuple[str, str], tuple[Any, bytes]] = {}


def _column(collector: str, name: str, values: Any) -> bytes:
    if len(values) > LONGEST:
        _written.pop((collector, name), None)
        return f"{_json(name)}:{_json(values)}".encode()
    before, text = _written.get((collector, name), (None, b""))
    still = before == values
    if not (still and text):
        text = f"{_json(name)}:{_json(values)}".encode()
    _written[collector, name] = (values, text if still else b"")
    return text


def compress(line: bytes) -> bytes:
    """One gzip member."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
    return packer.compress(line) + packer.flush()
