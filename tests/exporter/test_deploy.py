"""The files we ship for the exporter: Prometheus takes the rules, sudo the entry, the exporter its settings."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from jobsight.exporter.scrape import check
from jobsight.settings import parse

DEPLOY = Path(__file__).parent.parent.parent / "deploy"


def checked(program: str, *arguments: str) -> None:
    found = shutil.which(program)
    if found is None:
        assert os.environ.get("CI") != "true", f"{program} is missing"
        pytest.skip(f"{program.upper()} IS NOT HERE, so a file we ship goes unchecked")
    done = subprocess.run([found, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_the_rules_and_the_scrape() -> None:
    checked("promtool", "check", "rules", str(DEPLOY / "prometheus" / "rules.yml"))
    checked("promtool", "check", "config", "--syntax-only", str(DEPLOY / "prometheus" / "scrape.yml"))


def test_sudo_takes_the_entry() -> None:
    checked("visudo", "-c", "-f", str(DEPLOY / "ipmi" / "sudoers"))


def test_every_series_of_the_rules_is_one_that_the_exporter_shows() -> None:
    text = (DEPLOY / "prometheus" / "rules.yml").read_text()
    shown = (Path(__file__).parent / "machines" / "slurm-v2" / "ours.txt").read_text()
    names = set(re.findall(r"(?<![\w:])jobsight_\w+", text))
    assert names
    assert {name for name in names if f"# TYPE {name} " not in shown} == set()


def test_the_exporter_takes_the_shipped_settings() -> None:
    settings = parse((DEPLOY / "systemd" / "exporter.yaml").read_text(), "exporter.yaml", only=("memory",))
    check(settings.exporter)
    assert settings.exporter.records
    assert settings.exporter.batchjob.enabled


def test_the_controllers_drop_in_names_a_command_that_the_settings_take() -> None:
    text = (DEPLOY / "ipmi" / "exporter.conf").read_text()
    commented = "\n".join(line[2:] for line in text.splitlines() if line.startswith("#  "))
    (plan,) = parse(commented, "exporter.conf", only=("ipmi",)).collect
    assert plan.options.command[0] == "setpriv"
    assert "CAP_SETUID CAP_SETGID" in text


def test_the_rules_split_a_nodes_power_by_cpu_time(tmp_path: Path) -> None:
    """A node of 400 W with two CPUs at work, of which one job has one and a half; another takes a card's 100 W."""
    node = 'instance="c1:9010"'
    series = {
        f'jobsight_cpu_user_time_seconds_total{{{node},cpu="0"}}': "0+60x20",
        f'jobsight_cpu_user_time_seconds_total{{{node},cpu="1"}}': "0+30x20",
        f'jobsight_cpu_system_time_seconds_total{{{node},cpu="1"}}': "0+30x20",
        f'jobsight_cpu_nice_time_seconds_total{{{node},cpu="0"}}': "0+0x20",
        f'jobsight_cpu_interrupt_time_seconds_total{{{node},cpu="0"}}': "0+0x20",
        f'jobsight_cgroup_cpu_time_seconds_total{{{node},scheduler="slurm",jobid="7"}}': "0+90x20",
        f'jobsight_cgroup_cpu_time_seconds_total{{{node},scheduler="slurm",jobid="7",step="0"}}': "0+90x20",
        f'jobsight_ipmi_power_watts{{{node},source="ipmi-dcmi"}}': "400+0x20",
        f'jobsight_gpu_power_watts{{{node},uuid="GPU-1",jobid="8"}}': "100+0x20",
        f'jobsight_gpu_power_watts{{{node},uuid="GPU-2"}}': "50+0x20",
        f'jobsight_power_energy_joules_total{{{node},device="intel-rapl:0",counted="true"}}': "0+6000x20",
        f'jobsight_power_energy_joules_total{{{node},device="intel-rapl:0:0",counted="false"}}': "0+3000x20",
    }
    expected = {
        f'instance_jobid:jobsight_power_watts:avg5m{{{node},jobid="7"}}': 300,
        f'instance_jobid:jobsight_gpu_power_watts:avg5m{{{node},jobid="8"}}': 100,
        f"instance:jobsight_energy_watts:rate5m{{{node}}}": 100,
    }
    questions = [
        {"expr": name.partition("{")[0], "eval_time": "15m", "exp_samples": [{"labels": name, "value": value}]}
        for name, value in expected.items()
    ]
    given = [{"series": name, "values": values} for name, values in series.items()]
    trial = {"interval": "1m", "input_series": given, "promql_expr_test": questions}
    file = tmp_path / "trial.yml"
    rules = str(DEPLOY / "prometheus" / "rules.yml")
    file.write_text(json.dumps({"rule_files": [rules], "evaluation_interval": "1m", "tests": [trial]}))
    checked("promtool", "test", "rules", str(file))
