"""What is taken in and what is refused, with path and reason."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobsight.ingest.accept import LARGEST, Accepted, Refused, accept

KEPT = Path(__file__).parent.parent / "wire"
LINES = [line for path in sorted(KEPT.rglob("*.jsonl")) for line in path.read_bytes().splitlines()]


def load_message(**changes: Any) -> bytes:
    rows = {"load1": [0.5], "load5": [0.5], "load15": [0.5], "runnable": [1], "existing": [80]}
    message = {
        "schema": 1, "cluster": "fox", "node": "n1", "boot": "b1", "collector": "load",
        "time": "2026-11-15T08:00:00+00:00", "status": "ok", "rows": rows,
    }  # fmt: skip
    return json.dumps({**message, **changes}).encode()


def with_rows(**changes: Any) -> bytes:
    message = json.loads(load_message())
    message["rows"] |= changes
    return json.dumps({**message, "rows": {k: v for k, v in message["rows"].items() if v is not None}}).encode()


def test_a_message_with_only_what_is_needed_is_taken() -> None:
    found = accept(load_message())
    assert isinstance(found, Accepted)
    assert found.columns["load1"] == [0.5]
    assert found.count == 1


@pytest.mark.parametrize(
    ("line", "path", "reason"),
    [
        (b"not json", "$", "JSON is malformed"),
        (b"[1]", "$", "Expected `object`, got `array`"),
        (load_message(schema=2), "$.schema", "schema 2, this server knows 1"),
        (load_message(node=""), "$.node", "length >= 1"),
        (load_message(node="x" * 300), "$.node", "length <= 255"),
        (load_message(collector="weather"), "$.collector", "no collector 'weather'"),
        (load_message(collector="../etc/passwd"), "$.collector", "no collector"),
        (load_message(time="yesterday"), "$.time", "Invalid RFC3339"),
        (load_message(time="2026-11-15T08:00:00"), "$.time", "a time without an offset"),
        (load_message(time="9999-12-31T23:59:59-23:00"), "$.time", "a time outside the years 1970 to 9999"),
        (load_message(time="1969-12-31T23:59:59+00:00"), "$.time", "a time outside the years 1970 to 9999"),
        (load_message().replace(b"[0.5]", b"[" * 5000 + b"]" * 5000, 1), "$", "ecursion"),
        (load_message(status="fine"), "$.status", "Invalid enum value 'fine'"),
        (load_message(extra=1), "$", "unknown field `extra`"),
        (with_rows(load1=["high"]), "$.rows.load1[0]", "Expected `float`, got `str`"),
        (with_rows(load1=[None]), "$.rows.load1[0]", "Expected `float`, got `null`"),
        (with_rows(load1=0.5), "$.rows.load1", "Expected `array | null`, got `float`"),
        (with_rows(runnable=[2**63]), "$.rows.runnable[0]", "<= 4611686018427387904"),
        (with_rows(runnable=[1.5]), "$.rows.runnable[0]", "Expected `int`, got `float`"),
        (with_rows(load5=[0.5, 0.6]), "$.rows.load1", "1 values where others have 2"),
        (with_rows(load5=None), "$.rows.load5", "this column is needed"),
        (with_rows(surprise=[1]), "$.rows", "unknown field `surprise`"),
        (load_message(node="n\x00").replace(b"\\u0000", b"\\udcff"), "$", "surrogate"),
        (b'{"schema": 1, "cluster": "\xff"}', "$", "invalid start byte"),
        (b"[" * 100_000, "$", ""),
    ],
)
def test_a_refusal_names_path_and_reason(line: bytes, path: str, reason: str) -> None:
    found = accept(line)
    assert isinstance(found, Refused), found
    assert (found.path, found.line) == (path, line)
    assert reason in found.reason


def test_a_message_over_the_limit_is_refused_and_only_its_head_is_kept() -> None:
    found = accept(b'{"schema": 1, "error": "' + b"x" * LARGEST + b'"}')
    assert isinstance(found, Refused)
    assert len(found.line) == 1024


def test_what_is_kept_is_what_was_understood() -> None:
    """Two readers of one text may differ: in how a time is written, in keys that stand twice, in too many digits."""
    twice = load_message().replace(b'"node": "n1"', b'"node": "other", "node": "n1"')
    for line in (load_message(time="2026-11-15t08:00:00.123456789z"), twice):
        found = accept(line)
        assert isinstance(found, Accepted)
        again = accept(found.line)
        assert isinstance(again, Accepted)
        assert again.identity == found.identity
        assert again.line == found.line
        assert found.node == "n1"


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(LINES), st.data())
def test_a_mutated_message_is_taken_or_refused_and_nothing_else_happens(line: bytes, data: st.DataObject) -> None:
    broken = bytearray(line)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(broken) - 1))
        match data.draw(st.sampled_from(["delete", "insert", "replace", "cut"])):
            case "delete":
                del broken[place : place + data.draw(st.integers(1, 10))]
            case "insert":
                broken[place:place] = data.draw(st.binary(max_size=8))
            case "replace":
                broken[place : place + 1] = data.draw(st.binary(min_size=1, max_size=1))
            case "cut":
                del broken[place:]
        if not broken:
            return
    found = accept(bytes(broken))
    if isinstance(found, Refused):
        assert found.path.startswith("$")
        assert found.reason
    else:
        assert len({len(values) for values in found.columns.values()}) <= 1
