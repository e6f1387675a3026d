"""What a job's scheduler says of it, as names and texts for people. Pure."""

from typing import Any

from jobsight.formats import number

# By the names of `analyse.batch`.
NAMES = {
    "partition": "partition", "qos": "QOS", "account": "account", "reservation": "reservation", "array_job": "array",
    "array_waiting": "tasks that wait", "het_job": "heterogeneous job", "reason": "reason",
    "dependency": "waits for", "scheduled_nodes": "expected nodes", "nodes": "nodes", "requested": "asked for",
    "allocated": "given", "gpu_types": "GPU types", "restarts": "restarts", "work_dir": "directory",
}  # fmt: skip


def facts(job: dict[str, Any]) -> list[tuple[str, str]]:
    """Of a job with its figures; what is missing is left out."""
    batch = job["batch"] or {}
    found = [(name, str(batch[column])) for column, name in NAMES.items() if batch.get(column) not in (None, "")]
    if (ended := exit_of(batch)) != "—":
        found.append(("exit code : signal", ended))
    if batch.get("cpu_time") is not None:
        found.append(("CPU time, as accounted", number.duration(batch["cpu_time"])))
    return found + [(f"on {part['nodes']}", _given(part)) for part in batch.get("given", ())]


def exit_of(row: dict[str, Any]) -> str:
    """Exit code and signal of a job or step, as Slurm writes them."""
    code = row.get("exit_code")
    return "—" if code is None else f"{code}:{row.get('exit_signal') or 0}"


def _given(part: dict[str, Any]) -> str:
    texts = [
        f"{part['cpus']} CPUs" if part.get("cpus") else "",
        number.size(part["memory"]) if part.get("memory") else "",
        f"cores {part['cores']}" if part.get("cores") else "",
        part.get("devices") or "",
    ]
    return ", ".join(filter(None, texts))


def shown(value: float | None, form: str) -> str:
    """A figure by the name of its form; a dash where there is none."""
    return "—" if value is None else str(getattr(number, form)(value))
