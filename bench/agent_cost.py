"""What the agent costs on a node, as ratios against named rivals in the same run.

README.md beside this file tells what is measured and how to read it.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable
from typing import Any


def parts() -> dict[str, Callable[[Any], Iterable[Any]]]:
    """The benches by name, in the order they run."""
    from bench.cost import curve, endurance, nodewide, oneshot, residence, sampling

    return {
        "node": lambda kit: [sampling.measure(kit, sampling.HPC)],
        "full": lambda kit: [sampling.measure(kit, sampling.FULL)],
        "nodewide": lambda kit: [nodewide.measure(kit)],
        "memory": residence.measure,
        "endurance": lambda kit: [endurance.measure(kit)],
        "oneshot": oneshot.measure,
        "curve": curve.measure,
    }


def arguments() -> argparse.Namespace:
    accept = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    accept.add_argument("--only", metavar="PART,…", help=f"of {', '.join(parts())}; default: all")
    accept.add_argument("--rounds", type=int, default=15, help="samples of each contender that count")
    accept.add_argument("--samples", type=int, default=10_000, help="how many the part `endurance` takes")
    accept.add_argument(
        "--python", action="append", help="the agent's interpreter; given again: memory and start with that one too"
    )
    accept.add_argument("--process-exporter", metavar="FILE", help="default: prometheus-process-exporter on the path")
    accept.add_argument("--node-exporter", metavar="FILE", help="default: prometheus-node-exporter on the path")
    accept.add_argument("--json", action="store_true", help="print JSON")
    return accept.parse_args()


def kit(given: argparse.Namespace, folder: str) -> Any:
    from bench.cost import build, exporter
    from bench.cost.interpreter import interpreter
    from bench.cost.kit import Kit

    made = Kit(
        folder=folder,
        pythons=tuple(interpreter(path, folder) for path in given.python or [sys.executable]),
        farm=build.farm(folder),
        standin=build.standin(folder),
        process_exporter=exporter.found(given.process_exporter, "prometheus-process-exporter"),
        node_exporter=exporter.found(given.node_exporter, "prometheus-node-exporter"),
        rounds=given.rounds,
        samples=given.samples,
        cpu=max(os.sched_getaffinity(0)),
    )
    for name, why in (("standin", "rustc"), ("process_exporter", "that package"), ("node_exporter", "that package")):
        if getattr(made, name) is None:
            print(f"NOT COMPARED WITH THE {name.upper()}: {why} is not installed", file=sys.stderr)
    return made


def main() -> int:
    from bench.cost.result import plain, shown

    given = arguments()
    chosen = given.only.split(",") if given.only else list(parts())
    if unknown := set(chosen) - set(parts()):
        print(f"no part {', '.join(unknown)}; there are {', '.join(parts())}", file=sys.stderr)
        return 2
    # Being told to end is no reason to leave processes and groups behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tables = []
    with tempfile.TemporaryDirectory(prefix="agent-cost-") as folder:
        tools = kit(given, folder)
        for name in chosen:
            print(f"{name}:", file=sys.stderr, flush=True)
            for table in parts()[name](tools):
                tables.append(table)
                if not given.json:
                    print(shown(table), end="\n\n", flush=True)
    if given.json:
        print(json.dumps([plain(table) for table in tables], indent=1))
    return 1 if any(table.wrong for table in tables) else 0


if __name__ == "__main__":
    # The parts of this bench are found from the root of the repository, wherever it is started.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
