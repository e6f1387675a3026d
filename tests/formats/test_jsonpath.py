"""Values in answers of others."""

import pytest

from jobsight.collector import ParseError
from jobsight.formats import jsonpath

ANSWER = {"results": [{"taux_co2": 33, "date_heure": "2026-11-15T16:00:00+00:00", "word": "x", "none": None}]}


def test_a_value_stands_at_the_end_of_its_path() -> None:
    assert jsonpath.number(ANSWER, "results.0.taux_co2", 0, 2000) == 33.0
    assert jsonpath.instant(ANSWER, "results.0.date_heure") == 1794758400.0


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("results.1.taux_co2", "expected '1' after 'results'"),
        ("results.0.other", "expected 'other' after 'results.0'"),
        ("results.0.word", "expected a number, got 'x'"),
        ("results.0.none", "expected a number, got None"),
        ("results.0", "expected a number"),
    ],
)
def test_what_is_not_there_or_no_number_is_said(path: str, said: str) -> None:
    with pytest.raises(ParseError, match=said):
        jsonpath.number(ANSWER, path, 0, 2000)


@pytest.mark.parametrize("value", [True, -1, 2001, float("nan"), float("inf"), 10**400])
def test_numbers_that_cannot_be_are_refused(value: float) -> None:
    with pytest.raises(ParseError):
        jsonpath.number({"a": value}, "a", 0, 2000)


@pytest.mark.parametrize("text", [b"", b"<html>", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_json_is_a_parse_error(text: bytes) -> None:
    with pytest.raises(ParseError, match="expected JSON"):
        jsonpath.loaded(text)


@pytest.mark.parametrize("value", ["yesterday", None, 5, "9999-99-99"])
def test_what_is_no_time_is_a_parse_error(value: object) -> None:
    with pytest.raises(ParseError, match="expected a time"):
        jsonpath.instant({"a": value}, "a")
