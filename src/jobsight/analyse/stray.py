"""Work on a batch node that belongs to no batch job: sessions of users there, beside the scheduler.

A session is one if its node is one that a scheduler gives away, its user is not exempt, and it has lasted longer than
a user needs to look around. Whether the same user has a job on that node is told beside it, because a site may allow
users to look at their own jobs.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from jobsight.analyse.job import LOCAL
from jobsight.collector import ParseError
from jobsight.formats import nodelist
from jobsight.serving import Stray
from jobsight.store.protocol import Store

# How far back it is looked which nodes there are (seconds): they are told again within the hour.
LATELY = 86400.0
SESSIONS = LOCAL - {"htcondor"}


def batch_nodes(store: Store, now: float) -> set[tuple[str, str]]:
    """Clusters and nodes that a scheduler gives away; a name may be without its domain."""
    since = now - LATELY
    asked = "SELECT DISTINCT cluster, nodes FROM slurmnode WHERE time > ?"
    found: set[tuple[str, str]] = set()
    for cluster, names in store.query(asked, [since], (since, now + LATELY)):
        try:
            found |= {(cluster, name) for name in nodelist.expand(names)}
        except ParseError:
            continue
    return found


def strays(jobs: Iterable[dict[str, Any]], nodes: set[tuple[str, str]], options: Stray) -> list[dict[str, Any]]:
    """Of running jobs with their figures, those that should not be where they are, those that use the most first.
    Each is told the batch jobs (`beside`) that its user has on the same node.
    """
    jobs = list(jobs)
    batch: dict[tuple[str, str, str], list[str]] = {}
    for job in jobs:
        if job["scheduler"] not in LOCAL:
            for node in job["nodes"]:
                batch.setdefault((job["cluster"], _short(node), job["owner"]), []).append(job["number"] or job["id"])
    found = []
    for job in jobs:
        (node, *others) = job["nodes"] or [""]
        known = {(job["cluster"], node), (job["cluster"], _short(node))} & nodes
        if job["scheduler"] in SESSIONS and not others and known and not exempt(job, node, options):
            beside = batch.get((job["cluster"], _short(node), job["owner"]), [])
            found.append({**job, "beside": sorted(beside)})
    return sorted(found, key=lambda job: -(job["cpu_time"] or 0.0))


def exempt(job: dict[str, Any], node: str, options: Stray) -> bool:
    """Users, commands and nodes are patterns: `slurm*`. Of a session all commands must be exempt."""
    if job["elapsed"] < options.grace or not job["owner"] or _like(job["owner"], options.users):
        return True
    commands = job["commands"] or {job["command"]: 0.0}
    return _like(node, options.nodes) or all(_like(name, options.commands) for name in commands)


def _like(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _short(node: str) -> str:
    return node.partition(".")[0]
