"""What it costs to sample every process: the agent against ps and psutil, on the same processes, in the same run.

README.md beside this file tells how to read the table.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from typing import Any

MIB = 2**20


def measure(processes: int, active: float, count: int) -> dict[str, Any]:
    """One farm, all contenders."""
    from bench.cost import check, contest, footprint
    from bench.cost.place import Place
    from bench.cost.program import Program
    from bench.cost.receiver import Receiver

    from jobsight.roster import YOUTH
    from jobsight.host import Host

    cpus = os.sched_getaffinity(0)
    cpu = max(cpus)
    started = (sys.executable, "-I", "-S", os.path.join(contest.HERE, "farm.py"), str(processes), str(active))
    with (
        tempfile.TemporaryDirectory(prefix="agent-cost-") as folder,
        Receiver() as receiver,
        Program(*started, cpus=cpus - {cpu} or cpus) as farm,
    ):
        pids = {int(pid) for pid in farm.answer().split()[1:]}
        born = time.monotonic()
        place = Place(folder, receiver.url)
        memory = {f"{sink} sink": footprint.footprint(place, sink) for sink in contest.AGENTS}
        unlike = check.differences(Host(), pids)
        # The agent looks at young processes more often; those of jobs live for hours.
        time.sleep(max(0.0, born + YOUTH - time.monotonic()))
        before, sent = len(place.lines()), receiver.bytes
        spent = contest.rounds(farm, place, cpu, count)
        lines, sent = place.lines()[before:], receiver.bytes - sent
        rows = [len(json.loads(line)["rows"]["pid"]) for line in lines]
        return {
            "processes": processes,
            "active": active,
            "sampled": statistics.median(rows),
            "cpu": {name: summary(costs) for name, costs in spent.items()},
            "raw": sum(map(len, lines)) / sum(rows),
            "compressed": sent / sum(rows),
            "memory": memory,
            "differences": unlike,
        }


def summary(costs: list[float]) -> dict[str, float]:
    """CPU seconds of one sample."""
    return {"median": statistics.median(costs), "mean": statistics.mean(costs), "least": min(costs)}


def table(result: dict[str, Any]) -> str:
    """For people."""
    cpu, sampled = result["cpu"], result["sampled"]
    lines = [
        f"{result['processes']} processes, {result['active']:g} % of them active; {sampled:.0f} sampled in all",
        "",
        f"{'CPU of one sample':<24}{'µs/process':>12}{'ms':>8}{'of ps':>8}{'least':>8}{'of psutil':>11}{'least':>8}",
    ]
    for name, cost in cpu.items():
        each, whole = cost["median"] / sampled * 1e6, cost["median"] * 1e3
        ratios = [cost[by] / cpu[rival][by] for rival in ("ps", "psutil") for by in ("median", "least")]
        shown = f"{ratios[0]:>8.3f}{ratios[1]:>8.3f}{ratios[2]:>11.3f}{ratios[3]:>8.3f}"
        lines.append(f"{name:<24}{each:>12.1f}{whole:>8.1f}{shown}")
    lines += ["", f"{'memory of the agent':<24}{'resident':>12}{'own':>8}{'peak':>8}   MiB"]
    for name, sizes in result["memory"].items():
        resident, own, peak = (sizes[part] / MIB for part in ("VmRSS", "RssAnon", "VmHWM"))
        lines.append(f"{name:<24}{resident:>12.1f}{own:>8.1f}{peak:>8.1f}")
    lines += ["", f"message: {result['raw']:.0f} bytes/process, compressed {result['compressed']:.1f}"]
    unlike = result["differences"]
    lines.append(f"against ps: {len(unlike)} differences" + "".join(f"\n  {text}" for text in unlike[:10]))
    return "\n".join(lines)


def main() -> int:
    accept = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    accept.add_argument("--processes", default="500,2000", help="sizes of the farm, as in 500,2000")
    accept.add_argument("--active", type=float, default=10, help="percent of the processes that work in each round")
    accept.add_argument("--rounds", type=int, default=20)
    accept.add_argument("--json", action="store_true", help="print JSON")
    given = accept.parse_args()
    results = []
    for size in given.processes.split(","):
        results.append(measure(int(size), given.active, given.rounds))
        if not given.json:
            print(table(results[-1]), end="\n\n", flush=True)
    if given.json:
        print(json.dumps(results, indent=1))
    return 1 if any(result["differences"] for result in results) else 0


if __name__ == "__main__":
    # The parts of this bench are found from the root of the repository, wherever it is started.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.exit(main())
