"""The exporter on a node of a real Slurm: jobs by number, whose they are, and what they used."""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest

from jobsight.compat.batchjob import unique_id
from tests.conftest import Program, answers, free_port, wait_until
from tests.integration.slurm import Slurm, running_slurm  # noqa: F401

pytestmark = pytest.mark.slow

BUSY = "exec /usr/bin/python3 -I -S -c 'while True: pass'"


def scraped(url: str) -> str:
    with urlopen(url, timeout=30) as answer:
        found: str = answer.read().decode()
    return found


def labels(text: str, name: str, job: str) -> dict[str, str]:
    """Of the job's own series of this name."""
    for marks in re.findall(rf"^{name}{{(.*)}} \S+$", text, re.MULTILINE):
        found = dict(re.findall(r'(\w+)="(.*?)"', marks))
        if found["jobid"] == job:
            return found
    return {}


def value(text: str, name: str, job: str) -> float:
    (found,) = re.findall(rf'^{name}{{.*jobid="{job}".*}} (\S+)$', text, re.MULTILINE)
    return float(found)


def test_a_job_is_shown_with_its_owner_while_it_runs_and_not_after(
    slurm: Slurm, start: Callable[..., Program], tmp_path: Path
) -> None:
    port, props = free_port(), tmp_path / "props"
    props.mkdir()
    # No prolog here: as root, the job's environment tells.
    start("exporter", "--listen", f"127.0.0.1:{port}", f"--collector.slurm.job.props.path={props}")
    url = f"http://127.0.0.1:{port}/metrics?collect=slurm_job"
    wait_until(lambda: answers(f"http://127.0.0.1:{port}/"))
    job = slurm.submit("alice", BUSY, "--ntasks=1", "--mem=100M", "--account=physics")
    name = "batchjob_slurm_job_cpu_total_seconds"
    wait_until(lambda: labels(scraped(url), name, job).get("jobuser"), 60, "the job is known")
    text = scraped(url)
    found = labels(text, name, job)
    nodes = slurm.run("squeue", "-h", "-o", "%N", "-j", job).strip()
    assert (found["batch"], found["jobuser"], found["jobaccount"]) == ("slurm", "alice", "physics")
    assert found["jobuuid"] == unique_id(job, "alice", "physics", nodes)
    assert value(text, "batchjob_slurm_job_memory_total_bytes", job) == 100 * 2**20
    used = value(text, name, job)
    wait_until(lambda: value(scraped(url), name, job) > used + 0.5, 60, "its CPU time grows")
    # What the administrator's prolog says comes first.
    (props / job).write_text(f"ada chemistry {nodes}\n")
    assert labels(scraped(url), name, job)["jobuser"] == "ada"
    slurm.run("scancel", job)
    wait_until(lambda: not labels(scraped(url), name, job), 60, "the job is gone")
