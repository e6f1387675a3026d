"""The batch job exporter's metrics from rows, where machines are odd."""

from typing import Any

from jobsight.collect.cgroup import Cgroup
from jobsight.collect.emissionfactor import Emissionfactor
from jobsight.collect.power import Power
from jobsight.compat.batchmetrics import Beside, Group, Owner, emissions, jobs, rapl, states
from jobsight.schema.exposition import text
from jobsight.schema.units import Joules, Seconds

ADA = Owner("1009248", "testusr", "testacc", "compute-[0-2]")


def group(owner: Owner, step: str | None = None, **values: Any) -> Group:
    row = Cgroup(scheduler="slurm", job=owner.number, path=f"slurm/job_{owner.number}", step=step, **values)
    return Group(owner, row, Beside())


def samples(found: Any) -> list[str]:
    return [line for line in "".join(text(found)).splitlines() if not line.startswith("#")]


def zone(device: str, sensor: str, energy: float | None) -> Power:
    return Power(
        source="rapl", device=device, sensor=sensor, scope="processor", counted=True,
        energy=None if energy is None else Joules(energy),
    )  # fmt: skip


def test_the_documented_job_has_the_documented_unique_id() -> None:
    found = jobs([group(ADA, cpu_time=60491.070351)], "", ids=True, pressure=False, swap=False)
    (line,) = samples(found)
    assert line == (
        'batchjob_slurm_job_cpu_total_seconds{batch="slurm",hostname="",jobaccount="testacc",jobid="1009248",'
        'jobuser="testusr",jobuuid="0f0ac288-dbd4-a9a3-df3a-ab14ef9d51d5",step="",task=""} 60491.070351'
    )


def test_a_job_of_which_too_little_is_known_has_no_unique_id() -> None:
    # It would have another one as soon as more is known.
    for owner in (Owner("7"), Owner("7", "ada"), ADA._replace(nodes="")):
        (line,) = samples(jobs([group(owner, cpu_time=1.0)], "", ids=True, pressure=False, swap=False))
        assert 'jobuuid=""' in line
    (line,) = samples(jobs([group(ADA, cpu_time=1.0)], "", ids=False, pressure=False, swap=False))
    assert 'jobuuid=""' in line


def test_what_is_not_known_has_no_sample() -> None:
    assert samples(jobs([group(ADA)], "n1", ids=True, pressure=True, swap=True)) == []


def test_two_groups_that_the_labels_cannot_tell_apart_are_both_left_out() -> None:
    twice = [group(ADA, cpu_time=1.0), group(ADA, cpu_time=2.0), group(ADA, step="0", cpu_time=0.5)]
    (line,) = samples(jobs(twice, "n1", ids=True, pressure=False, swap=False))
    assert 'step="0"' in line


def test_zones_are_numbered_by_their_names_or_as_they_come() -> None:
    rows = [
        zone("intel-rapl:0", "package-0", 1.5), zone("intel-rapl:0:0", "package-0/core", None),
        zone("intel-rapl:0:1", "package-0/dram", 2.0), zone("intel-rapl:1", "package-1-die-2", 3.0),
        zone("intel-rapl:1:1", "package-1-die-2/dram", 4.0),
    ]  # fmt: skip
    place = "/sys/class/powercap/intel-rapl"
    assert samples(rapl(rows, "n1", zone_label=False)) == [
        f'batchjob_rapl_dram_joules_total{{hostname="n1",index="0",path="{place}:0:1"}} 2.0',
        f'batchjob_rapl_dram_joules_total{{hostname="n1",index="1",path="{place}:1:1"}} 4.0',
        f'batchjob_rapl_package_1_die_joules_total{{hostname="n1",index="2",path="{place}:1"}} 3.0',
        f'batchjob_rapl_package_joules_total{{hostname="n1",index="0",path="{place}:0"}} 1.5',
    ]
    (line, *_) = samples(rapl(rows, "n1", zone_label=True))
    assert line.startswith('batchjob_rapl_joules_total{hostname="n1",index="0",')
    assert 'rapl_zone="package"} 1.5' in line


def test_emission_factors_have_their_providers_names() -> None:
    rows = [
        Emissionfactor(provider="rte", zone="FR", factor=38.0, vintage="now", age=Seconds(5.0)),
        Emissionfactor(provider="constant", zone="WORLD", factor=475.0, vintage="", age=Seconds(0.0)),
    ]
    assert samples(emissions(rows)) == [
        'batchjob_emissions_gCo2_kWh{country="FR",provider="rte",provider_name="RTE eCO2 Mix"} 38.0',
        'batchjob_emissions_gCo2_kWh{country="",provider="global",provider_name="Global Average"} 475.0',
    ]


def test_how_a_collector_went_is_told_by_its_name() -> None:
    found = samples(states({"rapl": (False, 0.25)}))
    assert found == [
        'batchjob_scrape_collector_duration_seconds{collector="rapl"} 0.25',
        'batchjob_scrape_collector_success{collector="rapl"} 0',
    ]
