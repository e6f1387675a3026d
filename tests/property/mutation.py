"""Real messages, damaged: what broken, foreign or hostile senders might send. Everything comes out of one seed."""

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

WIRE = Path(__file__).parent.parent / "wire"
# No page may have this in it: whatever stands behind the bracket would be a tag.
TAG = "<xss7"

HOSTILE = [
    f"</script>{TAG} onload=alert(1)>", f"'\">{TAG} src=x>", "'; DROP TABLE process; --", '" OR 1=1 --', "a\0b",
    "../../../../etc/passwd", "%2e%2e%2f", "\u202e\u0000\uffff", "\r\n\r\nSet-Cookie: x", "{{7*7}}", "${jndi:x}",
    "%s%n%x", "\\", "'", "\x1b[2J", "😀" * 40, "", " ", "\n", "-1", "NULL", "x" * 300, "x" * 2**20, "\ud800",
    "a/b?c#d",
]  # fmt: skip
NUMBERS: list[Any] = [
    0, -1, 1, 2**31, 2**53 + 1, 2**62, 2**62 + 1, 2**63, 2**64, -(2**63), 10**30, 10**400, 1e18, 1e19, -1e18, 1e-320,
    0.1, -0.0, 1e308, True, None, "7", [], {}, [[1]],
]  # fmt: skip
TIMES: list[Any] = [
    "1970-01-01T00:00:00+00:00", "1969-12-31T23:59:59+00:00", "9999-12-31T23:59:59.999999+00:00",
    "2026-11-15T08:00:00",
    "0001-01-01T00:00:00+14:00", "2026-02-30T00:00:00Z", "2026-11-15T24:00:00Z", "2026-11-15T08:00:60Z", "now", "", 0,
    1794700000, None, "2026-11-15", "2026-11-15T08:00:00+99:00", "10000-01-01T00:00:00Z",
]  # fmt: skip
# What JSON does not have, or what overflows.
TOKENS = [
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1e999",
    b"-1e999",
    b"9" * 400,
    b"0x10",
    b"01",
    b"1.",
    b"tru",
    b"undefined",
]
NUMBER = re.compile(rb"(?<=[\[,:])-?\d[\d.e+-]*")

Value = dict[str, Any]


def samples() -> list[Value]:
    """A real message of every collector, of every release."""
    files = sorted(WIRE.glob("*/*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines() if line.strip()]


class Mutation:
    """Damaged messages, one after the other, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._samples = samples()
        self._number = 0

    def lines(self, count: int) -> Iterator[bytes]:
        """None has a newline in it or is empty: each is one message to who reads it."""
        for _ in range(count):
            yield self._line().replace(b"\n", b" ").strip() or b"x"

    def broken_gzip(self, packed: bytes) -> bytes:
        choice = self._chance.random()
        if choice < 0.4:
            return packed[: self._chance.randrange(len(packed)) + 1]
        if choice < 0.8:
            return self._flipped(packed)
        return self._chance.randbytes(self._chance.randrange(1, 200))

    def _line(self) -> bytes:
        value = self._fresh()
        changes = [self._strange_value, self._hostile_text, self._columns, self._envelope, self._time, self._keys]
        if self._chance.random() < 0.6:
            for _ in range(self._chance.choice([1, 1, 1, 2, 3])):
                self._chance.choice(changes)(value)
        text = json.dumps(value, ensure_ascii=self._chance.random() < 0.7)
        line = text.encode("utf-8", "surrogatepass")
        if self._chance.random() < 0.5:
            damages: list[Callable[[bytes], bytes]] = [
                self._flipped, self._cut, self._token, self._nested, self._doubled_key, self._foreign_bytes,
                self._moved,
            ]  # fmt: skip
            line = self._chance.choice(damages)(line)
        return line

    def _fresh(self) -> Value:
        """A sample with a time of its own, of one of a few nodes."""
        value = copy.deepcopy(self._chance.choice(self._samples))
        self._number += 1
        hour, second = divmod(self._number, 3600)
        value["time"] = f"2026-11-15T{hour % 24:02d}:{second // 60:02d}:{second % 60:02d}+00:00"
        value["node"] = f"m{self._chance.randrange(3)}"
        return value

    def _strange_value(self, value: Value) -> None:
        """A column's value, or the whole column, is another thing."""
        rows = value.get("rows")
        if isinstance(rows, dict) and rows:
            name = self._chance.choice(list(rows))
            column = rows[name]
            if isinstance(column, list) and column and self._chance.random() < 0.8:
                column[self._chance.randrange(len(column))] = copy.deepcopy(self._chance.choice(NUMBERS))
            else:
                rows[name] = copy.deepcopy(self._chance.choice([*NUMBERS, "text", {"a": 1}]))

    def _hostile_text(self, value: Value) -> None:
        text = self._chance.choice(HOSTILE)
        if self._chance.random() < 0.8:
            text = text[:1000]
        rows = value.get("rows") if isinstance(value.get("rows"), dict) else {}
        places = [
            (column, index)
            for column in (rows or {}).values()
            if isinstance(column, list)
            for index, cell in enumerate(column)
            if isinstance(cell, str)
        ]
        if places and self._chance.random() < 0.8:
            column, index = self._chance.choice(places)
            column[index] = text
        else:
            value[self._chance.choice(["cluster", "node", "boot", "collector", "error", "status"])] = text

    def _columns(self, value: Value) -> None:
        """Uneven, many, missing, unknown."""
        rows = value.get("rows")
        if not isinstance(rows, dict) or not rows:
            return
        name = self._chance.choice(list(rows))
        column = rows[name] if isinstance(rows[name], list) else []
        match self._chance.randrange(6):
            case 0:
                column.append(column[0] if column else 1)
            case 1:
                del column[-1:]
            case 2:
                del rows[name]
            case 3:
                rows[self._chance.choice(["unknown", "", "rows", "time", "a" * 1000, TAG])] = column
            case 4 if len(column) < 50:
                for key in rows:
                    rows[key] = rows[key] * 300 if isinstance(rows[key], list) else rows[key]
            case _:
                rows[name] = column * (self._chance.choice([0, 2, 5000]) if len(column) < 50 else 0)

    def _envelope(self, value: Value) -> None:
        name = self._chance.choice(
            ["schema", "uptime", "every", "seconds", "status", "missing", "rows", "boot", "error"]
        )
        value[name] = copy.deepcopy(self._chance.choice([*NUMBERS, "failed", "ok", {TAG: TAG}, {"a": None}]))

    def _time(self, value: Value) -> None:
        value["time"] = self._chance.choice(TIMES)

    def _keys(self, value: Value) -> None:
        name = self._chance.choice(list(value))
        match self._chance.randrange(3):
            case 0:
                del value[name]
            case 1:
                value[name + "x"] = value.pop(name)
            case _:
                value[self._chance.choice(["unknown", "", "__class__", TAG])] = 1

    def _flipped(self, line: bytes) -> bytes:
        made = bytearray(line)
        for _ in range(self._chance.choice([1, 1, 2, 8])):
            made[self._chance.randrange(len(made))] ^= 1 << self._chance.randrange(8)
        return bytes(made)

    def _cut(self, line: bytes) -> bytes:
        place = self._chance.randrange(len(line))
        return line[:place] if self._chance.random() < 0.7 else line[place:]

    def _token(self, line: bytes) -> bytes:
        """A number becomes one that JSON does not have."""
        found = list(NUMBER.finditer(line))
        if not found:
            return line
        where = self._chance.choice(found)
        return line[: where.start()] + self._chance.choice(TOKENS) + line[where.end() :]

    def _nested(self, line: bytes) -> bytes:
        depth = self._chance.choice([10, 1000, 1000, 50_000])
        opening = self._chance.choice([b"[", b'{"a":'])
        closing = self._chance.choice([b"", b"]" * depth, b"}" * depth])
        found = list(NUMBER.finditer(line))
        if not found:
            return opening * depth
        where = self._chance.choice(found)
        return line[: where.start()] + opening * depth + b"1" + closing + line[where.end() :]

    def _doubled_key(self, line: bytes) -> bytes:
        name = self._chance.choice([b"node", b"time", b"rows", b"cluster", b"collector", b"schema"])
        other = self._chance.choice([b'"other"', b"1", b"{}", b"null", b"[]"])
        return line[:-1] + b', "' + name + b'": ' + other + b"}"

    def _foreign_bytes(self, line: bytes) -> bytes:
        place = self._chance.randrange(len(line))
        piece = self._chance.choice([b"\xff\xfe", b"\xc0\x80", b"\0", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r", b"\t"])
        return line[:place] + piece * self._chance.choice([1, 1, 50]) + line[place:]

    def _moved(self, line: bytes) -> bytes:
        """A piece of it stands somewhere else, or twice."""
        start, end, place = sorted(self._chance.randrange(len(line)) for _ in range(3))
        return line[:place] + line[start:end] + line[place:]
