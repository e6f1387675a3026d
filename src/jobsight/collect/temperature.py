"""Temperatures the node's sensors report.

Source: /sys/class/hwmon/hwmon*/temp*_input, see the kernel's hwmon sysfs-interface: thousandths of a degree Celsius.
A sensor that answers with an error is passed over: many do while their device sleeps.
"""

import re
from collections.abc import Iterator

from jobsight.collector import collector
from jobsight.host import Host
from jobsight.schema.record import gauge, label, record
from jobsight.schema.units import Celsius

ROOT = "sys/class/hwmon"
INPUT = re.compile(r"temp(\d+)_input", re.ASCII)
# Below absolute zero or above the melting point of a processor: a broken sensor, not a temperature.
COLDEST, HOTTEST = -100.0, 250.0


@record
class Temperature:
    """One sensor at one instant."""

    chip: str = label("The driver's name for the chip.")
    device: str = label("The kernel's name for the chip's place: two chips may be alike.")
    sensor: str = label("The sensor's label, or its number where it has none.")
    celsius: Celsius = gauge("Temperature.")
    critical: Celsius | None = gauge("Where it becomes critical.", default=None)


@collector(f"{ROOT}/hwmon0")
def temperature(host: Host) -> Iterator[Temperature]:
    for device in sorted(host.names(ROOT)):
        place = f"{ROOT}/{device}"
        chip = (host.glimpse(f"{place}/name") or device).strip()
        for name in sorted(host.names(place)):
            found = INPUT.fullmatch(name)
            degrees = celsius(host.glimpse(f"{place}/{name}", "celsius")) if found else None
            if found and degrees is not None:
                sensor = f"{place}/temp{found[1]}"
                yield Temperature(
                    chip=chip,
                    device=device,
                    sensor=(host.glimpse(f"{sensor}_label") or found[1]).strip(),
                    celsius=degrees,
                    critical=celsius(host.glimpse(f"{sensor}_crit")),
                )


def celsius(text: str | None) -> Celsius | None:
    """`45000` → 45. None for what is no temperature."""
    if text is None or not re.fullmatch(r"-?\d{1,9}\s*", text, re.ASCII):
        return None
    degrees = int(text) / 1000
    return Celsius(degrees) if COLDEST < degrees < HOTTEST else None
