"""Dates as HTTP writes them, against the standard library's own writer."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobsight.formats import httpdate


@given(st.integers(0, 253_402_300_799))
def test_every_second_is_read_as_it_was_written(seconds: int) -> None:
    assert httpdate.parse(formatdate(seconds, usegmt=True)) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "120",
        "Sun, 15 Nov 2026 08:16:37",
        "Sun, 15 Nvo 2026 08:16:37 GMT",
        "2026-11-15T08:16:37Z",
        "١٢",
        "x" * 10**5,
    ],
)
def test_what_is_no_date_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="expected a date") as caught:
        httpdate.parse(text)
    assert len(str(caught.value)) < 200
