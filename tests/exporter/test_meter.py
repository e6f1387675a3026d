"""Energy counted through, while the kernel's counters begin anew."""

import pytest

from jobsight.exporter.meter import Meters
from jobsight.schema.message import Message, Origin, Status

RANGE = 262143.328850


def message(uptime: float, energy: float | None, span: float | None = RANGE, source: str = "rapl") -> Message:
    rows = {
        "source": (source,), "device": ("intel-rapl:0",), "scope": ("processor",), "energy": (energy,),
        "energy_range": (span,),
    }  # fmt: skip
    return Message(Origin("c", "n", "b"), "power", 0.0, uptime, 30.0, Status.OK, 0.0, None, {}, rows)


def told(meters: Meters, sent: Message) -> float | None:
    found: float | None = meters.turned(sent).rows["energy"][0]
    return found


@pytest.mark.parametrize("every", [15, 30, 60])
def test_a_package_that_goes_round_every_quarter_of_an_hour_loses_nothing(every: int) -> None:
    meters, watts, began = Meters(), 300.0, 200_000.0
    last = 0.0
    for seconds in range(0, 6 * 3600 + 1, every):
        last = told(meters, message(seconds, (began + watts * seconds) % RANGE)) or 0.0
        assert last == pytest.approx(watts * seconds, abs=1e-6 * max(1.0, watts * seconds))
    assert last == pytest.approx(watts * 6 * 3600)


def test_a_counter_that_was_reset_adds_nothing() -> None:
    meters = Meters()
    told(meters, message(0, 100.0))
    assert told(meters, message(10, 1100.0)) == 1000.0
    # Round to here in ten seconds would be more power than there is.
    assert told(meters, message(20, 5.0)) == 1000.0
    assert told(meters, message(30, 105.0)) == 1100.0


def test_a_reset_between_scrapes_a_minute_apart_is_not_taken_for_a_turn() -> None:
    meters = Meters()
    told(meters, message(0, 100_000.0))
    assert told(meters, message(60, 5.0)) == 0.0
    assert told(meters, message(120, 18_005.0)) == 18_000.0


def test_what_is_forbidden_or_has_no_range_stays_as_it_is() -> None:
    meters = Meters()
    assert told(meters, message(0, None)) is None
    assert told(meters, message(0, 7.0, None)) == 7.0
    assert told(meters, message(0, 7.0, source="hwmon")) == 7.0
    nothing = message(0, 1.0)._replace(rows={})
    assert meters.turned(nothing) is nothing
