"""Numbers as people read them: three significant digits, a unit on every one, a reason where there is none."""

import math

MISSING = "—"


def digits(value: float, count: int = 3) -> str:
    """Three significant digits, no exponent: 0.0123, 1.23, 123, 1230."""
    if not value:
        return "0"
    places = max(0, count - 1 - math.floor(math.log10(abs(value))))
    rounded = round(value, places)
    text = f"{rounded:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else f"{rounded:.0f}"


def scaled(value: float, base: int, units: tuple[str, ...]) -> str:
    for unit in units[:-1]:
        if abs(value) < base * 0.9995:
            return f"{digits(value)} {unit}"
        value /= base
    return f"{digits(value)} {units[-1]}"


def size(value: float | None, missing: str = MISSING) -> str:
    """Memory, in binary units: 1.5 GiB."""
    return missing if value is None else scaled(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))


def volume(value: float | None, missing: str = MISSING) -> str:
    """Data moved, in decimal units: 1.5 GB."""
    return missing if value is None else scaled(value, 1000, ("B", "kB", "MB", "GB", "TB", "PB"))


def cores(value: float | None, missing: str = MISSING) -> str:
    """Cores as cores: 3.1, not 310 %. Less than a thousandth is none."""
    if value is None:
        return missing
    return "0" if value < 0.0005 else digits(value) if value >= 1 else digits(round(value, 3), 2)


def ratio(value: float | None, missing: str = MISSING) -> str:
    return missing if value is None else f"{digits(100 * value)} %"


def duration(seconds: float | None, missing: str = MISSING) -> str:
    """`12.3 s`, `4:13`, `5:12:44`, `2 d 04:13`."""
    if seconds is None:
        return missing
    if seconds < 60:
        return f"{digits(seconds)} s"
    whole = round(seconds)
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, second = divmod(rest, 60)
    if days:
        return f"{days} d {hours:02d}:{minutes:02d}"
    return f"{hours}:{minutes:02d}:{second:02d}" if hours else f"{minutes}:{second:02d}"


def spark(values: list[float], top: float | None = None) -> str:
    """A line of little bars."""
    bars = "▁▂▃▄▅▆▇█"
    highest = top or max(values, default=0)
    if highest <= 0:
        return bars[0] * len(values)
    return "".join(bars[min(7, int(7.999 * max(0.0, value) / highest))] for value in values)


def meter(used: float | None, given: float | None, width: int = 10) -> str:
    """`██████░░░░`; empty where nothing is known, full where more was used than given."""
    if used is None or not given:
        return "·" * width
    full = min(width, round(width * used / given))
    return "█" * full + "░" * (width - full)
