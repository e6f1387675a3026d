"""The driver for Intel's library, against a library of our own with the same calls."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jobsight.drivers.card import Reading, plain, reading_of
from jobsight.drivers.xpum import Reader
from jobsight.host import Host

GIB, MIB = 2**30, 2**20
FIRST, SECOND = "00000000-0000-0029-0000-002f0bd58086", "00000000-0000-009a-0000-00020bd58086"
Read = Callable[[str], Reading]


@pytest.fixture
def read(compiled: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Read:
    for name in ("card1", "renderD129"):
        (tmp_path / "sys/bus/pci/devices/0000:29:00.0/drm" / name).mkdir(parents=True)

    def reading(words: str) -> Reading:
        monkeypatch.setenv("XPUM_STUB", words)
        return reading_of(plain(Reader((compiled("xpum"),), Host(str(tmp_path))).read()))

    return reading


def test_power_is_in_watts_already_energy_in_millijoules_and_limits_in_milliwatts(read: Read) -> None:
    card = read("").cards[0]
    assert (card.power, card.power_limit) == pytest.approx((301.24, 600.0))
    assert card.energy == pytest.approx(9135.78), "what was counted since ever, not since the last look"


def test_use_is_the_mean_since_the_last_look_and_the_rest_is_of_now(read: Read) -> None:
    card = read("").cards[0]
    assert (card.utilization, card.memory_active) == pytest.approx((1.0, 0.3))
    assert (card.clock, card.clock_max, card.temperature) == (1_550_000_000, 1_600_000_000, 48.0)
    assert (card.memory_used, card.memory_total) == (4 * GIB, 64 * GIB)


@pytest.mark.parametrize("release", ["tiles", "tiles later"])
def test_a_card_of_tiles_is_their_sum_their_mean_and_the_hottest(read: Read, release: str) -> None:
    card = read(release).cards[1]
    assert (card.power, card.memory_used) == pytest.approx((4 * 150.62, 8 * GIB))
    assert card.energy == pytest.approx(4 * 4567.89)
    assert (card.utilization, card.temperature) == pytest.approx((1.0, 51.0))
    assert card.trouble is None


def test_a_card_has_its_properties_and_the_number_of_its_device_file(read: Read) -> None:
    first, second = read("").cards
    assert (first.uuid, first.address, first.minor) == (FIRST, "0000:29:00.0", 129)
    assert (second.uuid, second.address, second.minor) == (SECOND, "0000:9a:00.0", None)
    assert (first.model, first.driver) == ("Intel(R) Data Center GPU Max 1550", "I915_23.8.20")
    assert first.firmware == "PVC2_1.23374"


def test_a_uuid_of_noughts_is_none(read: Read) -> None:
    assert [card.uuid for card in read("nameless").cards] == ["PCI-0000:29:00.0", "PCI-0000:9a:00.0"]


def test_what_cannot_be_is_refused_and_said(read: Read) -> None:
    card = read("wild").cards[0]
    assert (card.power, card.temperature, card.utilization) == (None, None, None)
    assert card.trouble == "utilization: 2.5 cannot be; temperature: 255 cannot be; power: 9000 cannot be"


def test_processes_have_their_memory_in_bytes(read: Read) -> None:
    found = {(holder.pid, holder.uuid): holder.memory for holder in read("").holders}
    assert found == {(4242, FIRST): 3 * GIB, (4343, FIRST): 1 * MIB}


def test_a_library_without_processes_and_statistics_still_has_its_cards(read: Read) -> None:
    reading = read("poor")
    assert [(card.uuid, card.power, card.trouble) for card in reading.cards] == [
        (FIRST, None, None),
        (SECOND, None, None),
    ]
    assert reading.holders == []
