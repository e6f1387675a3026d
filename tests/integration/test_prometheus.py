"""A real Prometheus scrapes the exporter over TLS with a password, and its arithmetic is ours."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from jobsight.analyse.attribution import JOB, Demand, Spell, attribute
from tests.conftest import Program, answers, free_port, wait_until
from tests.exporter.machine import copy
from tests.ship.authority import Pair, signed

pytestmark = pytest.mark.slow

# U*U
ADA = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
GROUPS = "sys/fs/cgroup/system.slice/node1_slurmstepd.scope"
WATTS = 217.0
# CPU seconds that two jobs use between two looks, and the whole node.
FIRST, SECOND, BUSY = 12.0, 4.0, 20.0
POWER = """
batchjob_ipmi_dcmi_current_watts_total{job="good"} * on (instance) group_right ()
  (rate(batchjob_slurm_job_cpu_total_seconds{step="",job="good"}[2m]) / on (instance) group_left ()
    (sum by (instance) (rate(jobsight_cpu_user_time_seconds_total{job="good"}[2m]))
      + sum by (instance) (rate(jobsight_cpu_nice_time_seconds_total{job="good"}[2m]))
      + sum by (instance) (rate(jobsight_cpu_system_time_seconds_total{job="good"}[2m]))
      + sum by (instance) (rate(jobsight_cpu_interrupt_time_seconds_total{job="good"}[2m]))))
"""


class Prometheus:
    """One with a folder and a port of its own."""

    def __init__(self, program: str, folder: Path, config: dict[str, Any]) -> None:
        folder.mkdir()
        # JSON is YAML.
        (folder / "prometheus.yml").write_text(json.dumps(config))
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        self.log = (folder / "log").open("w")
        self.process = subprocess.Popen(
            [program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/rows",
             f"--web.listen-address=127.0.0.1:{port}"],
            stdout=self.log, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def ask(self, query: str) -> list[Any]:
        with urlopen(f"{self.url}/api/v1/query?{urlencode({'query': query})}", timeout=10) as answer:
            found: list[Any] = json.loads(answer.read())["data"]["result"]
        return found

    def number(self, query: str) -> float | None:
        found = self.ask(query)
        return float(found[0]["value"][1]) if len(found) == 1 else None

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        self.log.close()


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return signed(tmp_path / "tls", "localhost")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The recorded one, with a second job."""
    root = copy(tmp_path)
    shutil.copytree(root / GROUPS / "job_1", root / GROUPS / "job_2")
    work(root, 0.0)
    return root


def work(root: Path, share: float) -> None:
    """The node after so much of the work was done."""
    for job, seconds in (("job_1", FIRST), ("job_2", SECOND)):
        file = root / GROUPS / job / "cpu.stat"
        put(file, re.sub(r"usage_usec \d+", f"usage_usec {int((100 + share * seconds) * 1e6)}", file.read_text()))
    ticks = int((1000 + share * BUSY / 2) * 100)
    put(root / "proc/stat", f"cpu  0 0 0 0 0 0 0 0\ncpu0 {ticks} 0 {ticks} 777 5 0 0 0 0 0\n")


def put(file: Path, content: str) -> None:
    beside = file.with_suffix(".new")
    beside.write_text(content)
    beside.rename(file)


@pytest.fixture
def prometheus(start: Callable[..., Program], pair: Pair, machine: Path, tmp_path: Path) -> Iterator[Prometheus]:
    program = shutil.which("prometheus")
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail("prometheus is not installed")
        pytest.skip("PROMETHEUS IS NOT INSTALLED, so nobody real scrapes the exporter")
    port = free_port()
    web = {
        "tls_server_config": {"cert_file": str(pair.certificate), "key_file": str(pair.key)},
        "basic_auth_users": {"ada": ADA},
    }
    (tmp_path / "web.yaml").write_text(json.dumps(web))
    start(
        "exporter", "--listen", f"localhost:{port}", "--root", str(machine), "--web-config-file",
        str(tmp_path / "web.yaml"),
    )  # fmt: skip
    common = {
        "scheme": "https",
        "tls_config": {"ca_file": str(pair.authority)},
        "static_configs": [{"targets": [f"localhost:{port}"]}],
    }
    jobs = [
        {"job_name": "good", **common, "basic_auth": {"username": "ada", "password": "U*U"}},
        {"job_name": "bad", **common, "basic_auth": {"username": "ada", "password": "guess"}},
    ]
    made = Prometheus(
        program,
        tmp_path / "prometheus",
        {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs},
    )
    try:
        wait_until(lambda: answers(f"{made.url}/-/ready"), what="Prometheus is ready")
        yield made
    finally:
        made.close()


def test_a_jobs_power_by_promql_is_what_our_analysis_says(prometheus: Prometheus, machine: Path) -> None:
    name = 'batchjob_slurm_job_cpu_total_seconds{jobid="1",job="good"}'
    wait_until(lambda: prometheus.number(f"count_over_time({name}[1m])") not in (None, 1.0), what="two scrapes")
    work(machine, 1.0)
    wait_until(lambda: prometheus.number(f"last_over_time({name}[1m])") == 100 + FIRST, what="the work is seen")
    # All of a scrape is of one instant, but the work may have come between two of its files: one more.
    seen = prometheus.number(f"count_over_time({name}[2m])") or 0.0
    wait_until(lambda: (prometheus.number(f"count_over_time({name}[2m])") or 0.0) > seen, what="one more scrape")
    assert prometheus.number('up{job="good"}') == 1.0
    assert prometheus.number('up{job="bad"}') == 0.0
    found = {one["metric"]["jobid"]: float(one["value"][1]) for one in prometheus.ask(POWER)}
    demands = [Demand("1", FIRST), Demand("2", SECOND)]
    spell = Spell(seconds=1.0, energy=WATTS, cards=[], jobs=demands, system=BUSY - FIRST - SECOND)
    ours = {part.key: part.energy for part in attribute(spell, "cpu_time") if part.what == JOB}
    assert found == pytest.approx(ours, rel=1e-9)
    assert ours == pytest.approx({"1": WATTS * 0.6, "2": WATTS * 0.2})


def test_cards_are_joined_with_what_dcgm_exporter_would_say(prometheus: Prometheus) -> None:
    flag = 'batchjob_slurm_job_gpu_jobid_flag{job="good"}'
    wait_until(lambda: prometheus.ask(flag), what="a scrape")
    # Our own card's series in dcgm-exporter's place: it has the uuid in a label of capitals.
    other = 'label_replace(jobsight_gpu_power_watts{job="good"}, "UUID", "$1", "uuid", "(.*)")'
    (found,) = prometheus.ask(f"{other} * on (UUID) group_left (jobid, jobuser) {flag}")
    assert found["metric"]["jobid"] == "1"
    assert found["metric"]["jobuser"] == "alice"
    assert float(found["value"][1]) == pytest.approx(690.486)
    (own,) = prometheus.ask('jobsight_gpu_power_watts{job="good"}')
    assert own["metric"]["jobid"] == "1"
