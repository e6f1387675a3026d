"""Whether the agent and ps say the same about the farm."""

import subprocess
from typing import Any

from jobsight import catalogue
from jobsight.host import Host

FIELDS = ("pid", "ppid", "pgid", "sid", "uid", "nlwp", "vsz", "rss", "cputimes", "comm")
USER_HZ = 100


def differences(pids: set[int]) -> list[str]:
    """What the two disagree on, nothing if they agree. The farm must be at rest."""
    host = Host()
    rows = {row.pid: row for row in catalogue.collector("process").rows(host)}
    host.close()
    found = []
    seen = _ps()
    for pid in sorted(pids):
        row, words = rows.get(pid), seen.get(pid)
        if row is None or words is None:
            found.append(f"{pid}: seen by {'ps' if words else 'the agent' if row else 'nobody'} alone")
            continue
        ours = _as_ps(row, host)
        found += [
            f"{pid}: {name}: agent {ours[name]}, ps {words[name]}" for name in ours if ours[name] != words[name]
        ]
        found += _times(row)
    return found


def _ps() -> dict[int, dict[str, str]]:
    text = subprocess.run(("ps", "-eo", ",".join(FIELDS)), capture_output=True, text=True, check=True).stdout
    lines = (dict(zip(FIELDS, line.split(None, len(FIELDS) - 1), strict=True)) for line in text.splitlines()[1:])
    return {int(words["pid"]): words for words in lines}


def _as_ps(row: Any, host: Host) -> dict[str, str]:
    return {
        "ppid": str(row.parent),
        "pgid": str(row.process_group),
        "sid": str(row.session),
        "uid": str(host.uid(f"proc/{row.pid}")),
        "nlwp": str(row.threads),
        "vsz": str(row.memory_virtual // 1024),
        "rss": str((row.memory_anon + row.memory_shared) // 1024),
        "cputimes": str(round((row.cpu_user + row.cpu_system) * USER_HZ) // USER_HZ),
        "comm": row.command,
    }


def _times(row: Any) -> list[str]:
    """ps rounds CPU time to seconds; the kernel's own counts must be met within a tick."""
    with open(f"/proc/{row.pid}/stat", "rb") as file:
        words = file.read().rpartition(b")")[2].split()
    ticks = {"cpu_user": int(words[11]), "cpu_system": int(words[12])}
    return [
        f"{row.pid}: {name}: agent {getattr(row, name)} s, kernel {kernel} ticks"
        for name, kernel in ticks.items()
        if abs(getattr(row, name) * USER_HZ - kernel) > 1.001
    ]
