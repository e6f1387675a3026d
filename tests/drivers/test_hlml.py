"""The driver for Habana's library, against a library of our own with the same calls."""

from collections.abc import Callable

import pytest

from jobsight.drivers.card import Reading, plain, reading_of
from jobsight.drivers.hlml import Reader
from jobsight.drivers.library import LibraryError

GIB = 2**30
Read = Callable[[str], Reading]


@pytest.fixture
def read(compiled: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Read:
    def reading(words: str) -> Reading:
        monkeypatch.setenv("HLML_STUB", words)
        return reading_of(plain(Reader((compiled("hlml"),)).read()))

    return reading


def test_power_comes_in_milliwatts_and_energy_in_millijoules(read: Read) -> None:
    card = read("").cards[0]
    assert (card.power, card.power_limit, card.energy) == pytest.approx((412.5, 600.0, 7654.321))


def test_memory_is_in_bytes_and_the_free_part_comes_first(read: Read) -> None:
    card = read("").cards[0]
    assert (card.memory_total, card.memory_used) == (96 * GIB, 6 * GIB)


def test_clocks_are_the_chips_in_hertz_and_its_sensor_the_one_read(read: Read) -> None:
    card = read("").cards[0]
    assert (card.clock, card.clock_max, card.temperature) == (1_600_000_000, 1_800_000_000, 41.0)
    assert (card.utilization, card.throttle) == (0.75, "power cap, thermal")
    assert (card.ecc_corrected, card.ecc_uncorrected) == (5, 2)


def test_a_card_is_its_uuid_whatever_its_numbers_are(read: Read) -> None:
    found = {card.uuid: (card.ordinal, card.minor, card.address) for card in read("").cards}
    assert found == {
        "01P4-HL2080A0-15-00": (0, 1, "0000:19:00.0"),
        "01P4-HL2080A0-15-01": (1, 0, "0000:1a:00.0"),
    }


def test_what_an_old_release_does_not_know_is_missing_and_no_trouble(read: Read) -> None:
    card = read("poor").cards[0]
    assert (card.energy, card.ecc_corrected, card.throttle, card.firmware, card.library) == (None,) * 5
    assert (card.power, card.trouble) == (412.5, None)


def test_what_cannot_be_is_refused_and_said(read: Read) -> None:
    card = read("wild").cards[0]
    assert (card.power, card.temperature, card.utilization) == (None, None, None)
    assert card.trouble == "utilization: 1.01 cannot be; temperature: 255 cannot be; power: 999 cannot be"


def test_a_card_that_is_lost_is_a_row_and_the_others_go_on(read: Read) -> None:
    first, second = read("lost").cards
    assert (first.uuid, first.trouble) == ("01P4-HL2080A0-15-00", None)
    assert (second.uuid, second.ordinal) == ("", 1)
    assert second.trouble == "hlml_device_get_handle_by_index: card is lost"


def test_a_library_without_its_driver_says_which_call_failed(read: Read) -> None:
    with pytest.raises(LibraryError, match="hlml_init: driver not loaded"):
        read("unloaded")
