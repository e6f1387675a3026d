"""A date as HTTP writes it: `Sun, 15 Nov 2026 08:16:37 GMT` (RFC 9110, IMF-fixdate).

By hand: the standard library's reader of dates comes with the e-mail parser, a megabyte of an agent's memory.
"""

import re

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
FORM = re.compile(r"[A-Z][a-z]{2}, (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT", re.ASCII)


def parse(text: str) -> float:
    """Seconds since 1970. ValueError for anything else."""
    found = FORM.fullmatch(text.strip())
    if not found or found[2] not in MONTHS:
        raise ValueError(f"expected a date such as Sun, 15 Nov 2026 08:16:37 GMT, got {text[:60]!r}")
    day, year, hour, minute, second = (int(found[i]) for i in (1, 3, 4, 5, 6))
    # Years that begin with March end with the day that is not always there.
    month = (MONTHS.index(found[2]) + 10) % 12
    year -= month >= 10
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1
    return float((days - 719468) * 86400 + hour * 3600 + minute * 60 + second)
