"""What a job's nodes received and sent while it ran. The kernel does not count that by job: where a job had its nodes
for itself it is the job's, elsewhere it is what all that ran there did.
"""

import re
from typing import Any

from msgspec import Struct

from jobsight.analyse.summary import Summary
from jobsight.store.protocol import Store

# More rows than this are not looked through for an answer.
MOST = 400_000
# Interfaces that only count again what others count, or that lead nowhere.
VIRTUAL = re.compile(
    "bond|team|br|virbr|docker|podman|veth|vnet|cni|cali|flannel|tun|tap|dummy|ifb|macvlan|ipvlan|vlan|wg"
    # A network within another's: eth0.100.
    r"|.*\.[0-9]+$"
)
# Counters grow within a boot: the last less the first is what was counted in between.
GROWN = """SELECT {name}, sum(received), sum(sent) FROM (
  SELECT {name}, max(received) - min(received) AS received, max(sent) - min(sent) AS sent FROM {table}
  WHERE cluster = ? AND list_contains(?, node) AND time BETWEEN ? AND ?
  GROUP BY node, boot, {name}) AS grown GROUP BY {name}"""
# Where ports are counted by their own hardware, the adapters' names; else the interfaces'.
NAMES = {"network": "interface", "infiniband": "device, port"}


class Traffic(Struct):
    """Bytes over all its nodes, from the first to the last sample in its time."""

    received: int
    """Over interfaces of the network; what an adapter of the fabric carries past the kernel is not among it."""
    sent: int
    fabric_received: int | None
    """Over InfiniBand or Omni-Path."""
    fabric_sent: int | None
    alone: bool
    """Whether it had all CPUs of its nodes, so that it is its own."""


def traffic(store: Store, figures: Summary, parts: list[dict[str, Any]]) -> Traffic | None:
    """None where nothing was counted, or too much to look through."""
    if figures.elapsed < 2 * figures.every or len(figures.nodes) * figures.elapsed / figures.every > MOST:
        return None
    found = [row for row in _grown(store, figures, "network") if not VIRTUAL.match(row[0])]
    fabric = [row for row in _grown(store, figures, "infiniband") if row[-1] is not None and row[-2] is not None]
    if not found and not fabric:
        return None
    received, sent = _total(found)
    inward, outward = _total(fabric) if fabric else (None, None)
    return Traffic(received, sent, inward, outward, alone(parts))


def alone(parts: list[dict[str, Any]]) -> bool:
    """Its control group has as many CPUs as its processes could see, on every node."""
    given = {part["node"]: part["cpus"] for part in parts if part["source"] == "cgroup"}
    there = {part["node"]: part["cpus"] for part in parts if part["source"] == "process"}
    return bool(given) and all(cpus and there.get(node) and cpus >= there[node] for node, cpus in given.items())


def _grown(store: Store, figures: Summary, table: str) -> list[tuple[Any, ...]]:
    span = figures.started, figures.seen
    sql = GROWN.format(table=table, name=NAMES[table])
    return store.query(sql, [figures.cluster, figures.nodes, *span], span)


def _total(rows: list[tuple[Any, ...]]) -> tuple[int, int]:
    return int(sum(row[-2] for row in rows)), int(sum(row[-1] for row in rows))
