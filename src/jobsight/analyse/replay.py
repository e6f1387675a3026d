"""A node's stored messages, read back as they came: what its ledger is fed with a second time."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from jobsight import catalogue
from jobsight.analyse.last import AHEAD, RECENT
from jobsight.ingest.accept import Accepted
from jobsight.schema.message import Status
from jobsight.schema.record import fields_of
from jobsight.store.protocol import Store

HOUR = 3600.0
# After everything.
EVER = 4e9
MEASURED = ("process", "cgroup", "gpu")
DESCRIBED = ("hardware", "allocation")
# Rows of a message in an order that does not depend on where they were kept.
ORDER = {
    "process": "pid, started", "cgroup": "path", "gpu": "uuid", "hardware": "time",
    "allocation": "scheduler, job, source",
}  # fmt: skip
# Messages read at a time.
MANY = 5000

Span = tuple[float, float]


def spans(store: Store, cluster: str, nodes: Sequence[str], since: float, until: float) -> Iterator[Span]:
    """The time from `since` to before `until`, in pieces of about `MANY` messages."""
    hours = store.query(
        f"SELECT floor(time / {HOUR}), count(*) FROM run WHERE cluster = ? AND list_contains(?, node) AND time >= ? "
        f"AND time < ? AND collector IN ('process', 'cgroup') GROUP BY floor(time / {HOUR}) "
        f"ORDER BY floor(time / {HOUR})",
        [cluster, list(nodes), since, until],
        (since, until),
    )
    start, count = since, 0
    for hour, number in hours:
        count += number
        if count >= MANY:
            end = min(until, (hour + 1) * HOUR)
            yield start, end
            start, count = end, 0
    if start < until:
        yield start, until


def messages(store: Store, cluster: str, nodes: Sequence[str], span: Span) -> list[Accepted]:
    """What nodes measured from a time to before another, and what describes it, which may be a moment younger."""
    ahead = span[0] + AHEAD, span[1] + AHEAD
    found = [m for collector in MEASURED for m in stored(store, collector, cluster, nodes, span)]
    return found + [m for collector in DESCRIBED for m in stored(store, collector, cluster, nodes, ahead)]


def before(store: Store, cluster: str, node: str, since: float) -> list[Accepted]:
    """The last of each collector before a time, and what was said of jobs then."""
    found = stored(store, "allocation", cluster, [node], (since - RECENT, since + AHEAD))
    found += stored(store, "hardware", cluster, [node], (since, since + AHEAD))
    for collector in ("hardware", *MEASURED):
        for reach in (since - 86400, 0.0):
            # Most nodes are heard all the time: a day of files is enough.
            last = store.query(
                "SELECT max(time) FROM run WHERE cluster = ? AND node = ? AND collector = ? AND status = 'ok' "
                "AND time < ? AND time >= ?",
                [cluster, node, collector, since, reach],
                (reach, since),
            )[0][0]
            if last is not None:
                found += stored(store, collector, cluster, [node], (last, since))
                break
    return found


def stored(store: Store, collector: str, cluster: str, nodes: Sequence[str], span: Span) -> list[Accepted]:
    """Messages of a collector that went well, from a time to before another."""
    values = [cluster, list(nodes), *span]
    place = "cluster = ? AND list_contains(?, node) AND time >= ? AND time < ?"
    runs = store.query(
        f"SELECT node, boot, time, uptime, every, missing FROM run WHERE {place} AND collector = '{collector}' "
        "AND status = 'ok'",
        values,
        span,
    )
    if not runs:
        return []
    names = [field.name for field in fields_of(catalogue.collector(collector).record)]
    rows: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in store.query(
        f"SELECT node, boot, time, {', '.join(names)} FROM {collector} WHERE {place} "
        f"ORDER BY time, {ORDER[collector]}",
        values,
        span,
    ):
        rows.setdefault(row[:3], []).append(row[3:])
    return [_message(cluster, collector, run, names, rows.get(run[:3], [])) for run in runs]


def _message(
    cluster: str, collector: str, run: tuple[Any, ...], names: list[str], rows: list[tuple[Any, ...]]
) -> Accepted:
    node, boot, time, uptime, every, missing = run
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) if rows else {}
    return Accepted(
        b"", cluster, node, boot, collector, time, uptime or 0.0, every, Status.OK, 0.0, None,
        json.loads(missing or "{}"), len(rows), columns,
    )  # fmt: skip
