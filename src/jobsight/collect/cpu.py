"""Time each CPU of the node spent, by kind of work.

Source: /proc/stat, see proc_stat(5). A guest's time is part of user time and is not listed again.
"""

from collections.abc import Iterator

from jobsight.collector import ParseError, collector
from jobsight.host import Host
from jobsight.schema.record import counter, label, record
from jobsight.schema.units import Seconds

# /proc counts in USER_HZ, which is 100 on every Linux we meet, whatever the kernel's own HZ.
USER_HZ = 100


@record
class Cpu:
    """One logical CPU since boot."""

    cpu: int = label("The kernel's number for the logical CPU.")
    user_time: Seconds = counter("Programs at normal priority.")
    nice_time: Seconds = counter("Programs at low priority.")
    system_time: Seconds = counter("The kernel on behalf of programs.")
    idle_time: Seconds = counter("Nothing to do.")
    iowait_time: Seconds = counter("Nothing to do but wait for a disk.")
    interrupt_time: Seconds = counter("Interrupts, hard and soft.")
    stolen_time: Seconds = counter("Wanted to run while the hypervisor ran somebody else.")


@collector("proc/stat")
def cpu(host: Host) -> Iterator[Cpu]:
    yield from parse(host.read("proc/stat"))


def parse(text: str) -> Iterator[Cpu]:
    """One row a line such as `cpu3 10132153 290696 3084719 46828483 16683 0 25195 0 175628 0`."""
    lines = [line.split() for line in text.splitlines() if line.startswith("cpu")]
    if not lines or lines[0][0] != "cpu":
        raise ParseError(f"/proc/stat: expected a line `cpu …` first, got {text[:60]!r}")
    for name, *ticks in lines[1:]:
        number = name[3:]
        if not (number + "".join(ticks)).isascii() or not all(map(str.isdecimal, (number, *ticks))) or len(ticks) < 8:
            raise ParseError(f"/proc/stat: expected a CPU and eight numbers, got {' '.join((name, *ticks))[:80]!r}")
        user, nice, system, idle, iowait, hard, soft, stolen = (int(t) for t in ticks[:8])
        yield Cpu(
            cpu=int(number),
            user_time=Seconds(user / USER_HZ),
            nice_time=Seconds(nice / USER_HZ),
            system_time=Seconds(system / USER_HZ),
            idle_time=Seconds(idle / USER_HZ),
            iowait_time=Seconds(iowait / USER_HZ),
            interrupt_time=Seconds((hard + soft) / USER_HZ),
            stolen_time=Seconds(stolen / USER_HZ),
        )
