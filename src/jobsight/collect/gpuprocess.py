"""Processes that have something on a card, each with its job.

Source: the makers' management libraries, see `drivers.vendors`; whose a process is, the process collector knows. The
library gives pids as the node itself counts them, also those of containers.
"""

from collections.abc import Iterator

from jobsight.collect.process import Process
from jobsight.collector import collector
from jobsight.drivers.vendors import NEEDS, RECORDED, Cards
from jobsight.host import Host
from jobsight.roster import Roster
from jobsight.schema.record import gauge, label, record
from jobsight.schema.units import Bytes, Ratio, Seconds


@record
class Gpuprocess:
    """One process on one card."""

    uuid: str = label("The card, or the instance of a divided one where the library tells.")
    pid: int = label("The process.")
    started: Seconds | None = label("Its start after boot, where it is known.", default=None)
    kind: str = label("compute or graphics.")
    scheduler: str | None = label("Who named its job.", default=None)
    job: str | None = label("Its job.", default=None)
    owner: str | None = label("The user it runs as.", default=None)
    command: str | None = label("The command's name.", default=None)
    memory: Bytes | None = gauge("Memory of the card that it has.", default=None)
    utilization: Ratio | None = gauge("Its mean share of the card's multiprocessors since last time.", default=None)
    memory_utilization: Ratio | None = gauge("Its mean share of the memory's time.", default=None)


@collector(*NEEDS, RECORDED)
def gpuprocess(host: Host) -> Iterator[Gpuprocess]:
    roster = host.keep(Roster)
    for holder in host.keep(Cards).read(host).holders:
        seen = roster.seen.get(str(holder.pid))
        row = seen.row if seen else None
        known = row if isinstance(row, Process) else None
        yield Gpuprocess(
            uuid=holder.uuid,
            pid=holder.pid,
            started=known.started if known else None,
            kind=holder.kind,
            scheduler=known.scheduler if known else None,
            job=known.job if known else None,
            owner=known.owner if known else None,
            command=known.command if known else None,
            memory=holder.memory,  # type: ignore[arg-type]
            utilization=holder.utilization,  # type: ignore[arg-type]
            memory_utilization=holder.memory_utilization,  # type: ignore[arg-type]
        )
