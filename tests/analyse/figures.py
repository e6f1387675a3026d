"""Jobs made by hand for what is answered about them."""

from itertools import pairwise
from typing import Any

from msgspec import structs

from jobsight.analyse.balance import balance
from jobsight.analyse.batch import Batch
from jobsight.analyse.ending import ending
from jobsight.analyse.rightsize import Run
from jobsight.analyse.summary import Summary, summary
from jobsight.analyse.track import Interval, Track
from jobsight.simulate.truth import Truth

GIB = 2**30
EVERY = 60.0


def part(node: str = "n1", **changes: Any) -> dict[str, Any]:
    """An hour on a node with eight CPUs and 64 GiB, half of each used."""
    plain = {
        "node": node, "source": "cgroup", "time": 3600.0, "alive": False, "seconds": 3600.0, "covered": 3600.0,
        "cpu_time": 14400.0, "cpus": 8, "memory": 32 * GIB, "memory_seconds": 3600.0 * 32 * GIB,
        "memory_covered": 3600.0, "memory_peak": 32 * GIB, "memory_limit": 64 * GIB, "threads_peak": 9,
        "processes_peak": 2, "read": 0, "written": 0, "oom_kills": 0, "began": 0.0, "every": EVERY,
        "commands": {"work": 14400.0},
    }  # fmt: skip
    return plain | changes


def document(*parts: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A job of Slurm's of which its scheduler says nothing."""
    plain = {
        "key": "fox.slurm.7.0", "cluster": "fox", "scheduler": "slurm", "id": "7", "scope": "", "owner": "alice",
        "started": 0.0, "seen": 3600.0, "every": EVERY, "commands": {"work": 14400.0},
        "parts": list(parts) or [part()],
    }  # fmt: skip
    return plain | changes


def job(*parts: dict[str, Any], batch: Batch | None = None, **changes: Any) -> Summary:
    """Its figures; `changes` are made to those."""
    made = summary(document(*parts), 1e9)
    return structs.replace(made, batch=batch, **changes)


def steady(cores: float, seconds: float = 3600.0, node: str = "n1", begin: float = 0.0) -> Track:
    """The same use from sample to sample."""
    count = round(seconds / EVERY)
    return {node: [Interval(begin + i * EVERY, begin + (i + 1) * EVERY, cores, 0.0, 0.0) for i in range(count)]}


def ran(figures: Summary, track: Track, *parts: dict[str, Any], cards: Any = ()) -> Run:
    return Run(figures, ending(figures), track, balance(list(parts) or [part()], "cgroup"), list(cards))


def observed(truth: Truth, every: float) -> Track:
    """A simulated job as perfect samples show it; each node samples at a second of its own."""
    found: Track = {}
    for number, place in enumerate(truth.places):
        first = truth.start + (number * 7.3 + 1) % every
        times = [truth.start, *(first + turn * every for turn in range(int((truth.end - first) // every) + 1))]
        levels = [(time, place.curve.at(time)) for time in times if time < truth.end]
        found[place.node.name] = [
            Interval(a, b, (y.cpu - x.cpu) / (b - a), (y.read - x.read) / (b - a), (y.written - x.written) / (b - a))
            for (a, x), (b, y) in pairwise(levels)
        ]
    return found
