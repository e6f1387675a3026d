"""What a job's scheduler says of it, and of its steps, on a terminal."""

from datetime import datetime
from typing import Any

from jobsight.formats.number import meter
from jobsight.show.facts import exit_of, facts, shown
from jobsight.show.terminal import safe, table

KINDS = {"cores": "cores", "memory": "size", "gpus": "cores", "time": "duration"}
TIMES = {"submit": "submitted", "eligible": "eligible", "start": "started", "ended": "ended", "expected": "expected"}


def told(profile: dict[str, Any]) -> str:
    """Empty where no scheduler told of it."""
    job = profile["summary"]
    if not job["batch"] and not profile["steps"]:
        return ""
    parts = [f"{state(job)}\n{reserved(job)}\n{times(job['batch'])}\n{_facts(job)}"] if job["batch"] else []
    if profile["steps"]:
        parts.append(steps(profile["steps"]))
    return "\n\n".join(parts) + "\n"


def state(job: dict[str, Any]) -> str:
    batch = job["batch"]
    ended = f", exit code and signal {exit_of(batch)}" if batch.get("exit_code") is not None else ""
    return f"{safe(job['scheduler'])} says {safe(batch['state'])}{ended}"


def reserved(job: dict[str, Any]) -> str:
    """Asked for, given, used."""
    rows = []
    for name, form in KINDS.items():
        row = job["reserved"][name]
        if name == "gpus" and not (row["given"] or row["requested"]):
            continue
        endless = name == "time" and job["batch"].get("unlimited")
        asked, given = ("no limit" if endless else shown(row[column], form) for column in ("requested", "given"))
        rows.append([name, asked, given, shown(row["used"], form), meter(row["used"], row["given"], 10)])
    return table(["", "asked for", "given", "used", ""], rows, frozenset({"asked for", "given", "used"}))


def times(batch: dict[str, Any]) -> str:
    found = [
        f"{name} {datetime.fromtimestamp(batch[column]).astimezone().isoformat(' ', 'seconds')}"
        for column, name in TIMES.items()
        if batch.get(column) is not None
    ]
    return "\n".join(found)


def _facts(job: dict[str, Any]) -> str:
    return "\n".join(f"{name}: {safe(text)}" for name, text in facts(job) if not name.startswith("exit"))


def steps(found: list[dict[str, Any]]) -> str:
    names = ["step", "name", "state", "exit", "tasks", "elapsed", "cpu time", "cpus", "peak", "memory", "nodes"]
    rows = [
        [
            step["step"], step["name"] or "—", step["state"] or "—", exit_of(step), _count(step["tasks"]),
            shown(step["elapsed"], "duration"),
            shown(step["cpu_time_seen"] if step["cpu_time"] is None else step["cpu_time"], "duration"),
            _count(step["cpus"]),
            shown(step["memory_peak"] if step["memory_seen"] is None else step["memory_seen"], "size"),
            shown(step["memory"], "size"), step["nodes"] or "—",
        ]
        for step in found
    ]  # fmt: skip
    return table(names, rows, frozenset({"tasks", "elapsed", "cpu time", "cpus", "peak", "memory"}))


def _count(value: int | None) -> str:
    return "—" if value is None else str(value)
