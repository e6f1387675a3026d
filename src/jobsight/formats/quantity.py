"""Durations and sizes as people write them: `30s`, `5m`, `1h30m`, `7d`, `512 MiB`, `2GB`."""

import re

from jobsight.schema.units import Bytes, Seconds

DURATIONS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31536000}
SIZES = {
    "": 1, "b": 1,
    "k": 2**10, "kib": 2**10, "kb": 10**3,
    "m": 2**20, "mib": 2**20, "mb": 10**6,
    "g": 2**30, "gib": 2**30, "gb": 10**9,
    "t": 2**40, "tib": 2**40, "tb": 10**12,
}  # fmt: skip


def duration(text: str) -> Seconds:
    """`1h30m` → 5400. ValueError names what is known."""
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([a-z]+)", text.strip().lower())
    if not parts or re.sub(r"\d+(?:\.\d+)?\s*[a-z]+\s*", "", text.strip().lower()):
        raise ValueError(f"expected a duration such as 30s, 5m, 1h30m or 7d, got {text!r}")
    unknown = [unit for _, unit in parts if unit not in DURATIONS]
    if unknown:
        raise ValueError(f"unknown unit {unknown[0]!r} in {text!r}; there are {', '.join(DURATIONS)}")
    return Seconds(float(sum(float(number) * DURATIONS[unit] for number, unit in parts)))


def size(text: str) -> Bytes:
    """`512 MiB` → 536870912."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if not found or found[2] not in SIZES:
        raise ValueError(f"expected a size such as 512 MiB or 2 GB, got {text!r}")
    return Bytes(int(float(found[1]) * SIZES[found[2]]))
