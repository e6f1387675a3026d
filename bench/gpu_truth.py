"""Is what we say of a card true, and what does saying it cost? Needs an NVIDIA card, PyTorch, root and cgroup v2.

    python bench/gpu_truth.py [--seconds 20] [--json]

Two jobs in control groups as Slurm makes them: one multiplies matrices on the card for a known time, one has no card.
Truth: the worker's own clock and its own count of memory, and the card's energy counter, read by nvidia-smi's library
at both ends. Rival for the cost: one call of `nvidia-smi` that asks for the same.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src"))

from jobsight.collect.gpu import Options as CardOptions
from jobsight.collect.gpu import gpu
from jobsight.collect.gpuprocess import gpuprocess
from jobsight.collect.process import Options, every_one
from jobsight.drivers.vendors import Cards
from jobsight.host import Host

GROUPS = "/sys/fs/cgroup/system.slice/slurmstepd.scope"
RIVAL = ("nvidia-smi", "--query-gpu=uuid,utilization.gpu,memory.used,power.draw,temperature.gpu,clocks.sm",
         "--format=csv,noheader")  # fmt: skip
# Joins its group, makes ready, says so, works when told for how long, and says how often it multiplied.
WORKER = """
import os, sys, time, json
open(sys.argv[1] + "/cgroup.procs", "w").write(str(os.getpid()))
import torch
x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
torch.cuda.synchronize()
print(json.dumps({"reserved": torch.cuda.memory_reserved()}), flush=True)
for line in sys.stdin:
    start, count = time.monotonic(), 0
    while time.monotonic() - start < float(line):
        for _ in range(10):
            y = x @ x
        torch.cuda.synchronize()
        count += 10
    print(json.dumps({"seconds": time.monotonic() - start, "count": count}), flush=True)
"""
IDLER = "import os,sys,time; open(sys.argv[1]+'/cgroup.procs','w').write(str(os.getpid())); time.sleep(600)"


class Worker:
    """A job with its group."""

    def __init__(self, number: int, script: str) -> None:
        self.group = f"{GROUPS}/job_{number}"
        os.makedirs(self.group, exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, self.group], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def told(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def begin(self, seconds: float) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        time.sleep(0.2)
        os.rmdir(self.group)


class Seen(NamedTuple):
    card: Any
    holders: list[Any]


def look(host: Host) -> Seen:
    """One sample, as the agent takes it."""
    host.keep(Cards).renew()
    every_one(host, Options())
    (card,) = (row for row in gpu(host, CardOptions()) if not row.parent)
    return Seen(card, list(gpuprocess(host)))


def cpu_of(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        words = file.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def truth(host: Host, worker: Worker, seconds: float) -> dict[str, Any]:
    """One stretch of work, sampled at its ends and every two seconds between."""
    first = look(host)
    worker.begin(seconds)
    samples = []
    end = time.monotonic() + seconds - 1
    while time.monotonic() < end:
        time.sleep(2)
        samples.append(look(host))
    done = worker.told()
    last = look(host)
    inside = [one.card for one in samples]
    (holder,) = last.holders
    return {
        "worked, s": done["seconds"],
        "busy, s": last.card.busy - first.card.busy,
        "energy by counter, J": last.card.energy - first.card.energy,
        "energy by our power, J": statistics.mean(card.power for card in inside) * done["seconds"],
        "job of the card": {card.job for card in inside},
        "how known": {card.held_by for card in inside},
        "memory of the process, MiB": holder.memory / 2**20,
        "utilization": statistics.mean(card.utilization for card in inside),
        "sm_active": statistics.mean(card.sm_active for card in inside if card.sm_active is not None),
        "share of the process": statistics.mean(h.utilization for s in samples for h in s.holders if h.utilization),
        "jobs of processes": {h.job for s in samples for h in s.holders},
    }


def price(host: Host, times: int = 20) -> dict[str, float]:
    """CPU seconds of one sample of all cards, ours and nvidia-smi's, in turn."""
    (pid,) = host.keep(Cards).pids()
    ours, rival = [], []
    for _ in range(times):
        before = cpu_of(pid) + time.process_time()
        for _ in range(5):
            host.keep(Cards).renew()
            host.keep(Cards).read(host)
        ours.append((cpu_of(pid) + time.process_time() - before) / 5)
        child = subprocess.Popen(RIVAL, stdout=subprocess.DEVNULL)
        _, _, used = os.wait4(child.pid, 0)
        child.returncode = 0
        rival.append(used.ru_utime + used.ru_stime)
    return {"ours, ms": 1e3 * statistics.median(ours), "nvidia-smi, ms": 1e3 * statistics.median(rival),
            "ratio": statistics.median(ours) / statistics.median(rival)}  # fmt: skip


def slowdown(host: Host, worker: Worker, rounds: int = 4, seconds: float = 5.0) -> float:
    """How much slower the work is while the card is asked once a second; by turns."""

    def rate(act: Callable[[], object]) -> float:
        worker.begin(seconds)
        end = time.monotonic() + seconds - 0.5
        while time.monotonic() < end:
            act()
            time.sleep(1)
        done = worker.told()
        return float(done["count"] / done["seconds"])

    pairs = [(rate(lambda: None), rate(lambda: look(host))) for _ in range(rounds)]
    return 1 - statistics.median(asked / alone for alone, asked in pairs)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    host = Host()
    worker, idler = Worker(4711, WORKER), Worker(4712, IDLER)
    try:
        reserved = worker.told()["reserved"]
        look(host)
        time.sleep(2)
        found = truth(host, worker, options.seconds)
        found["memory the program reserved, MiB"] = reserved / 2**20
        found["work lost while asked every second"] = slowdown(host, worker)
        found |= price(host)
    finally:
        worker.close()
        idler.close()
        host.keep(Cards).close()
    print(json.dumps(found, default=sorted) if options.json else "\n".join(f"{k:<40}{v}" for k, v in found.items()))
    wrong = found["job of the card"] != {"4711"} or found["jobs of processes"] != {"4711"}
    off = abs(found["energy by our power, J"] / found["energy by counter, J"] - 1)
    print(f"power integrated against the counter: {off:.1%} off")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
