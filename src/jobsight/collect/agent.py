"""The agent's own cost and the state of its sending.

Source: /proc/self/stat and statm; the counts come from the agent itself.
"""

from collections.abc import Callable, Iterator

from jobsight.collector import ParseError, collector
from jobsight.drivers.calls import Calls
from jobsight.formats import procstat
from jobsight.host import Host
from jobsight.schema.record import counter, gauge, record
from jobsight.schema.units import Bytes, Count, Seconds

# Pages that no machine has.
LARGEST = 2**40


class Tally:
    """What the agent counts about itself; the service writes it, this collector reads it."""

    def __init__(self) -> None:
        self.messages = 0
        self.failed = 0
        self.sent = 0
        self.dropped = 0
        self.waiting = 0
        self.torn = 0
        # Each spool's own answer: messages in it, and seconds the oldest has waited.
        self.spools: list[Callable[[], tuple[int, float | None]]] = []
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
    waiting_messages: Count | None = gauge("Messages in the spool.", default=None)
    waiting_oldest: Seconds | None = gauge(
        "How long the oldest message in the spool has waited, at most; missing if none waits.", default=None
    )
    torn: Count | None = counter("Dropped messages that a kill or a power cut had cut off.", default=None)
    calls: Count | None = counter("Programs run to ask a scheduler.", default=None)
    calls_failed: Count | None = counter("Those that failed or took too long.", default=None)
    calls_time: Seconds | None = counter("Time they took.", default=None)
    calls_way: str | None = gauge("As whom they were run, and by what means.", default=None)


@collector("proc/self/stat", every=60)
def agent(host: Host) -> Iterator[Agent]:
    own = procstat.parse(host.read_bytes("proc/self/stat"))
    if own.resident > LARGEST:
        raise ParseError(f"/proc/self/stat: expected resident pages, got {own.resident}")
    tally, calls = host.keep(Tally), host.keep(Calls)
    # Missing if nothing goes through a spool.
    told = [ask() for ask in list(tally.spools)]
    ages = [age for _, age in told if age is not None]
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
        waiting_messages=Count(sum(messages for messages, _ in told)) if told else None,
        waiting_oldest=Seconds(round(max(ages), 3)) if ages else None,
        torn=Count(tally.torn) if told else None,
        calls=None if calls.count is None else Count(calls.count),
        calls_failed=None if calls.count is None else Count(calls.failed),
        calls_time=None if calls.count is None else Seconds(round(calls.seconds, 3)),
        calls_way=calls.way,
    )
