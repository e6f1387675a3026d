"""Where something is to be counted again: a node, and from when to when."""

from typing import NamedTuple

from jobsight.analyse.last import AHEAD
from jobsight.analyse.replay import EVER, MEASURED
from jobsight.store.protocol import Store, StoreError

# An allocation describes what is sampled this long after it at the most (seconds).
DESCRIBES = 600.0
DAY = 86400.0


class Place(NamedTuple):
    """A node, and from when to when messages of it are to be counted."""

    cluster: str
    node: str
    first: float
    last: float
    marks: tuple[float, float]
    """The oldest and the newest mark that led to this."""


def places(store: Store) -> list[Place]:
    """What is marked in `late`, node by node."""
    found: dict[tuple[str, str], list[tuple[str, float, float]]] = {}
    for cluster, node, collector, first, last in store.query(
        "SELECT cluster, node, collector, min(time), max(time) FROM late GROUP BY cluster, node, collector "
        "ORDER BY cluster, node"
    ):
        found.setdefault((cluster, node), []).append((collector, first, last))
    return [_place(store, cluster, node, marks) for (cluster, node), marks in found.items()]


def mark(store: Store, since: float, until: float, key: str | None = None) -> int:
    """Mark all of a time, or one job, as to be counted again; how many nodes."""
    document = store.job(key) if key else None
    if document is not None:
        span = document["started"], document["seen"]
        nodes = sorted({(document["cluster"], part["node"], *span) for part in document["parts"]})
    else:
        asked = (
            "SELECT cluster, node, min(time), max(time) FROM run WHERE time BETWEEN ? AND ? GROUP BY cluster, node"
        )
        nodes = store.query(asked, [since, until], (since, until))
    rows = [
        (cluster, node, "", time, collector)
        for cluster, node, *times in nodes
        for time in times
        for collector in MEASURED
    ]
    with store.still() as free:
        if not free:
            raise StoreError("nothing can be counted again now: another server digests, or a disk is full")
        store.mark("late", rows)
    return len(nodes)


def _place(store: Store, cluster: str, node: str, marks: list[tuple[str, float, float]]) -> Place:
    since, until = [], []
    for collector, first, last in marks:
        if collector == "hardware":
            since.append(first - AHEAD)
            until.append(_otherwise(store, cluster, node, last))
        elif collector == "allocation":
            since.append(first - AHEAD)
            until.append(last + DESCRIBES)
        else:
            since.append(_beside(store, (cluster, node, collector), first, -1))
            until.append(_beside(store, (cluster, node, collector), last, 1))
    marked = min(first for _, first, _ in marks), max(last for _, _, last in marks)
    return Place(cluster, node, min(since), max(until), marked)


def _otherwise(store: Store, cluster: str, node: str, time: float) -> float:
    """Until when a machine was as it was said to be at a time: until something else was said, not the same again."""
    said = "SELECT cpus, memory FROM hardware WHERE cluster = ? AND node = ? AND time = ? LIMIT 1"
    known = store.query(said, [cluster, node, time], (time, time))
    asked = "SELECT min(time) FROM hardware WHERE cluster = ? AND node = ? AND time > ?"
    if known:
        asked += " AND (cpus IS DISTINCT FROM ? OR memory IS DISTINCT FROM ?)"
    after = store.query(asked, [cluster, node, time, *(known[0] if known else ())])[0][0]
    return EVER if after is None else float(after)


def _beside(store: Store, stream: tuple[str, str, str], time: float, way: int) -> float:
    """When the sample before or after was taken: what the one saw may have gone on, the other is set against ours."""
    best = "max(time)" if way < 0 else "min(time)"
    asked = (
        f"SELECT {best} FROM run WHERE cluster = ? AND node = ? AND collector = ? AND status = 'ok' "
        "AND time > ? AND time < ?"
    )
    for reach in (DAY, EVER):
        # Most nodes are heard all the time: a day of files is enough.
        span = (time - reach, time) if way < 0 else (time, time + reach)
        other = store.query(asked, [*stream, *span], span)[0][0]
        if other is not None:
            return float(other)
    return time
