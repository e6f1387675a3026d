"""How a job's work was spread over its nodes. From its totals, so it holds when the rows are gone."""

from typing import Any

from msgspec import Struct

# A node that works less than this part of the busiest did nothing worth having it.
IDLE = 0.1


class Share(Struct):
    """One node's part."""

    node: str
    cores: float | None
    """In use, on average over the time the job was there."""
    cpus: int | None
    cpu_time: float | None
    memory_peak: int | None
    memory_limit: int | None
    read: int | None
    written: int | None
    part: float | None
    """Of the job's CPU time."""
    idle: bool


class Balance(Struct):
    """All nodes, those that differ most from the busiest first."""

    nodes: list[Share]
    imbalance: float | None
    """0 if all nodes used the same CPU time; near 1 if one did all of it: the part of the cores that waited for the
    busiest node. None for one node.
    """
    idle: list[str]


def uneven(work: list[float]) -> float | None:
    """The part of all that is held which waited for the busiest: 0 if all did the same. None for one, or for none."""
    most = max(work, default=0.0)
    return 1 - sum(work) / (len(work) * most) if len(work) > 1 and most > 0 else None


def balance(parts: list[dict[str, Any]], source: str) -> Balance:
    """Of a job's parts by the source that counts."""
    mine = [part for part in parts if part["source"] == source]
    used = [part["cpu_time"] for part in mine if part["cpu_time"] is not None]
    whole, most = sum(used), max(used, default=0.0)
    shares = [_share(part, whole, most) for part in mine]
    shares.sort(key=lambda share: (share.cpu_time is not None, share.cpu_time or 0.0, share.node))
    imbalance = uneven(used)
    return Balance(
        nodes=shares,
        imbalance=imbalance,
        idle=[share.node for share in shares if share.idle] if imbalance is not None else [],
    )


def _share(part: dict[str, Any], whole: float, most: float) -> Share:
    used, seconds = part["cpu_time"], part["seconds"]
    return Share(
        node=part["node"],
        cores=used / seconds if used is not None and seconds else None,
        cpus=part["cpus"],
        cpu_time=used,
        memory_peak=part["memory_peak"],
        memory_limit=part["memory_limit"],
        read=part["read"],
        written=part["written"],
        part=used / whole if used is not None and whole else None,
        idle=used is not None and used < IDLE * most,
    )
