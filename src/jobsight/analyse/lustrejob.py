"""What one job asked of a Lustre file system: over time, by target, and its share of what each target was asked."""

import re
from typing import Any

from jobsight.analyse.increment import Reading, increments
from jobsight.analyse.lustre import STEP, TABLES
from jobsight.analyse.lustreload import MAIN, MEASURES, summed
from jobsight.analyse.lustrewhose import short
from jobsight.store.protocol import Store

Series = dict[str, list[float]]
# What is written is on its way for a while after a job has ended.
AFTER = STEP
# Rows of a job's entries that sizes are made of, at the most.
ROWS = 50_000
UNITS = " KMGTPE"
SIZE = re.compile(r"\b(\d{1,4}[KMGTPE]?)=(\d{1,18})(?=,|$)", re.ASCII)


def use(store: Store, key: str, started: float, seen: float) -> dict[str, Any]:
    """`targets`, the busiest first, `series` of rates as a job's profile has them, and whose word it is. Empty if no
    target was ever asked.
    """
    span = (started // STEP * STEP, seen + AFTER)
    listed = ", ".join(summed(names) for names in MEASURES.values())
    rows = store.query(
        f"SELECT time, target, {listed}, {summed(('read',))}, {summed(('write',))}, max(repaired) FROM lustreslice "
        "WHERE job_key = ? AND time >= ? AND time < ? GROUP BY time, target ORDER BY time",
        [key, *span],
        span,
    )
    if not rows:
        return {"targets": [], "series": {}, "repaired": False}
    totals = _totals(store, span, {row[1] for row in rows})
    found: dict[str, dict[str, Any]] = {}
    for _, target, *amounts, _ in rows:
        said = found.setdefault(target, dict.fromkeys([*MEASURES, "reads", "writes"], 0))
        for name, amount in zip(said, amounts, strict=True):
            said[name] += int(amount)
    targets = [{"target": target} | said | _share(said, totals.get(target)) for target, said in found.items()]
    return {
        "targets": sorted(targets, key=lambda said: (-(said["share"] or 0.0), said["target"])),
        "series": {name: _series(rows, 2 + place, span) for place, name in enumerate(MEASURES)},
        "repaired": any(row[-1] for row in rows),
    }


def _totals(store: Store, span: tuple[float, float], targets: set[str]) -> dict[str, tuple[Any, ...]]:
    """Kind, bytes and metadata operations of whole targets."""
    main = ", ".join(summed(names) for names in MAIN.values())
    rows = store.query(
        f"SELECT target, kind, {main} FROM lustretotal WHERE time >= ? AND time < ? "
        "AND target IN (SELECT unnest(?)) GROUP BY target, kind",
        [*span, sorted(targets)],
        span,
    )
    return {row[0]: row[1:] for row in rows}


def _share(said: dict[str, int], total: tuple[Any, ...] | None) -> dict[str, Any]:
    """Of bytes for an object target, of operations for one of metadata."""
    if total is None:
        return {"kind": None, "share": None}
    kind, moved, asked = total
    own, whole = (said["metadata"], asked) if kind == "mdt" else (said["read"] + said["written"], moved)
    return {"kind": kind, "share": float(own) / float(whole) if whole else None}


def _series(rows: list[tuple[Any, ...]], column: int, span: tuple[float, float]) -> Series:
    """A rate in steps. Between the first and the last nothing was asked where there is no row."""
    sums: dict[float, float] = {}
    for row in rows:
        sums[row[0]] = sums.get(row[0], 0.0) + float(row[column])
    found: Series = {"start": [], "end": [], "value": []}
    first, last = min(sums), max(sums)
    for number in range(round((last - first) / STEP) + 1):
        time = first + number * STEP
        # A job does not begin and end where steps do.
        found["start"].append(max(time, span[0]))
        found["end"].append(time + STEP)
        found["value"].append(sums.get(time, 0.0) / STEP)
    return found


def sizes(store: Store, number: str, nodes: list[str], span: tuple[float, float]) -> dict[str, dict[str, int]]:
    """How many reads and writes of which size a job made on its nodes, by the sizes' upper ends: `{"4K": 2}`. Another
    cluster may have a job of that number at the same time, but not there.
    """
    found: dict[str, dict[str, int]] = {"read": {}, "write": {}}
    places = {short(node) for node in nodes}
    for table in TABLES.values():
        rows = store.query(
            f"SELECT cluster, target, entry, time, start_time, absent_at, read_sizes, write_sizes, host FROM {table} "
            f"WHERE job = ? AND time >= ? AND time < ? ORDER BY time LIMIT {ROWS}",
            [number, *span],
            span,
        )
        if len(rows) == ROWS:
            # What is left out nobody knows.
            return {}
        entries: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        for *row, host in rows:
            if short(host or "") in places:
                entries.setdefault(tuple(row[:3]), []).append(tuple(row[3:]))
        for some in entries.values():
            for place, name in enumerate(found):
                for label, count in _grown([(*row[:3], row[3 + place]) for row in some]).items():
                    found[name][label] = found[name].get(label, 0) + count
    return {
        name: dict(sorted(told.items(), key=lambda item: _bytes(item[0]))) for name, told in found.items() if told
    }


def _grown(rows: list[tuple[Any, ...]]) -> dict[str, int]:
    """What one entry's sizes grew by: the same law as any counter's."""
    told = [_parsed(text) for *_, text in rows]
    labels = sorted({label for said in told if said for label in said})
    readings = [
        Reading(time, tuple(None if said is None else said.get(label, 0) for label in labels), start, absent)
        for (time, start, absent, _), said in zip(rows, told, strict=True)
    ]
    sums = [
        sum(int(value or 0) for value in column)
        for column in zip(*(i.values for i in increments(readings)), strict=True)
    ]
    return {label: count for label, count in zip(labels, sums, strict=False) if count}


def _parsed(text: str | None) -> dict[str, int] | None:
    """`4K=2,1M=8`; missing where a server does not tell."""
    if text is None:
        return None
    return {label: int(count) for label, count in SIZE.findall(text)}


def _bytes(label: str) -> int:
    digits = label.rstrip(UNITS)
    return int(digits) << 10 * UNITS.find(label[len(digits) :] or " ")
