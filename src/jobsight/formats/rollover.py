"""Counters that begin anew at a known range: how much one grew between two readings.

A processor's energy counter has some 32 bits and begins anew every quarter of an hour under load. Readings are stored
as they are, with the range; what lies between two of them is worked out here, and only where it cannot be mistaken.
"""


def risen(before: float, after: float, span: float, seconds: float, fastest: float) -> float | None:
    """How much a counter of range `span` rose in `seconds`, or None where nobody can tell.

    `fastest` is the most it may rise in a second. A counter that could have gone round more than once in that time
    tells nothing, and neither does one that would have risen faster than it can: it was reset.
    """
    if seconds <= 0 or span <= 0 or not (0 <= before <= span and 0 <= after <= span):
        return None
    if seconds * fastest >= span:
        return None
    rise = after - before if after >= before else after + span - before
    return rise if rise <= seconds * fastest else None
