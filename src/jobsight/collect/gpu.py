"""Graphics cards and other accelerators: what each is doing, and whose it is.

Source: the makers' management libraries, see `drivers.vendors`. A card is named by its uuid, never by a number: the
library's order, the device files' order and the scheduler's may all differ. A card that nobody uses is a row too, and
so is one that fails. Whose a card is, is told by `jobsight.ownership`: by allocation first, by processes second.
"""

from collections.abc import Iterator
from typing import NamedTuple

from jobsight.collector import collector
from jobsight.drivers.card import Card
from jobsight.drivers.vendors import NEEDS, RECORDED, Cards
from jobsight.host import Host
from jobsight.ownership import Owner, owners
from jobsight.schema.record import counter, fields_of, gauge, label, record
from jobsight.schema.units import Bytes, Celsius, Count, Hertz, Joules, Ratio, Seconds, Watts


@record
class Gpu:
    """One card, or one instance of a divided card, since the last sample."""

    uuid: str = label("The card's name for ever. Empty for a maker whose library does not answer.")
    vendor: str = label("nvidia, amd, intel or habana.")
    parent: str | None = label("Of an instance of a divided card, the card's uuid.", default=None)
    ordinal: int | None = label("The library's number for the card; not that of its device file.", default=None)
    minor: int | None = label("The number of its device file.", default=None)
    address: str | None = label("Where it is on the PCI bus.", default=None)
    scheduler: str | None = label("Who named the job that holds it.", default=None)
    job: str | None = label("The job that holds it, whether it uses it or not.", default=None)
    held_by: str | None = label("How that is known: allocation, devices or process.", default=None)
    utilization: Ratio | None = gauge("Share of the time in which it did something.", default=None)
    busy: Seconds | None = counter("Time in which it did something, since the agent began to look.", default=None)
    sm_active: Ratio | None = gauge("Mean share of its multiprocessors that were at work.", default=None)
    sm_occupancy: Ratio | None = gauge("Mean share of the warps they could hold.", default=None)
    tensor_active: Ratio | None = gauge("Share of the time of its matrix units.", default=None)
    memory_active: Ratio | None = gauge("Share of its memory's bandwidth that was used.", default=None)
    memory_utilization: Ratio | None = gauge("Share of the time in which memory was read or written.", default=None)
    memory_used: Bytes | None = gauge("Memory in use.", default=None)
    memory_total: Bytes | None = gauge("Memory it has.", default=None)
    power: Watts | None = gauge("Power it takes, as the library averages it.", default=None)
    power_limit: Watts | None = gauge("Power it may take.", default=None)
    energy: Joules | None = counter("Energy it took, by its own counter.", default=None)
    temperature: Celsius | None = gauge("Of the chip.", default=None)
    memory_temperature: Celsius | None = gauge("Of its memory.", default=None)
    fan: Ratio | None = gauge("Speed of its fan.", default=None)
    clock: Hertz | None = gauge("Clock of its multiprocessors.", default=None)
    memory_clock: Hertz | None = gauge("Clock of its memory.", default=None)
    throttle: str | None = label("Why it runs slower than it could; empty if it does not.", default=None)
    power_capped: Seconds | None = counter("Time it was slowed down by its power limit.", default=None)
    overheated: Seconds | None = counter("Time it was slowed down by heat.", default=None)
    pcie_sent: Bytes | None = counter("Bytes it sent over PCIe since the agent began to look.", default=None)
    pcie_received: Bytes | None = counter("Bytes it received over PCIe since then.", default=None)
    ecc_corrected: Count | None = counter("Memory errors that were corrected.", default=None)
    ecc_uncorrected: Count | None = counter("Memory errors that were not.", default=None)
    xid: int | None = label("The driver's last report of trouble with it, by number.", default=None)
    processes: Count | None = gauge("Processes that have something on it.", default=None)
    trouble: str | None = label("Calls that failed and values that cannot be.", default=None)


class Options(NamedTuple):
    """Where the prolog writes which job has which card."""

    path: str = "/run/jobsight/jobs"


@collector(*NEEDS, RECORDED)
def gpu(host: Host, options: Options) -> Iterator[Gpu]:
    reading = host.keep(Cards).read(host)
    held = owners(host, reading, options.path)
    for card in reading.cards:
        users = {holder.pid for holder in reading.holders if holder.uuid == card.uuid}
        yield row_of(card, held.get(card.uuid), len(users))


def row_of(card: Card, owner: Owner | None, processes: int) -> Gpu:
    names = {field.name for field in fields_of(Gpu)}
    same = {name: value for name, value in card._asdict().items() if name in names}
    return Gpu(
        **same,
        scheduler=owner.scheduler if owner else None,
        job=owner.job if owner else None,
        held_by=owner.by if owner else None,
        processes=Count(processes) if card.uuid else None,
    )
