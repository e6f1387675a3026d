"""Scrapes of a recorded machine. `GOLDEN=1 pytest tests/exporter` rewrites what is expected."""

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobsight import catalogue
from jobsight.collector import Collector
from jobsight.compat import batchmetricsjobs
from jobsight.exporter import scrape
from jobsight.exporter.scrape import NOT_SERIES, Scraper
from jobsight.host import Host
from jobsight.schema.exposition import openmetrics, text
from jobsight.serving import Batchjob, Exporter
from tests.exporter.machine import MACHINES, Still, copy, scraped, settings_of

THEIRS = Exporter(records=False, itself=False)
OURS = Exporter(itself=False, batchjob=Batchjob(enabled=False))
JOB = "batch hostname jobaccount jobid jobuser jobuuid step task"
# Every family of the documented output, with its type and its labels.
DOCUMENTED = {
    "batchjob_ipmi_dcmi_current_watts_total": ("counter", "hostname"),
    "batchjob_ipmi_dcmi_max_watts_total": ("counter", "hostname"),
    "batchjob_ipmi_dcmi_min_watts_total": ("counter", "hostname"),
    "batchjob_rapl_package_joules_total": ("counter", "hostname index path"),
    "batchjob_scrape_collector_duration_seconds": ("gauge", "collector"),
    "batchjob_scrape_collector_success": ("gauge", "collector"),
    "batchjob_slurm_job_gpu_jobid_flag": (
        "gauge", "UUID batch hostname index jobaccount jobid jobuser jobuuid uuid",
    ),
    "batchjob_emissions_gCo2_kWh": ("gauge", "country provider provider_name"),
    "batchjob_exporter_build_info": ("gauge", "branch goarch goos goversion revision version"),
    **{
        f"batchjob_slurm_job_{name}": ("gauge", JOB)
        for name in (
            "cpu_psi_seconds", "cpu_system_seconds", "cpu_total_seconds", "cpu_user_seconds", "cpus",
            "memory_cache_bytes", "memory_fail_count", "memory_psi_seconds", "memory_rss_bytes",
            "memory_total_bytes", "memory_used_bytes", "memsw_fail_count", "memsw_total_bytes", "memsw_used_bytes",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize(("name", "exporter"), [("theirs", THEIRS), ("ours", OURS)])
def test_a_recorded_machine_is_shown_as_expected(name: str, exporter: Exporter) -> None:
    found = scraped(MACHINES / "slurm-v2" / "root", exporter)
    expected = MACHINES / "slurm-v2" / f"{name}.txt"
    if os.environ.get("GOLDEN"):
        expected.write_text(found)
    assert found == expected.read_text()


def test_every_family_of_the_documented_output_is_there_with_its_type_and_labels() -> None:
    found = scraped(MACHINES / "slurm-v2" / "root", THEIRS)
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", found, re.MULTILINE))
    shown = {
        name: (types[name], " ".join(re.findall(r'(\w+)="', marks)))
        for name, marks in re.findall(r"^(\w+)\{(.*)\} \S+$", found, re.MULTILINE)
    }
    assert {name: shown.get(name) for name in DOCUMENTED} == DOCUMENTED


def test_steps_are_series_where_they_are_asked_for_and_leave_the_job_as_it_is(tmp_path: Path) -> None:
    root = copy(tmp_path)
    name = "batchjob_slurm_job_cpu_total_seconds"
    jobs, steps = (
        re.findall(rf'^{name}.*step="(.*?)",task="(.*?)"}} (\S+)$', scraped(root, one), re.MULTILINE)
        for one in (THEIRS, THEIRS._replace(steps=True))
    )
    assert [place[:2] for place in jobs] == [("", "")]
    assert [place[:2] for place in steps] == [("", ""), ("0", ""), ("0", "0"), ("batch", "")]
    assert steps[0] == jobs[0]


def test_a_chosen_collector_is_shown_alone(tmp_path: Path) -> None:
    root = copy(tmp_path)
    both = Exporter()
    assert set(re.findall(r"^(\w+?)_\w+\{", scraped(root, both, "rapl"), re.MULTILINE)) == {"batchjob"}
    chosen = scraped(root, both, "rapl", "memory")
    assert "jobsight_memory_total_bytes " in chosen
    assert "batchjob_rapl_package_joules_total" in chosen
    assert "cgroup" not in chosen
    assert "process_resident_memory_bytes" not in chosen
    assert "process_resident_memory_bytes" in scraped(root, both)


def test_a_source_that_cannot_be_read_fails_alone(tmp_path: Path) -> None:
    root = copy(tmp_path)
    (root / "proc/meminfo").write_text("nothing of use")
    (root / "commands/ipmi-dcmi").write_text("Segmentation fault")
    found = scraped(root, Exporter())
    assert 'jobsight_scrape_collector_success{collector="memory"} 0' in found
    assert 'batchjob_scrape_collector_success{collector="ipmi_dcmi"} 0' in found
    assert 'batchjob_scrape_collector_success{collector="slurm_job"} 1' in found
    assert "watts_total" not in found
    assert "batchjob_slurm_job_cpu_total_seconds{" in found


@pytest.fixture
def hung(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A memory that is never read to its end."""
    end = threading.Event()
    real = catalogue.collector

    def wait(_: Host) -> Iterator[Any]:
        end.wait(60)
        yield from ()

    def collector(name: str) -> Collector:
        found = real(name)
        return found._replace(function=wait) if name == "memory" else found

    monkeypatch.setattr(catalogue, "collector", collector)
    monkeypatch.setattr(scrape, "LONGEST", 0.2)
    yield
    end.set()


@pytest.mark.usefixtures("hung")
def test_a_source_that_hangs_is_left_and_the_next_scrape_does_not_wait_for_it(tmp_path: Path) -> None:
    from jobsight.clock import SystemClock

    scraper = Scraper(settings_of(Exporter()), Host(str(copy(tmp_path))), SystemClock())
    for _ in range(2):
        found = "".join(text(scraper.scrape()))
        assert 'jobsight_scrape_collector_success{collector="memory"} 0' in found
        assert 'jobsight_scrape_collector_success{collector="power"} 1' in found
    scraper.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_job_whose_files_hang_or_break_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads the environment of a process that hangs in the kernel hangs, too."""
    let_go = threading.Event()
    monkeypatch.setattr(scrape, "LONGEST", 0.2)
    monkeypatch.setattr(batchmetricsjobs, "owners", lambda *_: let_go.wait(60))
    scraper = Scraper(settings_of(Exporter()), Host(str(copy(tmp_path))), Still())
    try:
        for turn in range(3):
            if turn == 2:  # that one breaks when it returns, and the next at once
                let_go.set()
            found = "".join(text(scraper.scrape()))
            assert 'batchjob_scrape_collector_success{collector="slurm_job"} 0' in found
            assert 'batchjob_scrape_collector_success{collector="rapl"} 1' in found
            assert "batchjob_slurm_job_cpus" not in found
            assert "jobsight_memory_total_bytes" in found
    finally:
        let_go.set()
        scraper.close()


def test_a_machine_without_anything_still_answers(tmp_path: Path) -> None:
    found = scraped(tmp_path, Exporter())
    assert 'batchjob_scrape_collector_success{collector="slurm_job"} 0' in found
    assert "jobsight_scrape_collector_success" not in found


def test_collectors_that_run_programs_are_never_shown() -> None:
    assert {found.name for found in catalogue.collectors() if found.runs} <= set(NOT_SERIES)
    assert set(NOT_SERIES) <= set(catalogue.collector_names())


def test_a_second_scrape_says_the_same(tmp_path: Path) -> None:
    scraper = Scraper(settings_of(Exporter(itself=False)), Host(str(copy(tmp_path))), Still())
    first = "".join(text(scraper.scrape()))
    assert "".join(text(scraper.scrape())) == first
    scraper.close()


def test_a_setting_that_cannot_be_names_its_key() -> None:
    for exporter, key in (
        (Exporter(collect=("nope",)), "exporter.collect"),
        (Exporter(batchjob=Batchjob(collect=("nope",))), "exporter.batchjob.collect"),
        (Exporter(batchjob=Batchjob(vendor="matrox")), "exporter.batchjob.vendor"),
        (Exporter(path="metrics"), "exporter.path"),
        (Exporter(requests=0), "exporter.requests"),
    ):
        with pytest.raises(ValueError, match=key):
            scrape.check(exporter)


def test_no_family_is_told_twice_in_either_format(tmp_path: Path) -> None:
    scraper = Scraper(settings_of(Exporter()), Host(str(copy(tmp_path))), Still())
    found = list(scraper.scrape())
    scraper.close()
    for pieces in (text(found), openmetrics(found)):
        names = re.findall(r"^# TYPE (\S+) ", "".join(pieces), re.MULTILINE)
        assert len(names) > 50
        assert len(set(names)) == len(names)
    # Nor a series.
    series = [sample.rpartition(" ")[0] for family in found for sample in family.samples]
    assert len(set(series)) == len(series)
