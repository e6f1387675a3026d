"""What a scrape of the exporter costs with 1, 100 and 500 jobs on the node, against node_exporter in the same run.

The jobs' control groups are real, made in this machine's cgroup file system and removed afterwards. README.md beside
this file tells how to read it.
"""

import argparse
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

JOBS = (1, 100, 500)
BOTH, THEIRS, OURS = "exporter, both sets of names", "exporter, batchjob names only", "exporter, our names only"
SETS: dict[str, tuple[str, ...]] = {BOTH: (), THEIRS: ("--no-records",), OURS: ("--no-batchjob",)}
RIVAL = "node_exporter"
MIB = 2**20
# MiB that the exporter may take with this many jobs, over plain HTTP.
RESIDENT, AT = 25.0, 100
# How much more each of the last 400 jobs may cost than each of the first 99.
STEEPER = 1.25


def arguments() -> argparse.Namespace:
    accept = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    accept.add_argument("--rounds", type=int, default=15, help="scrapes of each contender that count")
    accept.add_argument("--python", default=sys.executable, help="the exporter's interpreter")
    accept.add_argument("--node-exporter", metavar="FILE", help="default: prometheus-node-exporter on the path")
    accept.add_argument("--json", action="store_true", help="print JSON")
    return accept.parse_args()


def measure(given: argparse.Namespace, folder: str) -> Iterator[Any]:
    from bench.cost import contest, exporter
    from bench.cost.exporter import Exporter
    from bench.cost.footprint import memory
    from bench.cost.groups import Groups
    from bench.cost.interpreter import interpreter
    from bench.cost.result import Line, Table, ratio

    python = interpreter(given.python, folder)
    # One arena of malloc for all threads, as in the unit that is shipped.
    os.environ.update(python.environment, MALLOC_ARENA_MAX="1")
    rival = exporter.found(given.node_exporter, "prometheus-node-exporter")
    if rival is None:
        print("NOT COMPARED WITH NODE_EXPORTER: that package is not installed", file=sys.stderr)
    cpu = max(os.sched_getaffinity(0))
    spent: dict[int, dict[str, Any]] = {}
    for jobs in JOBS:
        census = contest.Census()
        with ExitStack() as stack:
            groups = stack.enter_context(Groups())
            for number in range(jobs):
                groups.job(number, 1000)
            running = {
                name: stack.enter_context(Exporter(cpu, python.path, "-m", "jobsight", "exporter", *options))
                for name, options in SETS.items()
            }
            if rival:
                running[RIVAL] = stack.enter_context(Exporter(cpu, rival))
            takers: dict[str, Callable[[], float]] = {name: one.sample for name, one in running.items()}
            spent[jobs] = contest.rounds(takers, given.rounds, lambda: None, census)
            sizes = {name: memory(one.pid)["VmRSS"] / MIB for name, one in running.items()}
            pages = {name: one.scrape() for name, one in running.items()}
            secure = over_tls(python.path, folder)
        promise = RESIDENT if jobs == AT else None
        lines = [line for name in SETS for line in ratio(spent[jobs], name, RIVAL)]
        lines += [Line(f"{name}: resident", sizes[name], promise, unit="MiB") for name in SETS]
        lines += [Line(f"{BOTH}: resident, over TLS", secure, unit="MiB")]
        if rival:
            lines += [Line(f"{RIVAL}: resident", sizes[RIVAL], unit="MiB")]
            lines += [Line(f"{BOTH} / {RIVAL}: resident", sizes[BOTH] / sizes[RIVAL])]
        if jobs == JOBS[-1]:
            lines += [Line(f"{name}: a later job / an early one", steeper(spent, name), STEEPER) for name in SETS]
        conditions = [
            f"{jobs} jobs with a step and a task each, in {groups.kind}; Python: {python}; {given.rounds} rounds",
            ", ".join(f"{name}: {size / 1024:.0f} KiB a page" for name, size in pages.items()),
        ]
        wrong = [f"{name}: a page of {pages[name]} bytes" for name in SETS if pages[name] < 1000]
        yield Table(f"Scrapes with {jobs} jobs", conditions, spent[jobs], lines, census, wrong)


def steeper(spent: dict[int, dict[str, Any]], name: str) -> float:
    """What each job costs from the second count to the last, over what each costs from the first to the second."""
    few, some, many = (spent[jobs][name].median for jobs in JOBS)
    return float(((many - some) / (JOBS[2] - JOBS[1])) / ((some - few) / (JOBS[1] - JOBS[0])))


def over_tls(python: str, folder: str) -> float:
    """MiB of an exporter that speaks HTTPS, after some scrapes."""
    from bench.cost.exporter import free_port
    from bench.cost.footprint import memory

    key, certificate, config = (os.path.join(folder, name) for name in ("key.pem", "own.pem", "web.yaml"))
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=bench"
    subprocess.run((*command.split(), "-keyout", key, "-out", certificate), check=True, capture_output=True)
    with open(config, "w") as file:
        json.dump({"tls_server_config": {"cert_file": certificate, "key_file": key}}, file)
    port = free_port()
    program = subprocess.Popen(
        (python, "-m", "jobsight", "exporter", f"--listen=127.0.0.1:{port}", f"--web-config-file={config}"),
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert program.stdout
        program.stdout.readline()
        trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # A certificate made a moment ago for nobody.
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        for _ in range(5):
            link = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=trust)
            link.request("GET", "/metrics")
            link.getresponse().read()
            link.close()
        return memory(program.pid)["VmRSS"] / MIB
    finally:
        program.kill()
        program.communicate()


def main() -> int:
    from bench.cost.result import plain, shown

    given = arguments()
    # Being told to end is no reason to leave processes and groups behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tables = []
    with tempfile.TemporaryDirectory(prefix="exporter-cost-") as folder:
        for table in measure(given, folder):
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
