"""The driver for AMD's library, against a library of our own with the same calls."""

from collections.abc import Callable

import pytest

from jobsight.drivers import rocmsmi
from jobsight.drivers.card import Reading, plain, reading_of
from jobsight.drivers.library import LibraryError
from jobsight.drivers.rocmsmi import Reader

GIB, MIB = 2**30, 2**20
Read = Callable[[str], Reading]


@pytest.fixture
def read(compiled: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Read:
    def reading(words: str) -> Reading:
        monkeypatch.setenv("ROCM_STUB", words)
        return reading_of(plain(Reader((compiled("rocmsmi"),)).read()))

    return reading


def test_power_comes_in_microwatts_and_the_sockets_goes_before_the_average(read: Read) -> None:
    first, second = read("").cards
    assert (first.power, second.power) == pytest.approx((555.0, 250.5))
    assert (first.power_limit, first.power_least, first.power_most) == (600.0, 0.0, 750.0)


def test_energy_is_steps_times_microjoules(read: Read) -> None:
    assert read("").cards[0].energy == pytest.approx(15.259)


def test_temperatures_come_in_thousandths_of_a_degree(read: Read) -> None:
    first, second = read("").cards
    assert (first.temperature, first.memory_temperature) == (45.0, 51.5)
    assert second.temperature == pytest.approx(47.25), "without a sensor at the edge, that of the junction"


def test_memory_is_in_bytes_and_each_cards_own(read: Read) -> None:
    assert [(card.memory_total, card.memory_used) for card in read("").cards] == [
        (128 * GIB, 3 * GIB),
        (64 * GIB, 3 * GIB),
    ]


def test_use_and_fans_are_ratios_and_clocks_hertz(read: Read) -> None:
    card = read("").cards[0]
    assert (card.utilization, card.memory_utilization, card.fan) == (0.6, 0.2, 0.2)
    assert (card.clock, card.clock_max, card.memory_clock) == (1_300_000_000, 2_100_000_000, 500_000_000)


def test_clocks_of_an_early_release_are_read_as_it_wrote_them(read: Read) -> None:
    card = read("old").cards[0]
    assert (card.clock, card.clock_max, card.memory_clock) == (1_300_000_000, 2_100_000_000, 500_000_000)


def test_no_clocks_are_made_of_nothing() -> None:
    assert rocmsmi.clocks_of(bytes(1024)) == (None, None)
    assert rocmsmi.clocks_of(b"\xff" * 1024) == (None, None)


def test_a_card_is_its_unique_id_whatever_its_numbers_are(read: Read) -> None:
    found = {card.uuid: (card.ordinal, card.minor, card.address) for card in read("").cards}
    assert found == {
        "GPU-deadbeef00000001": (0, 129, "0001:c1:12.0"),
        "GPU-deadbeef00000002": (1, 128, "0001:43:12.0"),
    }


def test_a_card_without_an_id_is_named_by_its_place(read: Read) -> None:
    assert [card.uuid for card in read("nameless").cards] == ["PCI-0001:c1:12.0", "PCI-0001:43:12.0"]


def test_partitions_of_one_card_have_names_of_their_own_and_its_power_counts_once(read: Read) -> None:
    first, second = read("parts").cards
    assert (first.uuid, first.parent, first.divided) == ("GPU-deadbeef00000001", None, True)
    assert (second.uuid, second.parent) == ("GPU-deadbeef00000001/1", "GPU-deadbeef00000001")
    assert (first.power, second.power, second.energy) == (555.0, None, None)


def test_a_second_die_has_no_power_rather_than_none_taken(read: Read) -> None:
    first, second = read("dies").cards
    assert first.power == pytest.approx(250.5)
    assert (second.power, second.energy, second.power_limit, second.trouble) == (None, None, None, None)


def test_what_a_card_does_not_know_is_missing_and_no_trouble(read: Read) -> None:
    card = read("poor").cards[0]
    assert (card.energy, card.fan, card.clock, card.ecc_corrected, card.memory_utilization) == (None,) * 5
    assert (card.power, card.trouble) == (555.0, None)


def test_all_ones_are_no_number_and_no_trouble(read: Read) -> None:
    second = read("ones").cards[1]
    assert (second.power, second.utilization, second.memory_used, second.trouble) == (None,) * 4
    assert second.memory_total == 64 * GIB


def test_what_cannot_be_is_refused_and_said(read: Read) -> None:
    second = read("wild").cards[1]
    assert (second.power, second.temperature, second.utilization, second.busy) == (None,) * 4
    assert second.trouble is not None
    assert "power: 9000 cannot be" in second.trouble
    assert "temperature: 255 cannot be" in second.trouble


def test_a_call_that_fails_is_named_and_the_rest_is_there(read: Read) -> None:
    first, second = read("refuse").cards
    assert (first.power, first.trouble) == (555.0, None)
    assert (second.power, second.trouble) == (None, "rsmi_dev_power_ave_get: status 16")
    assert second.memory_total == 64 * GIB


def test_errors_of_memory_are_counted_and_what_later_releases_add_does_no_harm(read: Read) -> None:
    card = read("").cards[0]
    assert (card.ecc_corrected, card.ecc_uncorrected) == (3, 1)


def test_a_process_has_its_memory_on_each_card_and_one_that_ended_is_none(read: Read) -> None:
    first, second = "GPU-deadbeef00000001", "GPU-deadbeef00000002"
    found = {(holder.pid, holder.uuid): (holder.memory, holder.utilization) for holder in read("").holders}
    assert found == {
        (4242, first): (1 * GIB, pytest.approx(0.4)),
        (4242, second): (2 * GIB, pytest.approx(0.4)),
        (4343, second): (5 * MIB, None),
    }


def test_a_library_that_knows_no_process_by_card_tells_whose_cards_and_no_memory(read: Read) -> None:
    found = {(holder.pid, holder.uuid[-1]): holder.memory for holder in read("old").holders}
    assert found == {(4242, "1"): None, (4242, "2"): None, (4343, "2"): None}


def test_time_at_work_adds_up_from_sample_to_sample(
    compiled: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCM_STUB", "")
    times = iter([100.0, 100.0, 130.0, 130.0])
    monkeypatch.setattr("jobsight.drivers.rocmsmi.time.monotonic", lambda: next(times))
    reader = Reader((compiled("rocmsmi"),))
    assert reader.read().cards[0].busy == 0.0
    assert reader.read().cards[0].busy == pytest.approx(0.6 * 30)


def test_a_library_that_is_not_there_is_named() -> None:
    with pytest.raises(LibraryError, match=r"cannot load libnone\.so"):
        Reader(("libnone.so",))
