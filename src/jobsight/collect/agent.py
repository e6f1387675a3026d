"""The agent's own cost and the state of its sending.

Source: /proc/self/stat and statm; the counts come from the agent itself.
"""

from collections.abc import Iterator

from jobsight.collector import collector
from jobsight.formats import procstat
from jobsight.host import Host
from jobsight.schema.record import counter, gauge, record
from jobsight.schema.units import Bytes, Count, Seconds


class Tally:
    """What the agent counts about itself; the service writes it, this collector reads it."""

    def __init__(self) -> None:
        self.messages = 0
        self.failed = 0
        self.sent = 0
        self.dropped = 0
        self.waiting = 0
        # Missing as long as nobody listens.
        self.exits_lost: int | None = None


@record
class Agent:
    """One agent since it started."""

    cpu_time: Seconds = counter("CPU time the agent has used.")
    memory: Bytes = gauge("Resident memory of the agent.")
    threads: Count = gauge("Threads of the agent.")
    messages: Count = counter("Messages made.")
    failed: Count = counter("Runs that failed or were late.")
    sent: Count = counter("Messages a destination has acknowledged.")
    dropped: Count = counter("Messages given up because the spool was full or they were too old.")
    waiting: Bytes = gauge("Bytes in the spool.")
    exits_lost: Count | None = counter("Exit records of processes and threads that were not counted.", default=None)


@collector("proc/self/stat", every=60)
def agent(host: Host) -> Iterator[Agent]:
    own = procstat.parse(host.read_bytes("proc/self/stat"))
    tally = host.keep(Tally)
    yield Agent(
        cpu_time=Seconds(round(own.user + own.system, 2)),
        memory=Bytes(own.resident * host.page()),
        threads=Count(own.threads),
        messages=Count(tally.messages),
        failed=Count(tally.failed),
        sent=Count(tally.sent),
        dropped=Count(tally.dropped),
        waiting=Bytes(tally.waiting),
        exits_lost=None if tally.exits_lost is None else Count(tally.exits_lost),
    )
