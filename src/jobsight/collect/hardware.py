"""What the node is made of: processors, memory, system.

Source: /proc/cpuinfo, /sys/devices/system/cpu/cpu*/topology, /sys/devices/system/node/node*/distance, /proc/meminfo,
/etc/os-release. On aarch64 cpuinfo has no model name but numbers of implementer and part, and says nothing of sockets
and threads: the topology does, on every architecture.
"""

import re
from collections.abc import Iterable, Iterator

from jobsight.collector import ParseError, collector
from jobsight.formats import cpulist, keyvalue
from jobsight.host import Host
from jobsight.schema.record import gauge, label, record
from jobsight.schema.units import Bytes, Count

CPUS = "sys/devices/system/cpu"
NODES = "sys/devices/system/node"

# What implementers (ARM's own register MIDR_EL1) call the parts that clusters are built of.
ARM_PARTS = {
    ("0x41", "0xd08"): "ARM Cortex-A72",
    ("0x41", "0xd0b"): "ARM Cortex-A76",
    ("0x41", "0xd0c"): "ARM Neoverse N1",
    ("0x41", "0xd40"): "ARM Neoverse V1",
    ("0x41", "0xd49"): "ARM Neoverse N2",
    ("0x41", "0xd4f"): "ARM Neoverse V2",
    ("0x43", "0x0af"): "Cavium ThunderX2",
    ("0x46", "0x001"): "Fujitsu A64FX",
    ("0x48", "0xd01"): "HiSilicon Kunpeng 920",
    ("0x61", "0x022"): "Apple M1",
    ("0xc0", "0xac3"): "Ampere-1",
}


@record
class Hardware:
    """One node's make-up."""

    model: str = label("The processor's name for itself.")
    cpus: Count = gauge("Logical CPUs online: what the scheduler can use.")
    cores: Count | None = gauge("Physical cores.", default=None)
    sockets: Count | None = gauge("Processor packages.", default=None)
    threads: Count | None = gauge("Logical CPUs of one core.", default=None)
    memory: Bytes = gauge("Memory the kernel can use.")
    system: str = label("The distribution's name and version.")
    kernel: str = label("The kernel's release.")
    architecture: str | None = label("The machine's instruction set: x86_64, aarch64.", default=None)
    distances: str | None = label(
        "Relative cost of reaching NUMA nodes from each other: one row a node, with `;` between; 10 is at home.",
        default=None,
    )


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
        sockets=sockets(package for package, _ in known),
        threads=Count(max(len(cpulist.cpus(siblings)) for _, siblings in known)) if known else None,
        memory=Bytes(memory),
        system=system(host.glimpse("etc/os-release") or ""),
        kernel=(host.glimpse("proc/sys/kernel/osrelease") or "").strip(),
        architecture=host.architecture(),
        distances=distances(host),
    )


def sockets(packages: Iterable[str]) -> Count | None:
    """How many packages there are; a firmware that does not know says -1."""
    found = set(packages)
    return Count(len(found)) if found and "-1" not in found else None


def distances(host: Host) -> str | None:
    """The rows of all NUMA nodes, in the order of their numbers."""
    names = (re.fullmatch(r"node(\d+)", name, re.ASCII) for name in host.names(NODES))
    numbers = sorted(int(name[1]) for name in names if name)
    rows = [" ".join((host.glimpse(f"{NODES}/node{number}/distance") or "").split()) for number in numbers]
    return ";".join(rows) if rows and all(rows) else None


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
        implementer, part = facts["CPU implementer"], facts.get("CPU part", "?")
        return ARM_PARTS.get((implementer, part), f"ARM implementer {implementer} part {part}")
    return "unknown"


def system(release: str) -> str:
    """`Debian GNU/Linux 12 (bookworm)` from os-release."""
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', release, re.MULTILINE)
    return found[1] if found else "unknown"
