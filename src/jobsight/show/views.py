"""What there is to see, as plain values: the same for the API, the pages and the command line."""

from typing import Any

import msgspec

from jobsight.analyse.profile import POINTS, profile
from jobsight.analyse.summary import summary
from jobsight.store.protocol import JobQuery, Store

# What a running job used in its last interval. Ten minutes hold that interval at any sensible sampling rate.
LATEST = """
SELECT job_key, source, sum(cores), sum(memory) FROM (
  SELECT job_key, source, node, arg_max(cpu_time / seconds, time) AS cores, arg_max(memory, time) AS memory
  FROM usage WHERE time > ? AND seconds > 0 GROUP BY job_key, source, node) AS last
GROUP BY job_key, source
"""


def nodes(store: Store, now: float) -> list[dict[str, Any]]:
    """All nodes of the last week, with their state."""
    found = []
    for node in store.nodes(now):
        silent = now > node.seen + 3 * node.every + 30
        state = "silent" if silent else "trouble" if node.troubles else "ok"
        used = node.memory - node.memory_available if node.memory and node.memory_available is not None else None
        found.append({**node._asdict(), "state": state, "memory_used": used})
    return found


def jobs(store: Store, query: JobQuery, now: float) -> list[dict[str, Any]]:
    """Jobs with their figures."""
    found = (summary(document, now) for document in store.jobs(query, now))
    return [msgspec.to_builtins(item) for item in found]


def running(store: Store, now: float) -> list[dict[str, Any]]:
    """Running jobs with what they use now; the mean over their life where the last interval is not known."""
    latest = {(key, source): (cores, memory) for key, source, cores, memory in store.query(LATEST, [now - 600])}
    found = []
    for item in jobs(store, JobQuery(state="running", limit=10_000), now):
        cores, memory = latest.get((item["key"], item["source"]), (item["cores_mean"], item["memory_mean"]))
        whole = item["memory_limit"] and item["memory_limit"] * len(item["nodes"])  # limits are per node
        found.append({**item, "cores_now": cores, "memory_now": memory, "memory_whole": whole})
    return found


def job(store: Store, key: str, now: float, points: int = POINTS) -> dict[str, Any] | None:
    """One job whole, by its key."""
    document = store.job(key)
    if document is None:
        return None
    found: dict[str, Any] = msgspec.to_builtins(profile(store, document, now, points))
    return found


def named(store: Store, name: str, now: float) -> list[dict[str, Any]]:
    """The jobs somebody may mean, by key or by id; newest first."""
    document = store.job(name)
    if document:
        return [msgspec.to_builtins(summary(document, now))]
    return sorted(jobs(store, JobQuery(id=name), now), key=lambda item: -item["seen"])
