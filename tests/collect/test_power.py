"""Zones that lie within each other, are there twice, may not be read or cannot be; sensors beside them."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobsight import catalogue
from jobsight.collect.power import GRANT, Power
from jobsight.formats.rollover import risen
from jobsight.host import Host
from jobsight.recording import Replay, replay
from jobsight.schema.message import Message
from jobsight.schema.record import fields_of

HERE = Path(__file__).parent / "power"
ZONES = "sys/class/powercap"
SPAN = 262_143_328_850
NOBODY = 65534


def zone(root: Path, place: str, name: str, energy: int | str, span: int = SPAN) -> None:
    folder = root / ZONES / place
    folder.mkdir(parents=True, exist_ok=True)
    for file, value in {"name": name, "energy_uj": energy, "max_energy_range_uj": span}.items():
        (folder / file).write_text(f"{value}\n")


def sensor(root: Path, path: str, value: object) -> None:
    place = root / "sys/class/hwmon" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"{value}\n")


def message(host: Host) -> Message:
    return replay(catalogue.collector("power"), host)


def rows(host: Host) -> dict[str, Power]:
    found = message(host).rows
    columns = [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)]
    return {row["device"]: Power(**row) for row in columns}


def total(found: dict[str, Power]) -> float:
    return sum(row.energy or 0.0 for row in found.values() if row.counted)


def test_the_sum_is_packages_and_memory_each_once() -> None:
    assert total(rows(Replay(str(HERE / "nested-and-mirrored/root")))) == 5000.0 + 700.0
    assert total(rows(Replay(str(HERE / "multi-die-one-forbidden/root")))) == 1000.0 + 100.0 + 2000.0 + 4000.0


def test_a_copy_stands_in_where_the_original_may_not_be_read(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", 2_000_000)
    (tmp_path / "machine.json").write_text(f'{{"forbidden": ["{ZONES}/intel-rapl:0/energy_uj"]}}')
    found = rows(Replay(str(tmp_path)))
    assert (found["intel-rapl-mmio:0"].counted, found["intel-rapl-mmio:0"].energy) == (True, 2.0)
    assert (found["intel-rapl:0"].counted, found["intel-rapl:0"].copy) == (False, "intel-rapl-mmio:0")


def test_the_platform_counts_where_it_is_all_there_is(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "psys", 9_000_000)
    assert rows(Host(str(tmp_path)))["intel-rapl:0"].counted


def test_one_zone_that_may_not_be_read_loses_no_other_and_is_said_with_its_grant(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    zone(tmp_path, "intel-rapl:1", "package-1", 2_000_000)
    (tmp_path / "machine.json").write_text(f'{{"forbidden": ["{ZONES}/intel-rapl:0/energy_uj"]}}')
    said = message(Replay(str(tmp_path)))
    assert said.missing == {"energy": "forbidden"}
    assert said.rows["energy"] == (None, 2.0)
    assert {field.name: field.grant for field in fields_of(Power)}["energy"] == GRANT


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder that others may enter: those of pytest are their owner's alone."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


def test_files_as_the_kernel_protects_them_are_forbidden_to_others(open_path: Path) -> None:
    """Not a recorded refusal but the kernel's own."""
    zone(open_path, "intel-rapl:0", "package-0", 1_000_000)
    zone(open_path, "intel-rapl:1", "package-1", 2_000_000)
    (open_path / ZONES / "intel-rapl:0/energy_uj").chmod(0)
    me = os.geteuid()
    if me == 0:
        os.seteuid(NOBODY)
    try:
        said = message(Host(str(open_path)))
    finally:
        os.seteuid(me)
    assert (said.status, said.missing) == ("ok", {"energy": "forbidden"})
    assert said.rows["energy"] == (None, 2.0)


@pytest.mark.parametrize("energy", ["", "-5", "many", SPAN + 1])
def test_a_counter_that_cannot_be_is_refused_and_the_zone_still_shown(tmp_path: Path, energy: int | str) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", energy)
    said = message(Host(str(tmp_path)))
    assert (said.status, said.missing, said.rows["energy"]) == ("ok", {"energy": "failed"}, (None,))


def test_a_counter_that_began_anew_between_samples_gives_its_energy(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", SPAN - 1_000_000_000)
    before = rows(Host(str(tmp_path)))["intel-rapl:0"]
    zone(tmp_path, "intel-rapl:0", "package-0", 8_000_000_000)
    after = rows(Host(str(tmp_path)))["intel-rapl:0"]
    assert before.energy is not None
    assert after.energy is not None
    assert after.energy_range is not None
    assert risen(before.energy, after.energy, after.energy_range, 60.0, 500.0) == pytest.approx(9000.0)


def test_a_control_type_and_other_makers_controls_are_no_zones(tmp_path: Path) -> None:
    (tmp_path / ZONES / "intel-rapl").mkdir(parents=True)
    (tmp_path / ZONES / "dtpm:0").mkdir()
    assert message(Host(str(tmp_path))).status == "absent"


def test_a_meter_of_the_whole_node_that_shows_nothing_is_not_believed(tmp_path: Path) -> None:
    sensor(tmp_path, "hwmon0/name", "power_meter")
    sensor(tmp_path, "hwmon0/power1_average", 0)
    said = message(Host(str(tmp_path)))
    assert (said.rows["scope"], said.rows["power"], said.missing) == (("node",), (None,), {"power": "failed"})


def test_a_machine_with_sensors_of_heat_alone_has_none_of_power(tmp_path: Path) -> None:
    sensor(tmp_path, "hwmon0/name", "coretemp")
    sensor(tmp_path, "hwmon0/temp1_input", 45000)
    assert message(Host(str(tmp_path))).status == "absent"
