"""Resident memory of a real agent that samples the farm, with every collector on."""

import os
import signal
import subprocess
import sys
import time

from bench.cost.place import Place

SAMPLES = 6
EVERY = 0.5


def footprint(place: Place, sink: str) -> dict[str, int]:
    """`VmRSS` and its parts in bytes, after a few samples."""
    command = [sys.executable, "-m", "jobsight", "agent", "--settings", place.settings(sink, EVERY, alone=False)]
    agent = subprocess.Popen(command)
    try:
        time.sleep(1 + SAMPLES * EVERY)
        if agent.poll() is not None:
            raise SystemExit(f"{' '.join(command)}: exit code {agent.returncode}")
        return memory(agent.pid)
    finally:
        if agent.poll() is None:
            os.kill(agent.pid, signal.SIGTERM)
        agent.wait(60)


def memory(pid: int) -> dict[str, int]:
    """Sizes from lines such as `VmRSS:     14772 kB`."""
    sizes = {}
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            name, _, rest = line.partition(":")
            if name in ("VmHWM", "VmRSS", "RssAnon", "RssFile"):
                sizes[name] = int(rest.split()[0]) * 1024
    return sizes
