"""What `squeue` says of jobs that wait or run: a table between marks, and JSON for what tables do not have.

JSON has had two shapes: plain numbers and texts until 22.05, from 23.02 on `{"set": true, "number": 5}` and lists of
words, and from 23.11 on nodes below `job_resources.nodes.allocation`.
"""

from typing import Any, NamedTuple

from jobsight.collector import ParseError

# A field, and the name its column has; the first two tell the mark. No name of the user's making but the account.
FIELDS = (
    ("%A", "JOBID"), ("%T", "STATE"), ("%F", "ARRAY_JOB_ID"), ("%K", "ARRAY_TASK_ID"), ("%r", "REASON"),
    ("%E", "DEPENDENCY"), ("%V", "SUBMIT_TIME"), ("%S", "START_TIME"), ("%C", "CPUS"), ("%D", "NODES"),
    ("%N", "NODELIST"), ("%Y", "SCHEDNODES"), ("%u", "USER"), ("%a", "ACCOUNT"), ("%P", "PARTITION"),
    ("%q", "QOS"), ("%Q", "PRIORITY"),
)  # fmt: skip


class Grant(NamedTuple):
    """What a job was given on each of some nodes that are alike."""

    job: str
    nodes: str
    cores: str | None
    """By socket: `0:0-3 1:0`."""
    cpus: int | None
    memory: int | None
    devices: str | None
    """`gpu:a100:0-1`."""


def command(mark: str) -> tuple[str, ...]:
    """How `squeue` is asked for everybody's jobs."""
    return ("squeue", "--all", "--format=" + "".join(f"{field}{mark}" for field, _ in FIELDS))


def grants(text: str) -> tuple[list[Grant], int]:
    """What running jobs were given, from JSON; and how many jobs could not be understood."""
    import json

    try:
        document = json.loads(text)
        jobs = document["jobs"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ParseError(f"expected JSON with jobs, got {text[:80]!r}") from None
    found, bad = [], 0
    for job in jobs if isinstance(jobs, list) else []:
        try:
            found += _grants(job)
        except (ParseError, KeyError, TypeError, ValueError, AttributeError):
            bad += 1
    return found, bad


def _grants(job: dict[str, Any]) -> list[Grant]:
    from jobsight.formats import nodelist

    resources = job.get("job_resources") or {}
    places = resources.get("allocated_nodes")
    if places is None and isinstance(resources.get("nodes"), dict):
        places = resources["nodes"].get("allocation")
    if not places:
        return []
    devices = [_devices(text) for text in job.get("gres_detail") or []]
    # One text for each node, in their order, or none at all.
    known = devices if len(devices) == len(places) else [None] * len(places)
    alike: dict[tuple[Any, ...], list[str]] = {}
    for place, device in zip(places, known, strict=True):
        key = (*_place(place), device)
        alike.setdefault(key, []).append(place.get("nodename") or place["name"])
    number = str(_number(job["job_id"]))
    return [Grant(number, nodelist.compress(names), *key) for key, names in alike.items()]


def _place(place: dict[str, Any]) -> tuple[str | None, int | None, int | None]:
    """Cores, CPUs and memory of one node."""
    sockets = place.get("sockets") or {}
    listed = {str(one["index"]): one for one in sockets} if isinstance(sockets, list) else sockets
    texts = []
    for socket, one in sorted(listed.items(), key=lambda item: int(item[0])):
        cores = one.get("cores") or {}
        each = {str(core["index"]): core.get("status") for core in cores} if isinstance(cores, list) else cores
        given = sorted(int(core) for core, state in each.items() if _given(state))
        if given:
            texts.append(f"{socket}:{_ranges(given)}")
    memory = place.get("memory_allocated")
    if memory is None and isinstance(place.get("memory"), dict):
        memory = place["memory"].get("allocated")
    # The older shape has `cpus_used`, which is what steps use of them, and mostly nought.
    cpus = place["cpus"].get("count") if isinstance(place.get("cpus"), dict) else None
    size = _number(memory)
    return " ".join(texts) or None, _number(cpus), None if size is None else size * 2**20


def _given(state: Any) -> bool:
    words = state if isinstance(state, list) else [state]
    return any(str(word).upper().startswith("ALLOCATED") for word in words)


def _devices(text: str) -> str | None:
    """`gpu:a100:1(IDX:0-1)` → `gpu:a100:0-1`."""
    from jobsight.formats.slurmtext import NOTHING

    parts = []
    for item in text.replace("),", ")\n").splitlines():
        name, found, rest = item.partition("(IDX:")
        index = rest.partition(")")[0]
        if found and index not in NOTHING:
            parts.append(f"{name.rpartition(':')[0]}:{index}")
    return " ".join(parts) or None


def _ranges(numbers: list[int]) -> str:
    from jobsight.formats.nodelist import compress

    return compress(map(str, numbers)).strip("[]")


def _number(value: Any) -> int | None:
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**43:
        raise ParseError(f"expected a whole number, got {value!r:.40}")
    return value
