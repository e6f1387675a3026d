"""The wire: what is encoded decodes to the same, for ever."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobsight import catalogue
from jobsight.collector import Collector
from jobsight.ingest.accept import Accepted, accept
from jobsight.schema.message import Message, Origin, Status
from jobsight.schema.record import columns, fields_of
from jobsight.schema.units import base
from jobsight.schema.wire import compress, encode, instant
from tests.conftest import said

KEPT = Path(__file__).parent.parent / "wire"

VALUES: dict[type, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**62), 2**62),
    float: st.floats(-1e18, 1e18),
    str: st.text(),
    bool: st.booleans(),
}


def rows(found: Collector) -> st.SearchStrategy[list[Any]]:
    """Rows generated from the record itself."""
    fields = {
        field.name: st.none() | VALUES[base(field.unit)] if field.optional else VALUES[base(field.unit)]
        for field in fields_of(found.record)
    }
    return st.lists(st.fixed_dictionaries(fields).map(lambda values: found.record(**values)), max_size=5)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_is_encoded_is_accepted_as_the_same(data: st.DataObject) -> None:
    found = data.draw(st.sampled_from(catalogue.collectors()))
    made = data.draw(rows(found))
    message = Message(
        Origin("fox", "n1", "b1"),
        found.name,
        1794733024.000001,
        7.5,
        30.0,
        Status.OK,
        0.1,
        None,
        {},
        columns(found.record, made),
    )
    got = accept(encode(message).rstrip(b"\n"))
    assert isinstance(got, Accepted)
    assert got.identity == ("fox", "n1", "b1", found.name, 1794733024.000001)
    assert got.columns == said(message)


@pytest.mark.parametrize("path", sorted(KEPT.rglob("*.jsonl")), ids=lambda path: str(path.relative_to(KEPT)))
def test_messages_of_every_release_decode_for_ever(path: Path) -> None:
    lines = path.read_bytes().splitlines()
    assert lines
    for line in lines:
        assert isinstance(accept(line), Accepted), accept(line)


def test_every_collector_has_kept_messages() -> None:
    assert {path.stem for path in KEPT.rglob("*.jsonl")} == set(catalogue.collector_names())


def test_the_products_name_is_in_no_message() -> None:
    message = Message(Origin("fox", "n1", "b1"), "memory", 1.0, 7.5, None, Status.ABSENT, 0.1, None, {}, {})
    assert b"jobsight" not in encode(message)


def test_instants_are_utc_with_offset_and_microseconds() -> None:
    assert instant(0.25) == "1970-01-01T00:00:00.250000+00:00"
    assert instant(1794733024.9999996) == "2026-11-15T08:57:05.000000+00:00"


def test_members_can_be_glued_together() -> None:
    assert gzip.decompress(compress(b"one\n") + compress(b"two\n")) == b"one\ntwo\n"
