from datetime import UTC, datetime

import pytest

from jobsight.formats import when

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC).timestamp()
DAY = 86400


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("now", 0),
        (" now ", 0),
        ("7d", -7 * DAY),
        ("1h30m", -5400),
        ("2026-11-15", -DAY / 2),
        ("2026-11-15T08:00", -4 * 3600),
        ("2026-11-15 08:00", -4 * 3600),
        ("2026-11-15T08:00Z", -4 * 3600),
        ("2026-11-15T08:00+01:00", -5 * 3600),
        ("2026-11-15T12:00:00.5+00:00", 0.5),
    ],
)
def test_time_is_read_against_now(text: str, seconds: float) -> None:
    assert when.instant(text, NOW) - NOW == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2026-11-15", DAY / 2), ("2026-11-15T08:00", -4 * 3600), ("1d", -DAY), ("now", 0)],
)
def test_bare_date_as_an_end_includes_its_day(text: str, seconds: float) -> None:
    assert when.instant(text, NOW, end=True) - NOW == seconds


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "2026-11-31", "08:00", "15.11.2026", "7"])
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="expected a time such as 7d, 2026-11-15"):
        when.instant(text, NOW)
