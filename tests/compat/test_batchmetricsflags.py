"""The batch job exporter's command line, as its documentation has it."""

import argparse
from typing import Any

import pytest

from jobsight.compat import batchflags
from jobsight.compat.batchmetricsflags import FLAGS, root, with_token
from jobsight.host import Host
from jobsight.settings import Settings, from_values

SETTINGS = from_values({}, only=("ipmi", "emissionfactor"))


def given(*arguments: str) -> argparse.Namespace:
    accept = argparse.ArgumentParser(allow_abbrev=False)
    batchflags.add(accept, FLAGS)
    return accept.parse_args(list(arguments))


def read(*arguments: str) -> tuple[Settings, list[str]]:
    found = given(*arguments)
    return batchflags.applied(SETTINGS, found, FLAGS), batchflags.remarks(found, FLAGS)


def options(settings: Settings, name: str) -> Any:
    return next(plan.options for plan in settings.collect if plan.name == name)


def test_the_flags_of_its_example_are_settings_here() -> None:
    settings, said = read(
        "--collector.slurm.job.props.path=/run/a", "--collector.slurm.gpu.type=nvidia",
        "--collector.slurm.gpu.job.map.path", "/run/b",
        "--collector.ipmi.dcmi.cmd=sudo /usr/sbin/ipmi-dcmi --get-system-power-statistics", "--log.level=debug",
    )  # fmt: skip
    batchjob = settings.exporter.batchjob
    assert (batchjob.job_path, batchjob.gpu_path, batchjob.vendor) == ("/run/a", "/run/b", "nvidia")
    command = options(settings, "ipmi")
    assert command.command == ("/usr/sbin/ipmi-dcmi", "--get-system-power-statistics")
    assert command.sudo is True
    assert said == ["--log.level has no meaning here"]


def test_the_web_flags_are_settings_here() -> None:
    settings, _ = read(
        "--web.listen-address=:9010", "--web.telemetry-path=/m", "--web.max-requests=3",
        "--web.disable-exporter-metrics",
    )  # fmt: skip
    exporter = settings.exporter
    assert (exporter.listen, exporter.path, exporter.requests, exporter.itself) == ("0.0.0.0:9010", "/m", 3, False)
    assert read("--web.max-requests=0")[0].exporter.requests == 256


def test_collectors_are_turned_on_and_off() -> None:
    shown = read("--no-collector.rapl", "--no-collector.emissions")[0].exporter.batchjob.collect
    assert shown == ("slurm_job", "ipmi_dcmi")
    assert read("--collector.rapl", "--collector.disable-defaults")[0].exporter.batchjob.collect == ("rapl",)


def test_emissions_are_of_the_documented_country_unless_another_is_given() -> None:
    assert options(read("--collector.emissions")[0], "emissionfactor").country == "FR"
    settings, _ = read("--collector.emissions", "--collector.emissions.country.code=de")
    assert options(settings, "emissionfactor").country == "DE"
    assert options(read()[0], "emissionfactor").country == ""


def test_switches_go_both_ways() -> None:
    off = read(
        "--no-collector.slurm.create.unique.jobids", "--no-collector.slurm.swap.memory.metrics",
        "--no-collector.slurm.psi.metrics",
    )[0].exporter.batchjob  # fmt: skip
    assert (off.unique_ids, off.swap, off.pressure) == (False, False, False)
    on = read("--collector.slurm.jobsteps.metrics", "--collector.rapl.enable-zone-label")[0].exporter
    assert (on.steps, on.batchjob.zone_label) == (True, True)


def test_no_flag_changes_nothing() -> None:
    assert read() == (SETTINGS, [])
    assert root(given()) is None


def test_places_of_file_systems_are_one_machine() -> None:
    assert root(given("--path.procfs=/host/proc", "--path.sysfs=/host/sys/")) == "/host"
    assert root(given("--path.procfs=/proc", "--path.cgroupfs=/sys/fs/cgroup")) == "/"
    with pytest.raises(ValueError, match="below one directory"):
        root(given("--path.procfs=/host/proc", "--path.sysfs=/sys"))
    with pytest.raises(ValueError, match=r"--path\.procfs: expected a path that ends with /proc"):
        root(given("--path.procfs=/p"))


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        ("--collector.slurm.gpu.type=matrox", "--collector.slurm.gpu.type: expected nvidia or amd"),
        ("--collector.emissions.country.code=France", "--collector.emissions.country.code: expected a country"),
        ("--web.max-requests=many", "--web.max-requests: expected a number"),
        ("--collector.ipmi.dcmi.cmd=", "--collector.ipmi.dcmi.cmd: expected a command"),
    ],
)
def test_a_value_that_cannot_be_names_its_flag(flag: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        read(flag)


def test_the_token_of_the_environment_is_a_file_that_nobody_else_has() -> None:
    settings = with_token(read("--collector.emissions")[0], {"EMAPS_API_TOKEN": "s3cret"})
    file = options(settings, "emissionfactor").token_file
    for _ in range(2):  # read anew each time
        assert Host("/").read(file.lstrip("/")) == "s3cret"
    assert with_token(settings, {"EMAPS_API_TOKEN": "other"}) == settings
    assert with_token(SETTINGS, {}) == SETTINGS
