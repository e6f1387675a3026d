"""Resident memory of a real agent with every collector on."""

import os
import signal
import subprocess
import time

from bench.cost.farm import say
from bench.cost.interpreter import Interpreter

SAMPLES = 8
EVERY = 0.5
PARTS = ("VmHWM", "VmRSS", "RssAnon", "RssFile")


def footprint(python: Interpreter, settings: str, environment: dict[str, str]) -> dict[str, int]:
    """`VmRSS` and its parts in bytes, after a few samples."""
    command = (python.path, "-m", "jobsight", "agent", "--settings", settings)
    agent = subprocess.Popen(command, env={**os.environ, **python.environment, **environment}, start_new_session=True)
    try:
        time.sleep(1.5 + SAMPLES * EVERY)
        if agent.poll() is not None:
            raise SystemExit(f"{' '.join(command)}: exit code {agent.returncode}")
        sizes = memory(agent.pid)
        say(f"memory: {sizes['VmRSS'] / 2**20:.1f} MiB, {python}")
        return sizes
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
            if name in PARTS:
                sizes[name] = int(rest.split()[0]) * 1024
    return sizes
