"""How quickly a target's job statistics are read, parsed and encoded, against PyYAML's C loader on the same text.

    python bench/lustre_speed.py [--entries 50000] [--yaml 500]

A file of that many entries (2.16: some 2.3 kB each) is written to a temporary folder. A process of its own runs the
collector on it as the agent does and encodes the message; its highest memory is told. In `usual` as many operations
happened as do on a large system, in `full` something stands in every line, `still` is read again unchanged. The
rival parses a part of the first file, in this process, and gives a list of dictionaries: nothing is encoded. Time is
CPU time, the best of three turns each. Exit code 1 if `usual` misses what is promised: 40 000 entries a second, 50
times the rival, 100 MiB. On a machine that is busy with something else, that it does.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import yaml

from jobsight.simulate.lustretarget import OST, Account, Meter
from jobsight.simulate.lustretext import DIALECTS, render

TARGET = "scratch-OST0000"
DATA = ("read", "write", "read_bytes", "write_bytes")
# As it was on a large system: of a hundred entries 29 are the system's, most of which asked once how much room there
# is; of the others all read and write, and some do something else besides.
SYSTEM = 0.29
BESIDES = {"getattr": 0.25, "setattr": 0.1, "punch": 0.25, "sync": 0.25}
PORTION = 1000
TURNS = 3
PROMISED, TIMES, MEMORY = 40_000, 50, 100 * 2**20
NOW = 1_767_571_200.0
RUN = """
import json, sys, time
from jobsight import catalogue
from jobsight.agent.run import run
from jobsight.agent.service import settle
from jobsight.clock import SystemClock
from jobsight.drivers.notebook import Notebook
from jobsight.host import Host
from jobsight.schema.message import Origin
from jobsight.schema.wire import compress, encode

root, folder, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
host, clock, found = Host(root), SystemClock(), []
host.keep(Notebook).folder = folder
settle()
for _ in range(times):
    began = time.process_time()
    message = run(catalogue.collector("lustreost"), None, host, Origin("c", "n", "b"), clock)
    line = encode(message)
    found.append(time.process_time() - began)
    assert message.status == "ok", message.error
    rows, size = len(message.rows.get("entry", ())), len(line)
    del message, line
# Not ru_maxrss: that is also what our parent had when it started us.
peak = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"seconds": found, "rows": rows, "line": size, "peak": peak}))
"""


def usual(chance: Random) -> tuple[str, ...]:
    if chance.random() < SYSTEM:
        return ("statfs",)
    return (*DATA, *(name for name, part in BESIDES.items() if chance.random() < part))


def full(chance: Random) -> tuple[str, ...]:  # noqa: ARG001
    return OST


def accounts(numbers: range, operations: Callable[[Random], tuple[str, ...]], chance: Random) -> list[Account]:
    made = []
    for number in numbers:
        one = Account(
            b"%d:%d:r%02dc%02d" % (11_000_000 + number, 10_000 + number % 500, number % 90, number % 70), NOW
        )
        for name in operations(chance):
            sized = name.endswith("_bytes")
            # Bytes of a request, or the microseconds it took.
            most = 2**24 if sized else 20_000
            meter = Meter().plus(chance.randrange(1, most), sized=sized, times=chance.randrange(1, 5000))
            one.meters[name] = meter.plus(chance.randrange(1, most // 16), sized=sized)
        made.append(one)
    return made


def written(folder: Path, operations: Callable[[Random], tuple[str, ...]], count: int) -> Path:
    root = folder / operations.__name__
    path = root / "proc/fs/lustre/obdfilter" / TARGET / "job_stats"
    path.parent.mkdir(parents=True)
    chance = Random(1)
    with path.open("wb") as file:
        file.write(b"job_stats:\n")
        for begin in range(0, count, PORTION):
            some = accounts(range(begin, min(begin + PORTION, count)), operations, chance)
            file.write(render(some, "ost", DIALECTS["2.16"]).removeprefix(b"job_stats:\n"))
    return root


def timed(root: Path, folder: Path, times: int) -> dict[str, list[float]]:
    command = [sys.executable, "-c", RUN, str(root), str(folder / f"state{root.name}{times}"), str(times)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def rival(root: Path, count: int) -> float:
    """Entries a second of PyYAML with libyaml."""
    text = (root / "proc/fs/lustre/obdfilter" / TARGET / "job_stats").read_bytes()
    end = -1
    for _ in range(count + 1):
        end = text.find(b"\n- job_id:", end + 1)
    part = text[:end] if end > 0 else text
    began = time.process_time()
    found = yaml.load(part, yaml.CSafeLoader)["job_stats"]
    return len(found) / (time.process_time() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=50_000)
    parser.add_argument("--yaml", type=int, default=500, help="entries for the rival")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first, second = written(folder, usual, given.entries), written(folder, full, given.entries)
        size = (first / "proc/fs/lustre/obdfilter" / TARGET / "job_stats").stat().st_size
        print(f"{given.entries} entries, {size / 1e6:.0f} MB")
        bad = False
        slow = max(rival(first, given.yaml) for _ in range(TURNS))
        print(f"{'PyYAML CSafeLoader':<20} {slow:>9.0f} entries/s")
        for word, root, times in (("usual", first, 1), ("full", second, 1), ("still", first, 3)):
            turns = [timed(root, folder / str(turn), times) for turn in range(TURNS)]
            found = min(turns, key=lambda one: one["seconds"][-1])
            rate = given.entries / found["seconds"][-1]
            kept = rate >= PROMISED and rate >= TIMES * slow and found["peak"] <= MEMORY  # type: ignore[operator]
            bad = bad or (word == "usual" and not kept)
            print(
                f"{word:<20} {rate:>9.0f} entries/s  {rate / slow:>6.0f} times  peak {found['peak'] / 2**20:.0f} MiB"  # type: ignore[operator]
                f"  message {found['line'] / 1e6:.1f} MB"  # type: ignore[operator]
            )
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
