"""The exporter's text, read by Prometheus's own linter."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.conftest import Program, answers, free_port, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def url(start: Callable[..., Program]) -> str:
    port = free_port()
    start("exporter", "--listen", f"127.0.0.1:{port}")
    wait_until(lambda: answers(f"http://127.0.0.1:{port}/"))
    return f"http://127.0.0.1:{port}"


def text(url: str) -> str:
    with urlopen(url, timeout=30) as answer:
        found: str = answer.read().decode()
    return found


def test_every_collector_is_scraped_and_one_can_be_chosen(url: str) -> None:
    everything = text(f"{url}/metrics")
    assert 'jobsight_scrape_collector_success{collector="process"} 1' in everything
    one = text(f"{url}/metrics?collect=memory")
    assert "jobsight_memory_total_bytes " in one
    assert "jobsight_process" not in one


def test_promtool_has_nothing_to_say_about_the_text(url: str, tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        if os.environ.get("CI") == "true":
            pytest.fail("promtool is not installed")
        pytest.skip("PROMTOOL IS NOT INSTALLED, so the exporter's text goes unchecked")
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text(f"{url}/metrics"), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
