"""Is the energy we make of a card's readings what its own counter says? Needs an NVIDIA card and PyTorch.

    python bench/gpu_energy.py [--seconds 90] [--json]

A card computes and rests by turns of five seconds, and is read every second by the collector `gpu`. Truth: the card's
counter, read by the maker's library in this process at both ends. Against it: what `analyse.meter` makes of the
counter, and of power alone, as it would of a card that counts nothing; of all readings, and of
some.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import time
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src"))

from jobsight.analyse.meter import Reading, carded
from jobsight.collect.gpu import Options, gpu
from jobsight.drivers.vendors import Cards
from jobsight.host import Host

WORKER = """
import sys, time, torch
x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
torch.cuda.synchronize()
print("ready", flush=True)
while True:
    begun = time.monotonic()
    while time.monotonic() - begun < 5:
        for _ in range(10):
            y = x @ x
        torch.cuda.synchronize()
    time.sleep(5)
"""
EVERY = 1.0


def counter() -> Any:
    """A function that gives joules of the first card, by the maker's library."""
    library = ctypes.CDLL("libnvidia-ml.so.1")
    library.nvmlInit_v2()
    device = ctypes.c_void_p()
    library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))

    def read() -> float:
        found = ctypes.c_ulonglong()
        if library.nvmlDeviceGetTotalEnergyConsumption(device, ctypes.byref(found)):
            raise SystemExit("this card has no energy counter")
        return found.value / 1000

    return read


def sampled(seconds: float) -> tuple[list[Reading], float]:
    """Readings by the collector, and what the card took from the first to the last of them."""
    host, joules = Host("/"), counter()
    found: list[Reading] = []
    first = last = 0.0
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        host.keep(Cards).renew()
        row = next(iter(gpu(host, Options())))
        last = joules()
        first = first or last
        found.append(Reading(time.monotonic(), row.energy, row.power, row.power_limit))
        time.sleep(max(0.0, EVERY - (time.monotonic() - found[-1].time)))
    return found, last - first


def compared(readings: list[Reading], truth: float) -> list[dict[str, Any]]:
    rows = []
    for step in (1, 5, 15):
        # The last one always, so that both ends are those of the truth.
        some = [*readings[:-1:step], readings[-1]]
        for name, looks in (("counter", some), ("power", [look._replace(energy=None) for look in some])):
            found = sum(span.energy for span in carded(looks))
            rows.append({"by": name, "every": step * EVERY, "joules": found, "against_counter": found / truth})
    return rows


def main() -> None:
    accept = argparse.ArgumentParser()
    accept.add_argument("--seconds", type=float, default=90.0)
    accept.add_argument("--json", action="store_true")
    given = accept.parse_args()
    with subprocess.Popen([sys.executable, "-c", WORKER], stdout=subprocess.PIPE, text=True) as worker:
        try:
            if worker.stdout is not None:
                worker.stdout.readline()
            readings, truth = sampled(given.seconds)
        finally:
            worker.kill()
    rows = compared(readings, truth)
    if given.json:
        print(json.dumps({"truth": truth, "readings": len(readings), "rows": rows}))
        return
    print(f"{len(readings)} readings; the card's counter: {truth:.0f} J")
    for row in rows:
        print(f"{row['by']:8} every {row['every']:4.0f} s  {row['joules']:9.0f} J  {row['against_counter']:.4f}")


if __name__ == "__main__":
    main()
