"""What two programs print of a management controller's power reading, and what others print instead."""

from pathlib import Path

import pytest

from jobsight.collector import ParseError
from jobsight.formats.dcmi import Dcmi, parse

MACHINES = Path(__file__).parent.parent / "collect" / "ipmi"
FREEIPMI = (MACHINES / "freeipmi/root/commands/ipmi-dcmi").read_text()
IPMITOOL = (MACHINES / "ipmitool/root/commands/ipmitool").read_text()


def test_both_formats_give_the_same_reading() -> None:
    freeipmi, ipmitool = parse(FREEIPMI), parse(IPMITOOL)
    assert freeipmi == Dcmi("ipmi-dcmi", True, 217.0, 180.0, 260.0, 215.0, 1.0)
    assert ipmitool == freeipmi._replace(program="ipmitool")


def test_the_period_is_in_milliseconds_in_one_and_in_seconds_in_the_other() -> None:
    assert parse(FREEIPMI.replace("1000 milli", "2500 milli")).period == 2.5
    assert parse(IPMITOOL.replace("00000001 Seconds", "00000300 Seconds")).period == 300.0


@pytest.mark.parametrize(
    "text", [FREEIPMI.replace(": Active", ": Not Available"), IPMITOOL.replace("activated", "deactivated")]
)
def test_a_controller_that_does_not_measure_says_nothing_of_power(text: str) -> None:
    reading = parse(text)
    assert (reading.active, reading.current, reading.mean) == (False, None, None)


@pytest.mark.parametrize("watts", ["0", "65535", "99999"])
def test_a_power_that_cannot_be_is_not_told(watts: str) -> None:
    reading = parse(FREEIPMI.replace("217", watts))
    assert (reading.active, reading.current, reading.mean) == (True, None, 215.0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "could not find inband device",
        "PW Consumption   | 216 Watts         | ok",
        FREEIPMI.replace("217 Watts", "217.5 kW"),
        FREEIPMI.replace("Power Measurement", "Measurement"),
        IPMITOOL.replace("Instantaneous power reading:                   217 Watts", ""),
    ],
)
def test_another_format_is_refused_with_what_was_seen(text: str) -> None:
    with pytest.raises(ParseError, match=r"expected .* got ") as refused:
        parse(text)
    assert text.strip()[:20] in str(refused.value)
