"""Real jobs of a real Slurm, and what is answered about them: one that uses one core, one that eats memory, one that
writes all the time.
"""

import json
import os
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

import pytest

from tests.conftest import Program, answers, free_port, wait_until
from tests.integration.slurm import Slurm, running_slurm  # noqa: F401

pytestmark = pytest.mark.slow

ALONE = "import time; end = time.time() + 15\nwhile time.time() < end: pass"
GROWING = """\
import time
held = []
while True:
    held.append(bytearray(b'x' * (8 << 20)))
    time.sleep(0.5)
"""
WRITING = """\
import os, time
end, block = time.time() + 15, b'x' * (32 << 20)
file = os.open('written', os.O_WRONLY | os.O_CREAT)
while time.time() < end:
    os.pwrite(file, block, 0)
    os.fsync(file)
"""


def python(text: str) -> str:
    """A script that stays a little when its program has ended: what the kernel did to it is in its control group."""
    return f"cd $(mktemp -d)\npython3 - <<'E'\n{text}\nE\nsleep 3"


def test_real_jobs_get_the_verdicts_they_deserve(
    slurm: Slurm, start: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "SLURM_CONF", str(slurm.conf))
    port = free_port()
    start("up", "--listen", f"127.0.0.1:{port}", "--every", "1")
    url = f"http://127.0.0.1:{port}"
    wait_until(lambda: answers(f"{url}/health"), what="the server answers")
    jobs = {
        "alone": slurm.submit("alice", python(ALONE), "-c4", "--mem=100M"),
        "growing": slurm.submit("bob", python(GROWING), "--mem=80M"),
        "writing": slurm.submit("alice", python(WRITING), "-c4", "--mem=200M"),
    }

    def found(number: str) -> dict[str, Any]:
        with urlopen(f"{url}/api/v1/named/{number}", timeout=30) as answer:
            (job,) = json.load(answer) or [{}]
        return job if job.get("state") == "ended" else {}

    told: dict[str, Any] = {}
    for name, number in jobs.items():
        wait_until(lambda number=number: found(number), 90, f"the end of {name} is known")  # type: ignore[misc]
        with urlopen(f"{url}/api/v1/job/{found(number)['key']}", timeout=30) as answer:
            told[name] = json.load(answer)
    resources = {name: job["answers"]["binding"]["resource"] for name, job in told.items()}
    assert resources == {"alone": "one core", "growing": "memory", "writing": "storage"}
    assert told["growing"]["answers"]["ending"]["kind"] == "out of memory"
    assert "memory" in told["growing"]["verdict"]
    assert "One core binds" in told["alone"]["verdict"]
