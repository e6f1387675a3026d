"""The driver for NVIDIA's library, against a library of our own with the same calls."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from jobsight.drivers.card import Reading, plain, reading_of
from jobsight.drivers.nvml import Reader
from jobsight.drivers.nvmllibrary import Library, NvmlError

SOURCE = Path(__file__).parent / "nvml.c"
GIB = 2**30


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", made, SOURCE], check=True)
    return str(made)


@pytest.fixture
def read(library: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Reading]:
    def reading(words: str) -> Reading:
        monkeypatch.setenv("NVML_STUB", words)
        return reading_of(plain(Reader(Library((library,))).read()))

    return reading


def test_numbers_come_in_base_units(read: Callable[[str], Reading]) -> None:
    card = read("").cards[0]
    assert (card.power, card.power_limit, card.energy) == (250.0, 400.0, 1234.567)
    assert (card.memory_total, card.memory_used) == (80 * GIB, 5 * GIB)
    assert (card.clock, card.clock_max, card.memory_clock) == (1_410_000_000, 1_500_000_000, 1_215_000_000)
    assert (card.temperature, card.fan, card.utilization, card.memory_utilization) == (45.0, 0.3, 0.6, 0.2)
    assert (card.power_capped, card.overheated) == (2.5, 5.0)
    assert (card.ecc_corrected, card.ecc_uncorrected, card.throttle) == (3, 1, "power cap, thermal")
    assert (card.driver, card.library, card.architecture, card.firmware) == ("580.1", "CUDA 13.0", "Ampere", "1.2")
    assert card.trouble is None


def test_a_card_is_its_uuid_whatever_its_numbers_are(read: Callable[[str], Reading]) -> None:
    found = {card.uuid: (card.ordinal, card.minor, card.address) for card in read("").cards}
    assert found == {"GPU-0": (0, 1, "00000000:41:00.0"), "GPU-1": (1, 0, "00000000:40:00.0")}


def test_what_an_old_card_does_not_know_is_missing_and_no_trouble(read: Callable[[str], Reading]) -> None:
    card = read("poor").cards[0]
    assert (card.energy, card.fan, card.power_capped, card.ecc_corrected, card.architecture) == (None,) * 5
    assert (card.power, card.trouble) == (250.0, None)


def test_all_ones_are_no_number(read: Callable[[str], Reading]) -> None:
    reading = read("ones")
    card, holder = reading.cards[0], reading.holders[0]
    assert (card.memory_used, card.power, holder.memory) == (None, None, None)
    assert (card.memory_total, holder.pid) == (80 * GIB, 4242)


def test_what_cannot_be_is_refused_and_said(read: Callable[[str], Reading]) -> None:
    card = read("wild").cards[0]
    assert (card.power, card.temperature, card.utilization) == (None, None, None)
    assert card.trouble == "utilization: 2.5 cannot be; temperature: 255 cannot be; power: 900 cannot be"


def test_a_card_that_fell_off_the_bus_is_a_row_and_the_others_go_on(read: Callable[[str], Reading]) -> None:
    first, second = read("lost").cards
    assert (first.uuid, first.trouble) == ("GPU-0", None)
    assert (second.uuid, second.ordinal) == ("", 1)
    assert second.trouble == "nvmlDeviceGetHandleByIndex_v2: GPU is lost"


def test_instances_of_a_divided_card_have_names_of_their_own(read: Callable[[str], Reading]) -> None:
    cards = read("mig").cards
    assert [(card.uuid, card.parent, card.divided) for card in cards] == [
        ("GPU-0", None, True),
        ("MIG-101", "GPU-0", None),
        ("MIG-104", "GPU-0", None),
        ("GPU-1", None, False),
    ]
    assert [card.memory_total for card in cards] == [80 * GIB, 10 * GIB, 10 * GIB, 80 * GIB]
    assert cards[0].utilization is None


def test_a_process_has_the_mean_of_its_samples(read: Callable[[str], Reading]) -> None:
    holders = {holder.pid: holder for holder in read("").holders}
    assert holders[4242].utilization == pytest.approx(0.5)
    assert holders[4242].memory_utilization == pytest.approx(0.2)
    assert holders[4343].utilization == pytest.approx(0.1)
    assert holders[4343].memory == 2 * GIB
    assert {holder.uuid for holder in holders.values()} == {"GPU-0"}


def test_a_library_that_is_not_there_is_named() -> None:
    with pytest.raises(NvmlError, match=r"cannot load libnone\.so"):
        Library(("libnone.so",))
