"""How a job ended, or why it waits, as its scheduler says it, in a sentence. Pure."""

from jobsight.analyse.batch import Batch
from jobsight.formats.number import duration

SENTENCES = {
    "COMPLETED": "It completed",
    "FAILED": "It failed",
    "CANCELLED": "It was cancelled",
    "TIMEOUT": "It reached its time limit",
    "OUT_OF_MEMORY": "It was killed for using more memory than it was given",
    "NODE_FAIL": "It was lost when a node failed",
    "PREEMPTED": "It had to make room for another job",
    "BOOT_FAIL": "It could not start: a node did not boot",
    "DEADLINE": "It could not end before its deadline",
    "REQUEUED": "It was sent back to the queue: its next run is listed on its own",
}


def outcome(batch: Batch) -> str:
    """Empty for one that runs."""
    if batch.waits:
        return waiting(batch)
    if not batch.over:
        return ""
    said = SENTENCES.get(batch.state, f"Its scheduler calls it {batch.state}")
    if batch.state == "TIMEOUT" and batch.time_limit is not None:
        said += f" of {duration(batch.time_limit)}"
    if batch.state == "CANCELLED" and batch.start is None:
        said += " before it began"
    return f"{said}{ended_by(batch)}."


def ended_by(batch: Batch) -> str:
    """Exit code and signal, where there is something to say. 125 is how Slurm writes that memory ran out."""
    found = []
    if batch.exit_code:
        found.append(f"exit code {batch.exit_code}")
    if batch.exit_signal and not (batch.exit_signal == 125 and batch.state == "OUT_OF_MEMORY"):
        found.append(f"signal {batch.exit_signal}")
    return f", {' and '.join(found)}" if found else ""


def waiting(batch: Batch) -> str:
    said = "It waits"
    if batch.reason:
        said += f" ({batch.reason})"
    if batch.dependency:
        said += f" for {batch.dependency}"
    return f"{said}."
