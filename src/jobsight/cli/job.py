"""What happened with a job: one screen.

ID is the scheduler's number, or the session's on a machine with no batch system; a key as `jobsight jobs --json`
prints it always names one job. With --pid, the job of a process on this machine; with --user, --command or --since,
the newest that fits. --scale says whether more cores would help, --rightsize what to ask for next time.
"""

import os
import time
from argparse import Namespace
from collections.abc import Callable
from datetime import datetime
from typing import Any

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
from jobsight.formats.number import cores, duration, meter, ratio, size, spark, volume
from jobsight.settings import Settings

WIDTH = 60
FILTERS = ("owner", "command", "since", "until")


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("job", __doc__)
    accept.add_argument("id", nargs="?", metavar="ID", help="the job's id or key")
    accept.add_argument("--pid", type=int, help="the job of this process")
    accept.add_argument("--user", dest="owner", help="the newest job of this user")
    accept.add_argument("--command", help="the newest job of this command")
    accept.add_argument("--since", help="the newest job seen after: 7d, 2026-11-15, …")
    accept.add_argument("--until", help="the newest job started before")
    accept.add_argument("--scale", action="store_true", help="would more cores help?")
    accept.add_argument("--rightsize", action="store_true", help="what to ask for next time, to be pasted")
    accept.add_argument("--store", metavar="DIR|URL", help="where rows and jobs are kept")
    add_settings(accept)
    add_formats(accept)
    given = accept.parse_args(arguments)
    filters = {name: value for name in FILTERS if (value := getattr(given, name)) is not None}
    if sum((given.id is not None, given.pid is not None, bool(filters))) != 1:
        raise WrongUseError("say which job: jobsight job ID, --pid PID, or --user, --command, --since, --until")
    if given.scale and given.rightsize:
        raise WrongUseError("one at a time: --scale or --rightsize")
    found = _read(settings_of(given.settings), given, filters)
    print(_shown(found, given))
    return 0


def _job_of(pid: int) -> str:
    from jobsight.formats import cgrouppath, procstat
    from jobsight.host import Host

    host = Host("/")
    try:
        stat = procstat.parse(host.read_bytes(f"proc/{pid}/stat"))
    except OSError:
        raise FailedError(f"no process {pid} here") from None
    group = cgrouppath.job_of_process(host.glimpse(f"proc/{pid}/cgroup") or "")
    return group.job if group else str(stat.session or stat.process_group or stat.pid)


def _read(settings: Settings, given: Namespace, filters: dict[str, str]) -> dict[str, Any]:
    from jobsight.show.reader import open_reader
    from jobsight.store.protocol import StoreError

    try:
        reader = open_reader(given.store or settings.store.place, settings.energy, settings.findings)
        try:
            matches = _matches(reader, given, filters)
            found = reader.job(matches[0]["key"])
            scaling = reader.scaling(matches[0]["key"]) if given.scale else None
        finally:
            reader.close()
    except StoreError as error:
        raise FailedError(str(error)) from None
    if found is None:
        raise FailedError(f"no job {matches[0]['id']}")
    found["others"] = [match["key"] for match in matches[1:]] if not filters else []
    return found | ({"scaling": scaling} if scaling else {})


def _matches(reader: Any, given: Namespace, filters: dict[str, str]) -> list[dict[str, Any]]:
    """The jobs that may be meant, the likeliest first."""
    if filters:
        window = {"since": filters.get("since", ""), "until": filters.get("until", "")}
        _check(window)
        found = sorted(reader.jobs(**(filters | window)), key=lambda job: -job["started"])
        if not found:
            raise FailedError("no job fits; `jobsight jobs` lists them")
        return found
    name = given.id or _job_of(given.pid)
    found = reader.named(name)
    if given.pid is not None:
        # A session's number is known on every node: ours is meant.
        found = [job for job in found if os.uname().nodename in job["nodes"]]
    if not found:
        raise FailedError(f"no job {name}; `jobsight jobs --text {name}` searches")
    return found


def _check(window: dict[str, str]) -> None:
    for name, text in window.items():
        try:
            when.instant(text or "now", time.time())
        except ValueError as error:
            raise WrongUseError(f"--{name}: {error}") from None


def _shown(profile: dict[str, Any], given: Namespace) -> str:
    from jobsight.show import accounting, joblustre, letter, screen
    from jobsight.show.terminal import export, safe

    form = given.format
    if form == "json":
        import json

        answered = profile["answers"]["request"] if given.rightsize else profile.get("scaling", profile)
        return json.dumps(answered, indent=2)
    if form == "table" and given.scale:
        return f"{_head(profile['summary'])}\n\n{screen.scale(profile['scaling'])}"
    if form == "table" and given.rightsize:
        return f"# {_head(profile['summary'])}\n{screen.request(profile['answers'])}"
    if form != "table":
        return export([profile["summary"]], form)
    job = profile["summary"]
    parts = [
        _head(job),
        "",
        safe(profile["verdict"]),
        *([told] if (told := letter.noted(profile.get("findings", []))) else []),
        *([gone] if (gone := profile.get("gone")) else []),
        *(safe(one["sentence"]) for one in profile.get("containers", [])[:4]),
        "",
        _meters(job, profile["missing"]),
        *_energy(profile),
        "",
        *([said] if (said := accounting.told(profile)) else []),
        _charts(profile["series"]),
        "",
    ]
    parts += [told, ""] if (told := screen.told(profile["answers"])) else []
    parts += [told, ""] if (told := joblustre.told(profile)) else []
    parts += [_processes(profile), "", _foot(profile)]
    return "\n".join(parts)


def _head(job: dict[str, Any]) -> str:
    from jobsight.show.terminal import coloured, safe

    nodes = job["nodes"][0] if len(job["nodes"]) == 1 else f"{len(job['nodes'])} nodes" if job["nodes"] else "no node"
    number = f" ({job['number']})" if job["number"] else ""
    title = coloured(safe(f"{job['id']}{number} {job['name'] or job['command']}"), "strong")
    facts = [
        safe(job["owner"]),
        *filter(None, [safe(job["account"])]),
        safe(nodes),
        safe(job["scheduler"]),
        f"{job['state']} after {duration(job['elapsed'])}",
    ]
    return f"{title}   {' · '.join(facts)}"


def _meters(job: dict[str, Any], missing: dict[str, str]) -> str:
    used = f"{cores(job['cores_mean'])}{_of(job['cpus'], str)} cores"
    held = (
        f"at most {size(job['memory_peak'])}{_of(job['memory_limit'], size)}, {size(job['memory_mean'])} on average"
    )
    reasons = {name: f"— {reason}" for name, reason in missing.items()}
    moved = [f"{volume(job[name], reasons.get(name, '—'))} {name}" for name in ("read", "written")]
    return "\n".join(
        [
            f"{'CPU':<8}[{meter(job['cores_mean'], job['cpus'], 20)}]  {used}",
            f"{'memory':<8}[{meter(job['memory_peak'], job['memory_limit'], 20)}]  {held}",
            *_gpus(job),
            f"{'time':<8}{duration(job['cpu_time'])} of CPU time in {duration(job['elapsed'])}",
            f"{'I/O':<8}{', '.join(moved)}",
        ]
    )


def _gpus(job: dict[str, Any]) -> list[str]:
    if not job["gpus"]:
        return []
    used = job["reserved"]["gpus"]["used"]
    said = f"{cores(used)} of {job['gpus']} GPUs, at most {size(job['gpu_memory_peak'])} of their memory"
    return [f"{'GPU':<8}[{meter(used, job['gpus'], 20)}]  {said}"]


def _energy(profile: dict[str, Any]) -> list[str]:
    from jobsight.analyse.consumption import sentence

    took = profile.get("energy")
    return [f"{'energy':<8}{sentence(took)}"] if took else []


def _of(limit: float | None, shown: Callable[[Any], str]) -> str:
    return "" if limit is None else f" of {shown(limit)}"


def _charts(series: dict[str, dict[str, list[float]]]) -> str:
    lines = []
    for name, label, shown in (
        ("cpu", "CPU", cores),
        ("memory", "memory", size),
        ("gpu", "GPUs", cores),
        ("written", "written", _rate),
    ):
        values = series[name]["value"]
        if values:
            lines.append(f"{label:<8}{spark(_resampled(series[name], WIDTH))}  peak {shown(max(values))}")
    return "\n".join(lines) or "No chart yet: it takes two samples."


def _rate(value: float) -> str:
    return f"{volume(value)}/s"


def _resampled(series: dict[str, list[float]], width: int) -> list[float]:
    """The highest value in each of `width` slices of the time."""
    first, last = series["start"][0], series["end"][-1]
    slices = [0.0] * min(width, len(series["value"]))
    for start, end, value in zip(series["start"], series["end"], series["value"], strict=True):
        low = int((start - first) / (last - first) * len(slices))
        high = int((end - first) / (last - first) * len(slices) - 1e-9)
        for place in range(low, min(high, len(slices) - 1) + 1):
            slices[place] = max(slices[place], value)
    return slices


def _processes(profile: dict[str, Any], most: int = 10) -> str:
    from jobsight.show.terminal import table

    names = ["pid", "command", "node", "cpu time", "memory", "threads", "written"]
    rows = [
        [
            str(p["pid"]), p["command"], p["node"], duration(p["cpu_time"]), size(p["memory_peak"]),
            str(p["threads_peak"]), volume(p["written"]),
        ]
        for p in profile["processes"][:most]
    ]  # fmt: skip
    if not rows:
        return "No process of it was seen."
    shown = table(names, rows, frozenset({"pid", "cpu time", "memory", "threads", "written"}))
    more = profile["processes_total"] - len(rows)
    return shown + (f"\n… and {more} more" if more else "")


def _foot(profile: dict[str, Any]) -> str:
    from jobsight.show.terminal import safe

    job = profile["summary"]
    times = [datetime.fromtimestamp(job[name]).astimezone().isoformat(" ", "seconds") for name in ("started", "seen")]
    source = _SOURCES.get(job["source"], job["source"])
    lines = [f"from {times[0]} to {times[1]}, {ratio(job['coverage'])} of it observed; totals from {source}"]
    if job["source"] == "cgroup" and job["cpu_time_processes"] is not None:
        lines.append(f"summing processes gives {duration(job['cpu_time_processes'])} of CPU time")
    if profile["others"]:
        lines.append(f"earlier jobs of this id: {safe(', '.join(profile['others']))}")
    return "\n".join(lines)


_SOURCES = {"cgroup": "the job's control group", "process": "its processes", "scheduler": "its scheduler"}
