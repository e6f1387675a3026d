"""Traffic of network interfaces, the loopback left out.

Source: /proc/net/dev, see proc_pid_net(5). Bonds and bridges count what their members count too.
"""

from collections.abc import Iterator

from jobsight.collector import ParseError, collector
from jobsight.formats.keyvalue import whole
from jobsight.host import Host
from jobsight.schema.record import counter, label, record
from jobsight.schema.units import Bytes, Count


@record
class Network:
    """One interface since it came up."""

    interface: str = label("The kernel's name for it.")
    received: Bytes = counter("Bytes received.")
    received_packets: Count = counter("Packets received.")
    received_errors: Count = counter("Packets that came damaged.")
    received_drops: Count = counter("Packets dropped for want of room.")
    sent: Bytes = counter("Bytes sent.")
    sent_packets: Count = counter("Packets sent.")
    sent_errors: Count = counter("Packets that could not be sent.")
    sent_drops: Count = counter("Packets dropped before they were sent.")


@collector("proc/net/dev")
def network(host: Host) -> Iterator[Network]:
    for row in parse(host.read("proc/net/dev")):
        if row.interface != "lo":
            yield row


def parse(text: str) -> Iterator[Network]:
    """One row a line such as `eth0: 1296 16 0 0 0 0 0 0 1296 16 0 0 0 0 0 0`, after two lines of heading."""
    for line in text.splitlines()[2:]:
        # A name may hold a colon (an alias of old), never a blank.
        name, _, rest = line.rpartition(":")
        numbers = rest.split()
        if len(numbers) < 12 or not all(map(whole, numbers)) or not name.strip():
            raise ParseError(f"/proc/net/dev: expected an interface and sixteen numbers, got {line[:100]!r}")
        values = [int(number) for number in numbers]
        yield Network(
            interface=name.strip(),
            received=Bytes(values[0]),
            received_packets=Count(values[1]),
            received_errors=Count(values[2]),
            received_drops=Count(values[3]),
            sent=Bytes(values[8]),
            sent_packets=Count(values[9]),
            sent_errors=Count(values[10]),
            sent_drops=Count(values[11]),
        )
