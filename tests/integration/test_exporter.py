"""The exporter as a program: its text read by Prometheus's own linter, its flags as units have them."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from jobsight import catalogue
from jobsight.exporter.scrape import NOT_SERIES
from jobsight.schema.exposition import families
from jobsight.schema.exposition import text as exposed
from jobsight.schema.record import fields_of
from jobsight.schema.units import base
from tests.conftest import Program, answers, free_port, wait_until
from tests.exporter.machine import MACHINES

pytestmark = pytest.mark.slow

Start = Callable[..., Program]
# What the linter says of names that are not ours to choose: they are as documented.
THEIRS = {
    "batchjob_emissions_gCo2_kWh metric names should be written in 'snake_case' not 'camelCase'",
    'batchjob_slurm_job_memory_fail_count non-histogram and non-summary metrics should not have "_count" suffix',
    'batchjob_slurm_job_memsw_fail_count non-histogram and non-summary metrics should not have "_count" suffix',
}  # fmt: skip


def started(start: Start, *flags: str) -> str:
    port = free_port()
    start("exporter", "--listen", f"127.0.0.1:{port}", *flags)
    wait_until(lambda: answers(f"http://127.0.0.1:{port}/"))
    return f"http://127.0.0.1:{port}"


def text(url: str, accept: str = "") -> str:
    with urlopen(Request(url, headers={"Accept": accept} if accept else {}), timeout=30) as answer:
        found: str = answer.read().decode()
    return found


def complaints(content: str) -> set[str]:
    promtool = shutil.which("promtool")
    if promtool is None:
        if os.environ.get("CI") == "true":
            pytest.fail("promtool is not installed")
        pytest.skip("PROMTOOL IS NOT INSTALLED, so the exporter's text goes unchecked")
    done = subprocess.run([promtool, "check", "metrics"], input=content, capture_output=True, text=True, check=False)
    return {line for line in (done.stdout + done.stderr).splitlines() if line}


def test_every_collector_is_scraped_and_one_can_be_chosen(start: Start) -> None:
    url = started(start)
    everything = text(f"{url}/metrics")
    assert 'jobsight_scrape_collector_success{collector="memory"} 1' in everything
    assert 'batchjob_scrape_collector_success{collector="slurm_job"} ' in everything
    assert "process_resident_memory_bytes " in everything
    one = text(f"{url}/metrics?collect=memory")
    assert "jobsight_memory_total_bytes " in one
    assert "jobsight_cpu" not in one
    assert text(f"{url}/metrics", "application/openmetrics-text").endswith("\n# EOF\n")
    with pytest.raises(HTTPError, match="400") as refused:
        text(f"{url}/metrics?collect=process")
    refused.value.close()


def test_promtool_has_nothing_to_say_about_this_machine_by_our_names(start: Start) -> None:
    assert complaints(text(f"{started(start, '--no-batchjob')}/metrics")) == set()


def test_promtool_has_nothing_to_say_about_any_record_that_is_shown() -> None:
    parts: list[str] = []
    for found in catalogue.collectors():
        if found.name not in NOT_SERIES:
            row = {
                field.name: (True if base(field.unit) is bool else base(field.unit)("1"),)
                for field in fields_of(found.record)
            }
            parts += exposed(families(found.name, found.record, row))
    assert complaints("".join(parts)) == set()


def test_promtool_says_of_documented_names_only_what_follows_from_them(start: Start) -> None:
    url = started(start, "--no-records", "--root", str(MACHINES / "slurm-v2" / "root"), "--collector.emissions")
    found = text(f"{url}/metrics")
    assert "batchjob_emissions_gCo2_kWh{" in found
    assert complaints(found) == THEIRS


def test_the_documented_command_line_works_as_it_stands(start: Start, tmp_path: Path) -> None:
    port = free_port()
    root = shutil.copytree(MACHINES / "slurm-v2" / "root", tmp_path / "host")
    program = start(
        "exporter", f"--web.listen-address=127.0.0.1:{port}", f"--path.procfs={root}/proc",
        f"--path.sysfs={root}/sys",
        "--collector.slurm.job.props.path=/run/slurmjobprops", "--collector.slurm.gpu.type=nvidia",
        "--collector.slurm.gpu.job.map.path=/run/gpujobmap",
        "--collector.ipmi.dcmi.cmd=ipmi-dcmi --get-system-power-statistics", "--log.level=debug",
        "--web.telemetry-path=/m", "--web.disable-exporter-metrics", "--collector.empty.hostname.label",
    )  # fmt: skip
    wait_until(lambda: answers(f"http://127.0.0.1:{port}/"))
    found = text(f"http://127.0.0.1:{port}/m")
    assert 'batchjob_slurm_job_cpus{batch="slurm",hostname="",jobaccount="physics",jobid="1",' in found
    assert 'batchjob_ipmi_dcmi_current_watts_total{hostname=""} 217.0' in found
    assert 'jobuser="alice"' in found
    assert "process_resident_memory_bytes" not in found
    code, said = program.stop()
    assert code == 0
    assert "--log.level has no meaning here" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--collector.slurm.gpu.type=matrox"], "--collector.slurm.gpu.type: expected nvidia or amd, got 'matrox'"),
        (["--collector.unknown"], "unrecognized arguments: --collector.unknown"),
        (["--path.procfs=/a/proc", "--path.sysfs=/b/sys"], "expected paths below one directory"),
        (["--web.telemetry-path=/"], "exporter.path: expected a path such as /metrics"),
        (["--web.systemd-socket"], "systemd opened no socket for this process"),
    ],
)
def test_a_flag_that_cannot_be_is_a_sentence(start: Start, flags: list[str], sentence: str) -> None:
    code, said = start("exporter", *flags).finish()
    assert code in (1, 2)
    assert sentence in said
    assert "Traceback" not in said


DCMI = (MACHINES / "slurm-v2" / "root" / "commands" / "ipmi-dcmi").read_text()


def script(path: Path, text: str) -> Path:
    beside = path.with_suffix(".new")
    beside.write_text(f"#!/bin/sh\n{text}\n")
    beside.chmod(0o755)
    beside.rename(path)
    return path


def test_a_controller_that_hangs_is_not_felt_and_its_last_word_stays_for_a_while(
    start: Start, tmp_path: Path
) -> None:
    command = script(tmp_path / "power", f"cat <<'END'\n{DCMI}\nEND")
    settings = tmp_path / "exporter.yaml"
    settings.write_text("collect: {ipmi: {every: 1s, fresh: 0s, limit: 60s, expires: 1h, deadline: 60s}}")
    url = started(start, "--settings", str(settings), "--no-records", f"--collector.ipmi.dcmi.cmd={command}")
    current = "batchjob_ipmi_dcmi_current_watts_total"
    assert f"{current}{{" in text(f"{url}/metrics?collect=ipmi_dcmi")
    script(command, f"touch {tmp_path}/hangs; exec sleep 60")
    wait_until((tmp_path / "hangs").exists, what="it hangs")
    # The program would take a minute, and so would a scrape that waits for it.
    with urlopen(f"{url}/metrics?collect=ipmi_dcmi", timeout=20) as answer:
        assert f"{current}{{".encode() in answer.read()


class Maps(BaseHTTPRequestHandler):
    """Says how dirty the current is, to those who show the token."""

    def do_GET(self) -> None:
        good = self.headers["auth-token"] == "s3cret" and self.path == "/latest?zone=DE"
        body = json.dumps({"zone": "DE", "carbonIntensity": 321.5} if good else {"error": "who?"}).encode()
        self.send_response(200 if good else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody wants to read about every request."""


def test_the_token_of_the_environment_opens_electricity_maps(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMAPS_API_TOKEN", "s3cret")
    with HTTPServer(("127.0.0.1", 0), Maps) as maps:
        thread = threading.Thread(target=maps.serve_forever, args=(0.05,))
        thread.start()
        try:
            address = f"http://127.0.0.1:{maps.server_port}/latest?zone={{zone}}"
            settings = tmp_path / "exporter.yaml"
            settings.write_text(json.dumps({"collect": {"emissionfactor": {"emaps": {"url": address}}}}))
            url = started(
                start, "--settings", str(settings), "--collector.emissions", "--collector.emissions.country.code=DE"
            )
            found = text(f"{url}/metrics?collect=emissions")
        finally:
            maps.shutdown()
            thread.join()
    name = 'provider="emaps",provider_name="Electricity Maps"'
    assert f'batchjob_emissions_gCo2_kWh{{country="DE",{name}}} 321.5' in found
    assert 'provider="owid"' in found


# What systemd does: the socket as descriptor 3, and the process told that it is meant.
ACTIVATE = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.executable, [sys.executable, "-m", "jobsight", "exporter", "--web.systemd-socket"])
"""


def test_it_listens_on_the_socket_that_systemd_opened(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as link:
        program = subprocess.Popen(
            [sys.executable, "-c", ACTIVATE, str(link.fileno())],
            env={**os.environ, "JOBSIGHT_HOME": str(tmp_path)},
            pass_fds=[link.fileno()],
        )
        try:
            url = f"http://127.0.0.1:{link.getsockname()[1]}"
            assert "jobsight_memory_total_bytes " in text(f"{url}/metrics?collect=memory")
            program.terminate()
            assert program.wait(30) == 0
        finally:
            if program.poll() is None:
                program.kill()
                program.wait()
