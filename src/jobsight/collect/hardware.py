"""What the node is made of: processors, memory, system.

Source: /proc/cpuinfo, /sys/devices/system/cpu/cpu*/topology, /proc/meminfo, /etc/os-release. On aarch64 cpuinfo
has no model name; the implementer and part numbers stand for it.
"""

import re
from collections.abc import Iterator

from jobsight.collector import ParseError, collector
from jobsight.formats import cpulist, keyvalue
from jobsight.host import Host
from jobsight.schema.record import gauge, label, record
from jobsight.schema.units import Bytes, Count

CPUS = "sys/devices/system/cpu"


@record
class Hardware:
    """One node's make-up."""

    model: str = label("The processor's name for itself.")
    cpus: Count = gauge("Logical CPUs online: what the scheduler can use.")
    cores: Count | None = gauge("Physical cores.", default=None)
    sockets: Count | None = gauge("Processor packages.", default=None)
    memory: Bytes = gauge("Memory the kernel can use.")
    system: str = label("The distribution's name and version.")
    kernel: str = label("The kernel's release.")


@collector("proc/cpuinfo", every=3600)
def hardware(host: Host) -> Iterator[Hardware]:
    numbers = online(host)
    places = [place(host, number) for number in numbers]
    known = [p for p in places if p]
    memory = keyvalue.numbers(host.read("proc/meminfo")).get("MemTotal")
    if memory is None:
        raise ParseError("/proc/meminfo lacks MemTotal")
    yield Hardware(
        model=model(host.read("proc/cpuinfo")),
        cpus=Count(len(numbers)),
        cores=Count(len(set(known))) if known else None,
        sockets=Count(len({package for package, _ in known})) if known else None,
        memory=Bytes(memory),
        system=system(host.glimpse("etc/os-release") or ""),
        kernel=(host.glimpse("proc/sys/kernel/osrelease") or "").strip(),
    )


def online(host: Host) -> list[int]:
    """The logical CPUs that work; where /sys is missing, those that /proc/cpuinfo lists."""
    text = host.glimpse(f"{CPUS}/online")
    if text is not None:
        return cpulist.cpus(text)
    return [
        int(n) for n in re.findall(r"^processor\s*:\s*(\d+)$", host.read("proc/cpuinfo"), re.MULTILINE | re.ASCII)
    ]


def place(host: Host, number: int) -> tuple[str, str] | None:
    """Package and siblings of a logical CPU: two threads of one core share both."""
    topology = f"{CPUS}/cpu{number}/topology"
    package = host.glimpse(f"{topology}/physical_package_id")
    siblings = host.glimpse(f"{topology}/thread_siblings_list")
    if package is None or siblings is None:
        return None
    return package.strip(), siblings.strip()


def model(cpuinfo: str) -> str:
    """The first processor's name."""
    facts = dict(re.findall(r"^([^\t:]+?)\s*:[ \t]*(.*)$", cpuinfo, re.MULTILINE))
    if name := facts.get("model name"):
        return " ".join(name.split())
    if "CPU implementer" in facts:
        return f"ARM implementer {facts['CPU implementer']} part {facts.get('CPU part', '?')}"
    return "unknown"


def system(release: str) -> str:
    """`Debian GNU/Linux 12 (bookworm)` from os-release."""
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', release, re.MULTILINE)
    return found[1] if found else "unknown"
