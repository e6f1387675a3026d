"""Runs one collector once and turns whatever happens into a message.

The only blind `except` of the node side: an author raises, the runner decides.
"""

import threading
from collections.abc import Callable
from typing import Any

from jobsight.clock import Clock
from jobsight.collector import Collector
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
    try:
        present = collector.present(host)
        if present:
            rows = collector.rows(host, options)
        status = Status.OK if present else Status.ABSENT
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


class Runner:
    """Runs collectors in one worker thread, so that a source that hangs holds up only itself.

    A worker whose run passed its deadline is left to that run, and another takes over. The collector is skipped
    until its run returns; what it then brings is of the past and dropped.
    """

    def __init__(self, host: Host, origin: Origin, clock: Clock) -> None:
        self.host = host
        self.origin = origin
        self.clock = clock
        self._worker: Worker | None = None
        self._stuck: dict[str, Worker] = {}

    def run(self, collector: Collector, options: Any, deadline: float, every: float | None) -> Message | None:
        """The run's message; a `late` one if the deadline passed; None while an earlier run still hangs."""
        stuck = self._stuck.get(collector.name)
        if stuck is not None:
            if not stuck.answered(0):
                return None
            del self._stuck[collector.name]
        time, uptime = self.clock.wall(), self.host.uptime()
        worker = self._worker or Worker()
        self._worker = worker
        worker.ask(lambda: run(collector, options, self.host, self.origin, self.clock, every))
        if worker.answered(deadline):
            return worker.take()
        worker.leave()
        self._stuck[collector.name], self._worker = worker, None
        return Message(
            origin=self.origin,
            collector=collector.name,
            time=time,
            uptime=uptime,
            every=every,
            status=Status.LATE,
            seconds=deadline,
            error=f"no answer within {deadline:g} s",
            missing={},
            rows={},
        )

    def close(self) -> None:
        """End the worker that waits; one that hangs ends when it can."""
        if self._worker is not None:
            self._worker.leave()
            self._worker = None


class Worker:
    """A thread that does one thing at a time and ends after `leave`."""

    def __init__(self) -> None:
        self.answer: Message | None = None
        self._task: Callable[[], Message] | None = None
        self._asked = threading.Semaphore(0)
        self._answered = threading.Semaphore(0)
        self._leaving = False
        # A daemon: a read that never returns must not keep the agent from stopping.
        threading.Thread(target=self._work, name="collect", daemon=True).start()

    def ask(self, task: Callable[[], Message]) -> None:
        self.answer, self._task = None, task
        self._asked.release()

    def take(self) -> Message | None:
        """The answer, which is then ours alone: a large one must not stay in memory until the next."""
        answer, self.answer = self.answer, None
        return answer

    def answered(self, within: float) -> bool:
        return self._answered.acquire(timeout=within) if within else self._answered.acquire(blocking=False)

    def leave(self) -> None:
        self._leaving = True
        self._asked.release()

    def _work(self) -> None:
        while not self._leaving:
            self._asked.acquire()
            task, self._task = self._task, None
            if task is not None:
                self.answer = task()
                self._answered.release()
