"""Runs collectors within their deadlines, so that a source that hangs holds up only itself."""

import threading
from collections.abc import Callable
from typing import Any

from jobsight.agent.run import run
from jobsight.clock import Clock
from jobsight.collector import Collector
from jobsight.host import Host
from jobsight.schema.message import Message, Origin, Status


class Runner:
    """Runs collectors in one worker thread.

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
