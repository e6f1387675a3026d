"""Runs one collector once and turns whatever happens into a message.

The only blind `except` of the node side: an author raises, this decides.
"""

from typing import Any

from jobsight.clock import Clock
from jobsight.collector import AbsentError, Collector
from jobsight.host import Host
from jobsight.schema.message import Message, Origin, Status
from jobsight.schema.record import columns

LONGEST_ERROR = 500


def run(
    collector: Collector, options: Any, host: Host, origin: Origin, clock: Clock, every: float | None = None
) -> Message:
    """One run, here and now, however long it takes."""
    time, uptime, began = clock.wall(), host.uptime(), clock.steady()
    rows: list[Any] = []
    error = None
    host.missed()
    host.begin(time)
    try:
        present = collector.present(host)
        if present:
            rows = collector.rows(host, options)
        status = Status.OK if present else Status.ABSENT
    except AbsentError:
        status, rows = Status.ABSENT, []
    except SystemExit as problem:
        status, rows, error = Status.FAILED, [], f"SystemExit: {problem}"[:LONGEST_ERROR]
    except Exception as problem:  # noqa: BLE001
        status, rows = Status.FAILED, []
        error = f"{type(problem).__name__}: {problem}"[:LONGEST_ERROR]
    return Message(
        origin=origin,
        collector=collector.name,
        time=time,
        uptime=uptime,
        every=every,
        status=status,
        seconds=clock.steady() - began,
        error=error,
        missing=host.missed(),
        rows=columns(collector.record, rows),
    )
