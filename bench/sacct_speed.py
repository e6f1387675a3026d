"""How quickly what `sacct` printed becomes rows: half a million jobs, against a line at a time with the csv module.

    python bench/sacct_speed.py [--jobs 500000]

The text is made up, with the columns and the mixture of values a cluster has: arrays, GPUs, jobs that failed or still
run. Each job has its own row, those of its script and of what holds it open, and one in four a step. Both contenders
give rows with all columns turned into numbers, under the agent's settings of the garbage collector; the rival is what
one would write first: a dictionary for each line and a function for each value. It gets a tenth of the text. Time is
CPU time of this process. Exit code 1 if fewer than 20 000 jobs a second become rows.
"""

import argparse
import csv
import io
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from jobsight.agent.service import settle
from jobsight.collect import slurmjob
from jobsight.formats import sacct, slurmtext

PORTION = 10_000
PROMISED = 20_000
MARK = slurmtext.mark()
STATES = (
    ["COMPLETED"] * 80 + ["FAILED"] * 8 + ["CANCELLED by 1042"] * 5 + ["TIMEOUT"] * 4 + ["OUT_OF_MEMORY", "RUNNING"]
)
EPOCH = 1_794_000_000


def job(number: int, dice: random.Random) -> Iterator[dict[str, str]]:
    """The rows of one job: itself, its script, what holds it open, and some steps."""
    cpus = dice.choice((1, 1, 2, 4, 16, 128))
    memory = f"{cpus * dice.choice((2, 4, 8))}G"
    gpus = dice.choice((0, 0, 0, 1, 4))
    extra = f",gres/gpu:a100={gpus},gres/gpu={gpus}" if gpus else ""
    tres = f"billing={cpus},cpu={cpus}{extra},mem={memory},node=1"
    state = dice.choice(STATES)
    submit = EPOCH + number // 3
    start = submit + dice.randrange(20_000)
    elapsed = dice.randrange(1, 90_000)
    end = "Unknown" if state == "RUNNING" else str(start + elapsed)
    name = f"{number - number % 100}_{number % 100}" if number % 4 == 0 else str(number)
    user = dice.randrange(800)
    whole = dict.fromkeys(sacct.COLUMNS, "") | {
        "JobIDRaw": str(number), "State": state, "JobID": name, "User": f"u{user}", "UID": str(2000 + user),
        "Group": "users", "GID": "100", "Account": f"nn{user % 90}k", "Partition": dice.choice(("normal", "gpu")),
        "QOS": "normal", "JobName": dice.choice(("relax", "train|eval", "sim\n2", f"run-{number}")),
        "WorkDir": f"/cluster/work/u{user}/p{number % 40}", "Submit": str(submit), "Eligible": str(submit),
        "Start": str(start), "End": end, "ElapsedRaw": str(elapsed), "Suspended": "00:00:00", "TimelimitRaw": "2880",
        "ExitCode": "1:0" if state == "FAILED" else "0:0", "DerivedExitCode": "0:0", "Reason": "None",
        "Priority": str(20_000 + number % 5000), "NNodes": "1", "NodeList": f"c{dice.randrange(60):02d}-{user % 20}",
        "ReqCPUS": str(cpus), "ReqMem": memory, "ReqNodes": "1", "ReqTRES": tres, "AllocTRES": tres,
        "UserCPU": lasted(cpus * elapsed * dice.random()), "SystemCPU": lasted(elapsed * dice.random() / 50),
        "TotalCPU": lasted(cpus * elapsed * dice.random()), "DBIndex": str(number + 77_000),
    }  # fmt: skip
    yield whole
    for step in ("batch", "extern", *map(str, range(dice.choice((0, 0, 0, 1))))):
        yield whole | {
            "JobIDRaw": f"{number}.{step}", "JobID": f"{name}.{step}", "JobName": step,
            "State": state.partition(" ")[0],
            **dict.fromkeys(("User", "UID", "Group", "GID", "Partition", "QOS", "WorkDir", "ReqMem", "ReqTRES"), ""),
            "NTasks": "1", "MaxRSS": str(dice.randrange(2**20) * 4096), "AveRSS": str(dice.randrange(2**20) * 4096),
            "MaxRSSNode": "c01-1", "Layout": "Unknown", "TimelimitRaw": "", "Priority": "",
            "TRESUsageInTot": f"cpu=00:10:01,energy=0,fs/disk={dice.randrange(2**34)},mem=8192,pages=0,vmem=8192",
            "TRESUsageOutTot": f"energy=0,fs/disk={dice.randrange(2**30)}",
        }  # fmt: skip


def lasted(seconds: float) -> str:
    days, rest = divmod(int(seconds), 86400)
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{clock}" if days else f"{clock[3:]}.{int(seconds % 1 * 1000):03d}" if rest < 3600 else clock


def ours(rows: list[dict[str, str]]) -> str:
    head = "".join(f"{name}{MARK}" for name in sacct.COLUMNS)
    return f"{head}\n" + "".join("".join(f"{value}{MARK}" for value in row.values()) + "\n" for row in rows)


def theirs(rows: list[dict[str, str]]) -> str:
    made = io.StringIO()
    written = csv.writer(made, delimiter="|")
    written.writerow(sacct.COLUMNS)
    written.writerows(row.values() for row in rows)
    return made.getvalue()


def by_columns(text: str) -> int:
    return sum(1 for _ in slurmjob.turned(text, lambda _: None))


def by_lines(text: str) -> int:
    """The rival: the same values of each line, one after the other."""
    rows = []
    for line in csv.DictReader(io.StringIO(text), delimiter="|"):
        number, _, step = line["JobIDRaw"].partition(".")
        row: dict[str, Any] = {"scheduler": "slurm", "job": number, "step": step or None}
        read = {name: convert(line[name]) for name, convert in sacct.READERS.items() if name in line}
        for field, (source, part) in sacct.SOURCES.items():
            if source in read:
                row[field] = read[source] if part is None else read[source][part]
        row["requested"], row["allocated"] = line["ReqTRES"] or None, line["AllocTRES"] or None
        rows.append(slurmjob.Batchjob(**row))
    return len(rows)


def measured(work: Callable[[str], int], text: str) -> tuple[int, float]:
    began = time.process_time()
    count = work(text)
    return count, time.process_time() - began


def main() -> int:
    accept = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    accept.add_argument("--jobs", type=int, default=500_000)
    jobs = accept.parse_args().jobs
    settle()
    dice = random.Random(5)
    mine = rival = 0.0
    rows = rival_jobs = size = 0
    for first in range(0, jobs, PORTION):
        portion = [row for number in range(first, min(first + PORTION, jobs)) for row in job(number + 1, dice)]
        text = ours(portion)
        size += len(text)
        count, seconds = measured(by_columns, text)
        assert count == len(portion), f"{count} rows of {len(portion)}"
        rows, mine = rows + count, mine + seconds
        if first % (10 * PORTION) == 0:
            count, seconds = measured(by_lines, theirs(portion))
            assert count == len(portion), f"{count} rows of {len(portion)}"
            rival, rival_jobs = rival + seconds, rival_jobs + min(PORTION, jobs - first)
    quick, slow = jobs / mine, rival_jobs / rival
    print(f"text        {jobs} jobs, {rows} rows, {size / 1e6:.0f} MB")
    print(f"columns     {quick:10.0f} jobs/s {rows / mine:10.0f} rows/s")
    print(f"csv, dicts  {slow:10.0f} jobs/s")
    print(f"ratio       {quick / slow:10.2f}")
    print(f"promised    {PROMISED:10d} jobs/s: {'kept' if quick >= PROMISED else 'NOT KEPT'}")
    return 0 if quick >= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
