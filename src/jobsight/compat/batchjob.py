"""The batch job exporter and its stats server, as other sites' dashboards know them: ids, names and texts. Pure.

What a job is called there is one table, `FIELDS`. A value comes from the scheduler's own record of the job where
there is one (`facts`, a row of `slurmjob`), else from what was sampled; what neither knows is null.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from jobsight.collector import ParseError
from jobsight.formats import nodelist, xxh3

# A list of nodes may be what somebody set in their job's environment: longer ones are not spelt out.
MOST_NAMES = 10_000

Job = Mapping[str, Any]
Facts = Mapping[str, Any]


def unique_id(job: str, user: str, account: str, nodes: str) -> str:
    """Tells a job from an earlier one of the same number: 128 bits of XXH3, written as a UUID. `user` is a name, or
    where a site makes its ids of users' numbers, that number.
    """
    parts = (job.strip(), user.strip(), account.strip().lower(), nodes.strip().lower())
    text = xxh3.digest(",".join(parts).encode("utf-8", "surrogatepass")).hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _text(value: Any) -> str | None:
    return None if value in (None, "") else str(value)


def _instant(seconds: float | None) -> str | None:
    """As sacct writes it when asked for the zone."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S%z")
    except (OverflowError, ValueError, OSError):
        return None


def _milliseconds(seconds: float | None) -> str | None:
    return None if seconds is None else str(int(seconds * 1000))


def _duration(seconds: float | None) -> str | None:
    """As sacct writes it: 1-02:03:04, 02:03:04."""
    if seconds is None:
        return None
    hours, rest = divmod(int(seconds), 3600)
    days, hours = divmod(hours, 24)
    return f"{f'{days}-' if days else ''}{hours:02d}:{rest // 60:02d}:{rest % 60:02d}"


def _start(job: Job, facts: Facts) -> Any:
    """One that waits has none."""
    value = facts.get("start")
    return job["started"] if value is None and job["state"] != "pending" else value


def _end(job: Job, facts: Facts) -> Any:
    """Without the scheduler's word, the last time it was seen to run."""
    if facts.get("ended") is not None:
        return facts["ended"]
    return job["seen"] if job["state"] == "ended" and "state" not in facts else None


def _elapsed(job: Job, facts: Facts) -> Any:
    value = facts.get("elapsed")
    return job["elapsed"] if value is None else value


def _state(job: Job, facts: Facts) -> str | None:
    """Whether a job that is over was good or bad, only its scheduler knows."""
    return facts.get("state") or ("RUNNING" if job["state"] == "running" else None)


def _exit_code(_: Job, facts: Facts) -> str | None:
    code = facts.get("exit_code")
    return None if code is None else f"{code}:{facts.get('exit_signal') or 0}"


def _nodes(job: Job, facts: Facts) -> str | None:
    """The list of nodes as the scheduler writes it; else of those it was seen on."""
    if known := facts.get("nodes") or job["allocated"]:
        return str(known)
    try:
        return nodelist.compress(job["nodes"]) or None
    except ParseError:
        return None


def _names(job: Job, facts: Facts) -> list[str]:
    try:
        return nodelist.expand(_nodes(job, facts) or "", MOST_NAMES)
    except ParseError:
        return list(job["nodes"])


def _count(job: Job, facts: Facts) -> Any:
    value = facts.get("node_count")
    if value is not None:
        return value
    try:
        return nodelist.count(_nodes(job, facts) or "") or None
    except ParseError:
        return len(job["nodes"]) or None


def _cpus(job: Job, facts: Facts) -> Any:
    value = facts.get("cpus")
    return job["cpus"] if value is None else value


def _number(job: Job, facts: Facts) -> str:
    return str(facts.get("job") or job["number"] or job["id"])


def _owner(job: Job, facts: Facts) -> str:
    return str(facts.get("owner") or job["owner"])


def _account(job: Job, facts: Facts) -> str:
    return str(facts.get("account") or job["account"])


# Every key of a job in the order of the stats server, but for its unique id, which is made of others.
FIELDS: dict[str, Callable[[Job, Facts], Any]] = {
    "jobid": _number,
    "partition": lambda job, facts: facts.get("partition") or job["partition"],
    "qos": lambda _, facts: facts.get("qos"),
    "account": _account,
    "group": lambda _, facts: facts.get("group_name"),
    "gid": lambda _, facts: facts.get("gid"),
    "user": _owner,
    "uid": lambda _, facts: facts.get("uid"),
    "submit": lambda _, facts: _instant(facts.get("submit")),
    "start": lambda job, facts: _instant(_start(job, facts)),
    "end": lambda job, facts: _instant(_end(job, facts)),
    "submitts": lambda _, facts: _milliseconds(facts.get("submit")),
    "startts": lambda job, facts: _milliseconds(_start(job, facts)),
    "endts": lambda job, facts: _milliseconds(_end(job, facts)),
    "elapsed": lambda job, facts: _duration(_elapsed(job, facts)),
    "exitcode": _exit_code,
    "state": _state,
    "nnodes": _count,
    "ncpus": _cpus,
    "nodelist": _nodes,
    "nodelistexp": lambda job, facts: "|".join(_names(job, facts)),
    "jobname": lambda job, facts: facts.get("name") or job["name"],
    "workdir": lambda _, facts: facts.get("work_dir"),
}


def job_id(job: Job, facts: Facts, *, by_uid: bool = False) -> str | None:
    """The unique id of a job; None where it is to be made of a number that is not known."""
    user = facts.get("uid") if by_uid else _owner(job, facts)
    if user is None:
        return None
    return unique_id(_number(job, facts), str(user), _account(job, facts), _nodes(job, facts) or "")


def fields(job: Job, facts: Facts, *, by_uid: bool = False) -> dict[str, str | None]:
    """A job as the stats server names it. Every value is a text."""
    found = {name: _text(value(job, facts)) for name, value in FIELDS.items()}
    return {"jobid": found["jobid"], "id": job_id(job, facts, by_uid=by_uid), **found}


def envelope(found: list[Any], warnings: tuple[str, ...] = ()) -> dict[str, Any]:
    """An answer."""
    return {"status": "success", "data": found, "errorType": "", "error": "", "warnings": list(warnings)}


def refusal(kind: str, reason: str) -> dict[str, Any]:
    """An answer that is none."""
    return {"status": "error", "data": [], "errorType": kind, "error": reason, "warnings": []}
