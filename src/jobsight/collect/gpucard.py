"""What cards a node has: for its description.

Source: the makers' management libraries, see `drivers.vendors`. Numbers that move are in the table `gpu`.
"""

from collections.abc import Iterator

from jobsight.collector import collector
from jobsight.drivers.vendors import NEEDS, RECORDED, Cards
from jobsight.host import Host
from jobsight.schema.record import fields_of, gauge, label, record
from jobsight.schema.units import Bytes, Hertz, Watts


@record
class Gpucard:
    """One card, or one instance of a divided card."""

    uuid: str = label("The card's name for ever. Empty for a maker whose library does not answer.")
    vendor: str = label("nvidia, amd, intel or habana.")
    parent: str | None = label("Of an instance of a divided card, the card's uuid.", default=None)
    ordinal: int | None = label("The library's number for the card; not that of its device file.", default=None)
    minor: int | None = label("The number of its device file.", default=None)
    address: str | None = label("Where it is on the PCI bus.", default=None)
    model: str | None = label("As its maker calls it.", default=None)
    architecture: str | None = label("The generation of its chip.", default=None)
    driver: str | None = label("Release of the kernel's driver.", default=None)
    firmware: str | None = label("Release of what runs on the card.", default=None)
    library: str | None = label("Release of the programming interface.", default=None)
    divided: bool | None = label("Whether it is divided into instances.", default=None)
    memory_total: Bytes | None = gauge("Memory it has.", default=None)
    power_limit: Watts | None = gauge("Power it may take now.", default=None)
    power_least: Watts | None = gauge("The lowest limit it can be given.", default=None)
    power_most: Watts | None = gauge("The highest.", default=None)
    clock_max: Hertz | None = gauge("The highest clock of its multiprocessors.", default=None)
    memory_clock_max: Hertz | None = gauge("The highest clock of its memory.", default=None)
    trouble: str | None = label("Calls that failed and values that cannot be.", default=None)


@collector(*NEEDS, RECORDED, every=3600)
def gpucard(host: Host) -> Iterator[Gpucard]:
    names = [field.name for field in fields_of(Gpucard)]
    for card in host.keep(Cards).read(host).cards:
        values = card._asdict()
        yield Gpucard(**{name: values[name] for name in names})
