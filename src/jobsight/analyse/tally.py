"""An hour of a cluster by whose, for which account, in which partition and by which command: what the history of
utilisation is made of.

A job is shared out among its commands by the CPU time of each, so that the parts add up to the job. Programs are not
stored: they are found when somebody asks, by the map that holds then.
"""

from collections.abc import Iterable
from typing import Any

from jobsight.analyse.job import LOCAL
from jobsight.analyse.late import HOUR
from jobsight.analyse.slice import cut
from jobsight.analyse.summary import source_of
from jobsight.schema.record import counter, label, record
from jobsight.schema.units import Seconds

# Columns of the rows that the statements below join: what is said of a job and one of its commands, or of a node.
NAMES = (
    "kind", "job_key", "source", "owner", "account", "partition", "command", "part", "given", "cluster", "node",
    "hour", "cpus", "down",
)  # fmt: skip
# A command with a smaller part of its job is counted with others that are not told.
SMALLEST = 0.002
# By who counts: the cards of a job are counted beside it.
SOURCES = ("gpu",)


@record
class Tally:
    """An hour, which begins at this row's time, of a cluster: what one owner's jobs used for one account, in one
    partition, by one command.
    """

    owner: str = label("Whose jobs; empty if unknown.")
    account: str = label("For which account; empty if unknown.")
    partition: str = label("In which partition; empty if unknown.")
    command: str = label("By which command; empty for what was not told.")
    used: Seconds = counter("CPU time used.")
    allocated: Seconds = counter("CPU time given to these jobs; what was used where nothing is given to a job alone.")
    gpu_used: Seconds | None = counter("Time in which cards computed, added up.", default=None)
    gpu_allocated: Seconds | None = counter("Time in which cards were held, added up.", default=None)


def labels(documents: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What is said of jobs, each once for each of its commands and for who counts it."""
    found = []
    for job in documents:
        given = _given(job)
        own = (job["owner"], job["account"], job["partition"])
        for source in (source_of(job["parts"]), *SOURCES):
            for command, part in parts(job["commands"]).items():
                found.append(
                    ("job", job["key"], source, *own, command, repr(part), given, None, None, None, None, None)
                )
    return found


def parts(commands: dict[str, float]) -> dict[str, float]:
    """Which part of a job each of its commands is. They add up to one; what is not told is the empty command."""
    whole = sum(commands.values())
    if whole <= 0:
        # Nothing was used that could be shared out: the job is what ran in it.
        return {min(commands, default=""): 1.0}
    found = {name: cpu / whole for name, cpu in commands.items() if cpu >= SMALLEST * whole}
    rest = 1.0 - sum(found.values())
    return found | ({"": found.get("", 0.0) + rest} if rest > 1e-12 else {})


def _given(job: dict[str, Any]) -> str | None:
    """CPUs given to a job on each of its nodes, as text: empty where a scheduler gives them and does not say how
    many, nothing where no scheduler does.
    """
    if job["scheduler"] in LOCAL:
        return None
    batch = job.get("batch") or {}
    many = batch.get("node_count") or len({part["node"] for part in job["parts"]})
    return repr(batch["cpus"] / many) if batch.get("cpus") and many else ""


def joined(since: float, until: float) -> str:
    """Pieces of usage with what is said of their jobs: `part` is that of a command of it. What a control group had
    used when its node was first looked at is of no hour that anybody knows.
    """
    return f"""(
SELECT piece.cluster, piece.node, piece.bucket, label.owner, label.account, label.partition, label.command,
  CAST(label.part AS FLOAT8) AS part, piece.cpu_time * (upto - early) AS used,
  CASE WHEN piece.source = 'gpu' THEN NULL WHEN label.given IS NULL THEN piece.cpu_time * (upto - early)
    ELSE coalesce(CAST(nullif(label.given, '') AS FLOAT8), piece.cpus) * over END AS allocated,
  piece.gpu_time * (upto - early) AS gpu_used, piece.gpus * over AS gpu_allocated
FROM {cut(since, until, HOUR)}
JOIN label ON label.kind = 'job' AND label.job_key = piece.job_key AND label.source = piece.source
WHERE piece.length > 0) AS work"""


def tallies(since: float, until: float) -> str:
    return f"""SELECT cluster, '', '', bucket * {HOUR!r}, owner, account, partition, command,
  coalesce(sum(used * part), 0), coalesce(sum(allocated * part), 0), sum(gpu_used * part), sum(gpu_allocated * part)
FROM {joined(since, until)} GROUP BY cluster, bucket, owner, account, partition, command"""
