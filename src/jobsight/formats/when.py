"""Times as people write them: `7d` (ago), `2026-11-15`, `2026-11-15T08:00`, `2026-11-15T08:00+01:00`, `now`."""

from datetime import UTC, datetime, timedelta

from jobsight.formats import quantity


def instant(text: str, now: float, *, end: bool = False) -> float:
    """Seconds since 1970. A time without an offset is UTC; a bare date as an `end` means the end of that day."""
    text = text.strip()
    if text == "now":
        return now
    try:
        return now - quantity.duration(text)
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"expected a time such as 7d, 2026-11-15 or 2026-11-15T08:00+01:00, got {text!r}") from None
    try:
        found += timedelta(days=1) if end and len(text) == len("2026-11-15") else timedelta(0)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except OverflowError:
        raise ValueError(f"{text!r} is too far away") from None
