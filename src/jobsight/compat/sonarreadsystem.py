"""What a Sonar document tells of the node itself, as columns of our records."""

import re
from typing import Any

from jobsight.compat.sonarreadfields import Fields

KIB = 1024
SECTOR = 512
# The kernel's columns of a disk, in its order, by our names; later ones are discards and flushes.
STATS = (
    *("reads", "reads_merged", "read", "read_time", "writes", "writes_merged", "written", "write_time"),
    *("queue", "busy_time", "queue_time"),
)

Columns = dict[str, list[Any]]


def load(system: Fields) -> Columns:
    """Load averages are written even when they are 0: without them the agent was too old to send any."""
    if not system.has("load1"):
        return {}
    found: Columns = {name: [system.real(name)] for name in ("load1", "load5", "load15")}
    found["runnable"] = [system.whole("runnable_entities")]
    found["existing"] = [system.whole("existing_entities")]
    return found


def memory(system: Fields, total: int | None) -> Columns:
    """`used_memory` is what is not available; the total is known from an earlier `sysinfo`, if there was one."""
    used = system.whole("used_memory") * KIB
    if not total or not 0 < used <= total:
        return {}
    return {"total": [total], "available": [total - used]}


def disks(system: Fields) -> Columns:
    """Whole devices that were used, as our own collector lists them."""
    rows = []
    entries = system.objects("disks")
    names = {entry.text("name") for entry in entries}
    for entry in entries:
        stats = entry.wholes("stats")
        name = entry.text("name")
        if not name or len(stats) < len(STATS) or part_of_another(name, names):
            continue
        row: dict[str, Any] = dict(zip(STATS, stats, strict=False))
        if not row["reads"] and not row["writes"]:
            continue
        row |= {key: row[key] * SECTOR for key in ("read", "written")}
        row |= {key: row[key] / 1000 for key in STATS if key.endswith("_time")}
        rows.append({"device": name, "major": entry.whole("major"), "minor": entry.whole("minor"), **row})
    return {key: [row[key] for row in rows] for key in rows[0]} if rows else {}


def part_of_another(name: str, names: set[str]) -> bool:
    """`sda1` is a part of `sda`, `nvme0n1p2` of `nvme0n1`; `dm-10` is no part of `dm-1`."""
    found = re.fullmatch(r"(.*\d)p\d+|(.*\D)\d+", name, re.ASCII)
    return bool(found) and (found[1] or found[2]) in names  # type: ignore[index]


def hardware(attributes: Fields) -> Columns:
    """One row. An aarch64 node always says one socket and one thread, known or not, so there they are left out."""
    sockets, threads = attributes.whole("sockets"), attributes.whole("threads_per_core")
    cores = sockets * attributes.whole("cores_per_socket")
    shape_known = attributes.text("architecture") != "aarch64"
    matrix = attributes.rows("distances")
    if not cores or not attributes.whole("memory"):
        return {}
    return {
        "model": [attributes.text("cpu_model") or "unknown"],
        "cpus": [cores * max(1, threads)],
        "cores": [cores],
        "sockets": [sockets if shape_known else None],
        "threads": [threads if shape_known and threads else None],
        "memory": [attributes.whole("memory") * KIB],
        # The format has the kernel's name alone, not the distribution's.
        "system": [attributes.text("os_name") or "unknown"],
        "kernel": [attributes.text("os_release")],
        "architecture": [attributes.text("architecture") or None],
        "distances": [";".join(" ".join(map(str, row)) for row in matrix) or None],
    }
