"""Jobs as PBS tells them: `qstat -f -F json` of those that wait or run, accounting records of those that ended.

See the PBS Professional Reference Guide: job attributes and the accounting log. Columns are named as Slurm's are, and
states with the words both understand.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from jobsight.collector import ParseError
from jobsight.formats import slurmtext

STATES = {
    "Q": "PENDING", "R": "RUNNING", "H": "PENDING", "W": "PENDING", "T": "PENDING", "M": "REVOKED", "E": "COMPLETING",
    "S": "SUSPENDED", "U": "SUSPENDED", "B": "RUNNING", "F": "COMPLETED", "X": "COMPLETED",
}  # fmt: skip
# Why a job waits, where its letter says so.
REASONS = {"H": "Held", "W": "BeginTime", "T": "Moving"}
# What PBS itself ended a job for, see "Job Exit Status Codes".
ENDED = {-27: "OUT_OF_MEMORY", -28: "TIMEOUT", -29: "TIMEOUT"}
SIZES = {"b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40, "pb": 2**50, "w": 8}
# name=value with blanks only inside quotes.
PAIR = re.compile(r'([^\s=]+)=("(?:[^"\\]|\\.)*"|\S*)')

Row = dict[str, Any]


def queued(text: str) -> tuple[list[Row], int]:
    """Jobs by column, from JSON; and how many could not be understood."""
    import json

    try:
        jobs = json.loads(text).get("Jobs", {})
    except (ValueError, AttributeError, RecursionError):
        raise ParseError(f"expected JSON with Jobs, got {text[:80]!r}") from None
    rows, bad = [], 0
    for number, job in jobs.items() if isinstance(jobs, dict) else ():
        try:
            rows.append(_queued(str(number), job))
        except (ValueError, TypeError, AttributeError, KeyError):
            bad += 1
    return rows, bad


def ended(text: str, since: float, until: float) -> tuple[list[Row], int]:
    """Jobs that ended in a window, from the lines of a day; and how many could not be understood."""
    rows, bad = [], 0
    for number, words in _records(text):
        try:
            pairs = {name: value.strip('"') for name, value in PAIR.findall(words)}
            if since <= float(pairs["end"]) <= until:
                rows.append(_ended(number, pairs))
        except (ValueError, KeyError):
            bad += 1
    return rows, bad


def size(text: str) -> int | None:
    """Bytes of `4gb`, `1234kb`."""
    if not text:
        return None
    found = re.fullmatch(r"([0-9]{1,18})([kmgtp]?[bw]?)", text.lower())
    if found is None:
        raise ParseError(f"size: expected a number with kb, mb or gb, got {text[:40]!r}")
    unit = found[2] if found[2] in SIZES else f"{found[2]}b"
    return slurmtext.bounded(int(found[1]) * SIZES.get(unit, 1), text)


def nodes(text: str) -> list[str]:
    """Names of `n1/0*2+n2/0*2`, each once, in their order."""
    return list(dict.fromkeys(part.partition("/")[0] for part in text.split("+") if part))


def identity(number: str) -> Row:
    """`123[7].srv` is task 7 of array 123[]."""
    found = re.match(r"([0-9]+)\[([0-9]*)\]", number)
    if found is None:
        return {}
    return {"array_job": found[1], "array_index": slurmtext.number(found[2])}


def _records(text: str) -> Iterator[tuple[str, str]]:
    """`11/15/2026 07:36:26;E;123.srv;user=alice …`: the records of ends."""
    for line in text.splitlines():
        parts = line.split(";", 3)
        if len(parts) == 4 and parts[1] == "E":
            yield parts[2], parts[3]


def _queued(number: str, job: dict[str, Any]) -> Row:
    letter = job["job_state"]
    used = job.get("resources_used") or {}
    waits = STATES[letter] == "PENDING"
    return {
        **identity(number),
        **_asked(job.get("Resource_List") or {}),
        **_given(str(job.get("exec_host") or "")),
        "job": number,
        "owner": str(job.get("Job_Owner", "")).partition("@")[0] or None,
        "account": job.get("Account_Name"),
        "partition": job.get("queue"),
        "name": job.get("Job_Name"),
        "state": STATES[letter],
        "reason": REASONS.get(letter) or (job.get("comment") if waits else None),
        "submit": _date(job.get("ctime")),
        "eligible": _date(job.get("etime")),
        "start": None if waits else _date(job.get("stime")),
        "elapsed": slurmtext.duration(used.get("walltime", "")),
        "priority": None,
    }


def _ended(number: str, pairs: dict[str, str]) -> Row:
    status = int(pairs.get("Exit_status", "0"))
    asked = {name.partition(".")[2]: value for name, value in pairs.items() if name.startswith("Resource_List.")}
    return {
        **identity(number),
        **_asked(asked),
        **_given(pairs.get("exec_host", "")),
        **_outcome(status),
        "job": number,
        "owner": pairs.get("user"),
        "group_name": pairs.get("group"),
        "account": pairs.get("account"),
        "partition": pairs.get("queue"),
        "name": pairs.get("jobname"),
        "submit": _epoch(pairs.get("ctime")),
        "eligible": _epoch(pairs.get("etime")),
        "start": _epoch(pairs.get("start")),
        "ended": _epoch(pairs.get("end")),
        "elapsed": slurmtext.duration(pairs.get("resources_used.walltime", "")),
        "cpu_time": slurmtext.duration(pairs.get("resources_used.cput", "")),
        "memory_peak": size(pairs.get("resources_used.mem", "")) or None,
        "restarts": max(0, (slurmtext.number(pairs["run_count"]) or 0) - 1) if "run_count" in pairs else None,
    }


def _asked(resources: dict[str, Any]) -> Row:
    """What was asked for is, in PBS, what is given once the job runs."""
    told = {name: str(value) for name, value in resources.items()}
    return {
        "requested": ",".join(f"{name}={value}" for name, value in sorted(told.items())) or None,
        "requested_cpus": slurmtext.number(told.get("ncpus", "")),
        "requested_memory": size(told.get("mem", "")),
        "requested_nodes": slurmtext.number(told.get("nodect", "")),
        "requested_gpus": slurmtext.number(told.get("ngpus", "")),
        "time_limit": slurmtext.duration(told.get("walltime", "")),
    }


def _given(hosts: str) -> Row:
    """Nodes, and CPUs as far as `n1/0*4` tells them."""
    from jobsight.formats import nodelist

    names = nodes(hosts)
    if not names:
        return {}
    cpus = sum(int(part.rpartition("*")[2]) if "*" in part else 1 for part in hosts.split("+") if part)
    return {"nodes": nodelist.compress(names), "node_count": len(names), "cpus": slurmtext.bounded(cpus, hosts)}


def _outcome(status: int) -> Row:
    """0 to 255 is the exit code, above it is 256 and a signal, below are PBS's own reasons."""
    if status < 0:
        return {"state": ENDED.get(status, "FAILED"), "exit_code": None, "exit_signal": None}
    code, signal = (0, status - 256) if status > 256 else (status, 0)
    state = "COMPLETED" if status == 0 else "FAILED"
    return {"state": state, "exit_code": code, "exit_signal": slurmtext.bounded(signal, str(status))}


def _epoch(text: str | None) -> float | None:
    return None if text is None else slurmtext.instant(text)


def _date(text: str | None) -> float | None:
    """`Sun Nov 15 07:36:02 2026`, as qstat writes it when TZ is UTC."""
    if not text:
        return None
    try:
        return datetime.strptime(text, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise ParseError(f"time: expected such as Sun Nov 15 07:36:02 2026, got {text[:40]!r}") from None
