"""Traffic of InfiniBand and Omni-Path ports.

Source: /sys/class/infiniband/DEVICE/ports/PORT, see the kernel's sysfs-class-infiniband. The data counters count
words of four bytes.
"""

from collections.abc import Iterator

from jobsight.collector import collector
from jobsight.formats.keyvalue import whole
from jobsight.host import Host
from jobsight.schema.record import counter, gauge, label, record
from jobsight.schema.units import Bytes, Count

ROOT = "sys/class/infiniband"
WORD = 4


@record
class Infiniband:
    """One port since its counters were last cleared."""

    device: str = label("The adapter.")
    port: str = label("The port of the adapter.")
    state: str = gauge("ACTIVE, DOWN, INIT or ARMED.")
    rate: str = gauge("Speed and width as the driver writes them: `100 Gb/sec (4X EDR)`.")
    received: Bytes | None = counter("Bytes received.", default=None)
    sent: Bytes | None = counter("Bytes sent.", default=None)
    received_packets: Count | None = counter("Packets received.", default=None)
    sent_packets: Count | None = counter("Packets sent.", default=None)
    symbol_errors: Count | None = counter("Symbols that came damaged.", default=None)
    link_downs: Count | None = counter("Times the link went down.", default=None)


@collector(ROOT)
def infiniband(host: Host) -> Iterator[Infiniband]:
    for device in sorted(host.names(ROOT)):
        for port in sorted(host.names(f"{ROOT}/{device}/ports")):
            yield row(host, device, port)


def row(host: Host, device: str, port: str) -> Infiniband:
    place = f"{ROOT}/{device}/ports/{port}"

    def number(name: str) -> int | None:
        text = (host.glimpse(f"{place}/counters/{name}", "received") or "").strip()
        return int(text) if whole(text) else None

    received, sent = number("port_rcv_data"), number("port_xmit_data")
    return Infiniband(
        device=device,
        port=port,
        # `4: ACTIVE`
        state=(host.glimpse(f"{place}/state") or "").rpartition(":")[2].strip(),
        rate=(host.glimpse(f"{place}/rate") or "").strip(),
        received=None if received is None else Bytes(received * WORD),
        sent=None if sent is None else Bytes(sent * WORD),
        received_packets=_count(number("port_rcv_packets")),
        sent_packets=_count(number("port_xmit_packets")),
        symbol_errors=_count(number("symbol_error")),
        link_downs=_count(number("link_downed")),
    )


def _count(number: int | None) -> Count | None:
    return None if number is None else Count(number)
