"""Findings on clusters whose truth is known: precision and recall of each, and how long a week of jobs takes.

    python -m bench.findings_truth [--seeds 2,3] [--nodes 48] [--days 2] [--every 300] [--speed 14000] [--docs]

The first part makes up a cluster for each seed, every misfit planted and everything else healthy, has it sampled,
and sets what is found at the usual thresholds against what was planted. The second part asks for all findings over
that many jobs of a week, read from the store as its summaries have them; its rival is a loop over the same jobs that
only turns each into figures and judges nothing. `--docs` writes the table into docs/operate/findings.md. Ends with 1
if a precision or a recall is below 0.95, or a week takes more than two seconds of CPU time.
"""

import argparse
import gc
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from jobsight.analyse.judge import judge
from jobsight.analyse.keeper import open_store
from jobsight.analyse.recount import recount
from jobsight.analyse.scene import scene
from jobsight.analyse.slice import roll
from jobsight.analyse.summary import summary
from jobsight.simulate.cluster import Cluster, fill
from jobsight.simulate.plan import Wish
from jobsight.simulate.sampler import ALL, Sampling
from jobsight.simulate.score import Score, scores, table
from jobsight.store.protocol import JobQuery

TARGET, SECONDS = 0.95, 2.0
WEEK = 7.0
HOUR = 3600.0
# What findings do not look at.
SPARED = ("network", "agent", "disk", "memory")
# For the second part: what each job did, but seldom looked at.
SELDOM = ("hardware", "load", "pressure", "cgroup", "gpu", "gpucard", "slurmjob", "slurmnode")
PAGE = Path(__file__).parent.parent / "docs" / "operate" / "findings.md"


def truth(seed: int, nodes: int, days: float, every: float) -> list[Score]:
    """Of one cluster."""
    collectors = tuple(name for name in ALL if name not in SPARED)
    cluster = Cluster(Wish(seed=seed, nodes=nodes, days=days), Sampling(every, collectors))
    with tempfile.TemporaryDirectory() as path:
        store = open_store(os.path.join(path, "store"))
        fill(cluster, store)
        end = cluster.plan.end
        recount(store)
        roll(store, end + 2 * HOUR)
        seen = scene(store, cluster.plan.wish.begin, end, end)
        found = scores(cluster.plan, seen, judge(seen))
        store.close()
    print(f"seed {seed}: {len(seen.cases)} jobs and sessions", file=sys.stderr, flush=True)
    return found


def summed(several: Iterable[list[Score]]) -> list[Score]:
    """Those of several clusters as one."""
    return [
        Score(
            some[0].code,
            sum(one.planted for one in some),
            sum(one.found for one in some),
            sum(one.right for one in some),
            tuple(name for one in some for name in one.missed),
            tuple(name for one in some for name in one.wrong),
        )
        for some in zip(*several, strict=True)
    ]


def speed(jobs: int) -> float:
    """Seconds for all findings over a week of so many jobs, and beside it what reading them alone takes."""
    # As the server has it.
    gc.set_threshold(50_000, 20, 50)
    # So many nodes have about so many jobs in a week.
    cluster = Cluster(Wish(seed=5, nodes=max(12, round(jobs / 118)), days=WEEK, sets=4), Sampling(2 * HOUR, SELDOM))
    with tempfile.TemporaryDirectory() as path:
        store = open_store(os.path.join(path, "store"))
        fill(cluster, store)
        begin, end = cluster.plan.wish.begin, cluster.plan.end
        roll(store, end + 2 * HOUR)
        store.compact(end + 86400.0)
        ours, count = _best(lambda: len(judge(scene(store, begin, end, end))))
        query = JobQuery(since=begin, until=end, limit=10**9)
        rival, many = _best(lambda: len([summary(document, end) for document in store.jobs(query, end)]))
        store.close()
    print(
        f"{many} jobs of a week: {count} findings in {ours:.2f} s of CPU time; their figures alone take {rival:.2f} s"
    )
    print(f"ratio {ours / rival:.1f}, {1e6 * ours / many:.0f} µs a job")
    return ours


def _best(act: Callable[[], int]) -> tuple[float, int]:
    """Of some times the quickest, in CPU time: all threads together, whatever else the machine does."""
    taken = []
    for _ in range(5):
        began = time.process_time()
        count = act()
        taken.append((time.process_time() - began, count))
    return min(taken)


def write(text: str) -> None:
    """Into the page, in the place of the last one."""
    marked = re.sub(
        r"(?s)(<!-- bench: findings_truth -->\n).*?(<!-- end -->)", rf"\g<1>{text}\n\g<2>", PAGE.read_text()
    )
    PAGE.write_text(marked)


def main() -> int:
    accept = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    accept.add_argument("--seeds", default="2,3", help="clusters, by number")
    accept.add_argument("--nodes", type=int, default=48)
    accept.add_argument("--days", type=float, default=2.0)
    accept.add_argument("--every", type=float, default=300.0, help="seconds between samples")
    accept.add_argument("--speed", type=int, default=14000, help="jobs of the week; 0 to leave that out")
    accept.add_argument("--docs", action="store_true", help="write the table into docs/operate/findings.md")
    given = accept.parse_args()
    found = summed(truth(int(seed), given.nodes, given.days, given.every) for seed in given.seeds.split(","))
    print(table(found))
    for one in found:
        if one.missed or one.wrong:
            print(f"{one.code}: missed {', '.join(one.missed) or 'none'}; wrong {', '.join(one.wrong) or 'none'}")
    if given.docs:
        write(table(found))
    low = [one.code for one in found if min(one.precision or 1.0, one.recall or 1.0) < TARGET]
    slow = bool(given.speed) and speed(given.speed) > SECONDS
    print(f"precision and recall of {TARGET}: {'MISSED by ' + ', '.join(low) if low else 'held'}")
    if given.speed:
        print(f"a week within {SECONDS:g} s: {'MISSED' if slow else 'held'}")
    return int(bool(low) or slow)


if __name__ == "__main__":
    sys.exit(main())
