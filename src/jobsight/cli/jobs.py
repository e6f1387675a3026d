"""List jobs: what ran, who ran it, what it used.

With no filter: your own jobs of the last 24 hours, running ones first. `--user all` shows everybody's; root sees
everybody's anyway.
"""

import getpass
import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

from jobsight.cli.arguments import (
    FailedError,
    WrongUseError,
    add_formats,
    add_settings,
    parser,
    sentences,
    settings_of,
)
from jobsight.formats import when
from jobsight.formats.number import cores, duration, meter, size, volume

T = TypeVar("T")
STATES = {"pending": "… pending", "running": "▶ running", "ended": "■ ended", "silent": "? silent"}


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("jobs", __doc__)
    add_settings(accept)
    add_formats(accept)
    accept.add_argument("--since", default="24h", help="seen after: 7d, 2026-11-15, … (24h)")
    accept.add_argument("--until", default="", help="started before")
    accept.add_argument("--user", dest="owner", help="whose; `all` for everybody's (your own)")
    accept.add_argument("--node", default="", help="on which node")
    accept.add_argument("--command", default="", help="running which command")
    accept.add_argument(
        "--state", default="", choices=("pending", "running", "ended", "silent"), help="in which state"
    )
    accept.add_argument("--stray", action="store_true", help="sessions on batch nodes that belong to no batch job")
    accept.add_argument("--text", default="", help="part of the id, user, command or node")
    accept.add_argument("--limit", type=int, default=1000, help="at most so many (1000)")
    accept.add_argument("--store", metavar="DIR|URL", help="where rows and jobs are kept")
    given = accept.parse_args(arguments)
    filters = {
        name: getattr(given, name)
        for name in ("since", "until", "owner", "node", "command", "state", "text", "limit")
    }
    filters["owner"] = whose(given.owner)
    for name in ("since", "until"):
        try:
            when.instant(filters[name] or "now", time.time())
        except ValueError as error:
            raise WrongUseError(f"--{name}: {error}") from None
    settings = settings_of(given.settings)
    place = given.store or settings.store.place
    if given.stray:
        print(_strays(read(place, lambda reader: reader.strays(settings.serve.stray)), given.format))
        return 0
    print(_shown(read(place, lambda reader: reader.jobs(**filters)), given.format))
    return 0


def whose(given: str | None) -> str:
    """Empty for everybody's."""
    if given == "all" or (given is None and os.geteuid() == 0):
        return ""
    return given or getpass.getuser()


def read(path: str, asked: Callable[[Any], T]) -> T:
    """What a reader of a store answers."""
    from jobsight.show.reader import open_reader
    from jobsight.store.protocol import StoreError

    try:
        reader = open_reader(path)
        try:
            return asked(reader)
        finally:
            reader.close()
    except StoreError as error:
        raise FailedError(str(error)) from None


def _shown(jobs: list[dict[str, Any]], form: str) -> str:
    from jobsight.show.terminal import export, table

    if form != "table":
        return export(jobs, form)
    if not jobs:
        return "No jobs match. Try --since 7d, or see `jobsight doctor` if nothing is sampled."
    names = [
        "state",
        "id",
        "user",
        "command",
        "nodes",
        "elapsed",
        "cores",
        "",
        "cpu time",
        "memory",
        "",
        "read",
        "written",
    ]
    right = frozenset({"elapsed", "cores", "cpu time", "memory", "read", "written"})
    return table(names, [_row(job) for job in jobs], right)


def _strays(jobs: list[dict[str, Any]], form: str) -> str:
    from jobsight.show.terminal import export, table

    if form != "table":
        return export(jobs, form)
    if not jobs:
        return "Nothing runs beside the scheduler on its nodes."
    names = ["id", "user", "node", "command", "for", "cpu time", "memory", "their jobs there"]
    rows = [
        [
            job["id"], job["owner"], _nodes(job["nodes"]), job["command"], duration(job["elapsed"]),
            duration(job["cpu_time"]), size(job["memory_peak"]), " ".join(job["beside"]) or "none",
        ]
        for job in jobs
    ]  # fmt: skip
    return table(names, rows, frozenset({"for", "cpu time", "memory"}))


def _row(job: dict[str, Any]) -> list[str]:
    return [
        _state(job),
        job["id"],
        job["owner"],
        job["command"] or job["name"],
        _nodes(job["nodes"]),
        duration(job["elapsed"]),
        f"{cores(job['cores_mean'])}/{job['cpus'] or '—'}",
        meter(job["cores_mean"], job["cpus"], 6),
        duration(job["cpu_time"]),
        size(job["memory_peak"]),
        meter(job["memory_peak"], job["memory_limit"], 6),
        volume(job["read"]),
        volume(job["written"]),
    ]


def _state(job: dict[str, Any]) -> str:
    """With the scheduler's word where that says more."""
    word = (job.get("batch") or {}).get("state", "")
    more = word.lower().replace("_", " ") if job["state"] == "ended" and word != "COMPLETED" else ""
    return f"{STATES[job['state']]} {more}".rstrip()


def _nodes(nodes: list[str]) -> str:
    return nodes[0] if len(nodes) == 1 else f"{len(nodes)} nodes" if nodes else "—"
