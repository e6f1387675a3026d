"""Jobs and steps as `sacct --json` tells them, in the columns of `formats.sacct`.

It has had two shapes: plain numbers and texts until 22.05, from 23.02 on `{"set": true, "number": 5}` and states as
lists of words. It says less than the table and some of it wrongly, so the table is asked for unless a setting says
otherwise: no user's number and no entry of the database; who cancelled a job by name; until 22.05 the exit code 0 of
whatever failed, and no CPU time of a job, only of its steps.
"""

from collections.abc import Iterator
from typing import Any

from jobsight.collector import ParseError
from jobsight.formats import slurmtext
from jobsight.formats.sacct import Jobs, finish
from jobsight.formats.slurmtext import NOTHING

Row = dict[str, Any]


def command(since: float, until: float) -> tuple[str, ...]:
    """How it is asked: there is no choice of columns."""
    span = f"--starttime=uts{int(since)}", f"--endtime=uts{int(until)}"
    return ("sacct", "--json", "--allusers", "--duplicates", *span)


def jobs(text: str) -> Iterator[Jobs]:
    """The rows of what it printed; a job that does not read costs itself alone."""
    import json

    try:
        document = json.loads(text)
        listed = list(document["jobs"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ParseError(f"expected JSON with jobs, got {_said(text)!r}") from None
    rows: list[Row] = []
    bad: set[str] = set()
    for job in listed:
        try:
            rows += _rows(job)
        except (ParseError, LookupError, TypeError, ValueError, AttributeError):
            bad.add("job")
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    if rows:
        finish(columns, {})
    if rows or bad:
        yield Jobs(columns, len(rows), bad)


def _said(text: str) -> str:
    """What is wrong, in its own words where it has some."""
    place = text.find('"errors"')
    return " ".join(text[max(0, place) :][:200].split())


def _rows(job: dict[str, Any]) -> list[Row]:
    """A job and its steps."""
    number = str(_needed(job["job_id"]))
    array, het = job.get("array") or {}, job.get("het") or {}
    family = {
        "array_job": _some(array.get("job_id")), "array_index": _number(array.get("task_id")),
        "array_waiting": _text(array.get("task")), "het_job": _some(het.get("job_id")),
        "het_offset": _number(het.get("job_offset")) if _some(het.get("job_id")) else None,
    }  # fmt: skip
    steps = [_step(number, step) | family for step in job.get("steps") or []]
    row = {
        "job": number, "step": None, **family, **_common(job), "owner": _text(job.get("user")),
        "name": _text(job.get("name")),
        "group_name": _text(job.get("group")), "account": _text(job.get("account")), "qos": _text(job.get("qos")),
        "partition": _text(job.get("partition")), "work_dir": _text(job.get("working_directory")),
        "reservation": _text((job.get("reservation") or {}).get("name")),
        "reason": _text((job.get("state") or {}).get("reason")), "nodes": _text(job.get("nodes")),
        "submit": _instant(job["time"].get("submission")), "eligible": _instant(job["time"].get("eligible")),
        "priority": _number(job.get("priority")), "restarts": _number(job.get("restart_cnt")),
        "requested_cpus": _number((job.get("required") or {}).get("CPUs")),
        "worst_exit_code": _exit(job.get("derived_exit_code"), "")[0], **_limit(job["time"].get("limit")),
        **_asked((job.get("tres") or {}).get("requested")), **_given((job.get("tres") or {}).get("allocated")),
    }  # fmt: skip
    for name in ("cpu_time", "cpu_user", "cpu_system"):
        if not row[name]:
            row[name] = sum(step[name] or 0.0 for step in steps) if steps else None
    return [row, *steps]


def _step(job: str, step: dict[str, Any]) -> Row:
    named, nodes = step["step"], step.get("nodes") or {}
    tres, used = step.get("tres") or {}, (step.get("tres") or {}).get("requested") or {}
    peak = _one(used.get("max"), "mem")
    return {
        "job": job, "step": str(named["id"]).removeprefix(f"{job}."), **_common(step),
        "name": _text(named.get("name")), "nodes": _text(nodes.get("range")),
        "node_count": _number(nodes.get("count")),
        "layout": _text((step.get("task") or {}).get("distribution")), "tasks": _number(step["tasks"]["count"]),
        "memory_peak": (peak or {}).get("count") or None, "memory_peak_node": _text((peak or {}).get("node")),
        "memory_mean": (_one(used.get("average"), "mem") or {}).get("count") or None,
        "read": (_one(used.get("total"), "fs", "disk") or {}).get("count"),
        "written": (_one((tres.get("consumed") or {}).get("total"), "fs", "disk") or {}).get("count"),
        **_given(tres.get("allocated")),
    }  # fmt: skip


def _common(item: dict[str, Any]) -> Row:
    """What jobs and steps have alike."""
    told = item["state"]["current"] if isinstance(item["state"], dict) else item["state"]
    state, _ = slurmtext.state(told[0] if isinstance(told, list) else told)
    code, signal = _exit(item.get("exit_code"), state)
    times = item["time"]
    return {
        "state": state, "start": _instant(times.get("start")), "ended": _instant(times.get("end")),
        "elapsed": _seconds(times.get("elapsed")), "suspended": _seconds(times.get("suspended")),
        "exit_code": code, "exit_signal": signal, "cpu_time": _precise(times.get("total")),
        "cpu_user": _precise(times.get("user")), "cpu_system": _precise(times.get("system")),
    }  # fmt: skip


def _asked(tres: Any) -> Row:
    found = _given(tres)
    names = {"requested": "allocated", "requested_memory": "memory", "requested_gpus": "gpus",
             "requested_nodes": "node_count"}  # fmt: skip
    return {mine: found.get(theirs) for mine, theirs in names.items()}


def _given(tres: Any) -> Row:
    """A list of resources, by way of the text that the table has of it."""
    items = {_name(one): one["count"] for one in tres or [] if one.get("count") is not None}
    if not items:
        return {}
    text = ",".join(f"{name}={count}{'M' if name == 'mem' else ''}" for name, count in sorted(items.items()))
    found = slurmtext.tres(text)
    return {
        "allocated": text, "cpus": found.cpus, "memory": found.memory, "gpus": found.gpus,
        "gpu_types": found.gpu_types, "node_count": found.nodes,
    }  # fmt: skip


def _name(one: dict[str, Any]) -> str:
    return f"{one['type']}/{one['name']}" if one.get("name") else str(one["type"])


def _one(tres: Any, kind: str, name: str | None = None) -> dict[str, Any] | None:
    return next((one for one in tres or [] if one["type"] == kind and (one.get("name") or None) == name), None)


def _exit(found: Any, state: str) -> tuple[int | None, int | None]:
    """Code and signal. What failed with nothing is one of 22.05, which forgot it."""
    if not isinstance(found, dict):
        return None, None
    code, signal = _number(found.get("return_code")), found.get("signal") or {}
    number = _number(signal.get("signal_id", signal.get("id"))) or 0
    if (code is None or state == "FAILED") and not code and not number:
        return None, None
    return code or 0, number


def _limit(minutes: Any) -> Row:
    if isinstance(minutes, dict) and minutes.get("infinite"):
        return {"time_limit": None, "unlimited": True}
    found = _number(minutes)
    return {"time_limit": None if found is None else 60.0 * found, "unlimited": None if found is None else False}


def _number(value: Any) -> int | None:
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < slurmtext.LARGEST:
        raise ParseError(f"expected a whole number, got {value!r:.40}")
    return value


def _needed(value: Any) -> int:
    found = _number(value)
    if found is None:
        raise ParseError("expected a job's number, got none")
    return found


def _some(value: Any) -> str | None:
    """A number where nought says that there is none."""
    found = _number(value)
    return str(found) if found else None


def _instant(value: Any) -> float | None:
    found = _number(value)
    return float(found) if found else None


def _seconds(value: Any) -> float | None:
    found = _number(value)
    return None if found is None else float(found)


def _precise(value: Any) -> float | None:
    if not isinstance(value, dict):
        return None
    return (_number(value.get("seconds")) or 0) + (_number(value.get("microseconds")) or 0) / 1e6


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value not in NOTHING else None
