"""Runs collectors within their deadlines, so that a source that hangs holds up only itself."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from jobsight.agent.run import run
from jobsight.clock import Clock
from jobsight.collector import Collector
from jobsight.host import Host
from jobsight.schema.message import Message, Origin, Status


class Ask(NamedTuple):
    """One run that is wanted."""

    collector: Collector
    options: Any
    deadline: float
    every: float | None


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
        return next(iter(self.run_all([Ask(collector, options, deadline, every)])), None)

    def run_all(self, asks: list[Ask]) -> list[Message]:
        """The messages of all that do not hang from before, in their order. All go to the worker at once: one by one
        the handing over would cost as much as most collectors' runs.
        """
        waiting = [ask for ask in asks if self._free(ask.collector.name)]
        messages: list[Message] = []
        while waiting:
            worker = self._worker = self._worker or Worker(self.clock)
            worker.ask([partial(self._run, ask) for ask in waiting])
            done = worker.answers([ask.deadline for ask in waiting])
            messages += done
            waiting = waiting[len(done) :]
            if waiting:
                late, waiting = waiting[0], waiting[1:]
                self._stuck[late.collector.name], self._worker = worker, None
                messages.append(self._late(late))
        return messages

    def close(self) -> None:
        """End the worker that waits; one that hangs ends when it can."""
        if self._worker is not None:
            self._worker.leave()
            self._worker = None

    def _free(self, name: str) -> bool:
        if name in self._stuck and self._stuck[name].returned:
            del self._stuck[name]
        return name not in self._stuck

    def _run(self, ask: Ask) -> Message:
        return run(ask.collector, ask.options, self.host, self.origin, self.clock, ask.every)

    def _late(self, ask: Ask) -> Message:
        return Message(
            origin=self.origin,
            collector=ask.collector.name,
            time=self.clock.wall() - ask.deadline,
            uptime=self.host.uptime() - ask.deadline,
            every=ask.every,
            status=Status.LATE,
            seconds=ask.deadline,
            error=f"no answer within {ask.deadline:g} s",
            missing={},
            rows={},
        )


class Worker:
    """A thread that does tasks one after the other and ends after `leave`."""

    def __init__(self, clock: Clock) -> None:
        self.returned = False
        """Whether it has ended: of one that was left to a run, whether that run returned."""
        self._clock = clock
        self._tasks: list[Callable[[], Message]] = []
        self._answers: list[Message] = []
        self._since = 0.0
        self._leaving = False
        self._lock = threading.Lock()
        # Held while there is nothing to do, and while not all is done.
        self._asked, self._done = threading.Lock(), threading.Lock()
        self._asked.acquire()
        self._done.acquire()
        # A daemon: a read that never returns must not keep the agent from stopping.
        threading.Thread(target=self._work, name="collect", daemon=True).start()

    def ask(self, tasks: list[Callable[[], Message]]) -> None:
        self._tasks, self._answers, self._since = tasks, [], self._clock.steady()
        self._asked.release()

    def answers(self, deadlines: list[float]) -> list[Message]:
        """What came of the tasks: of all, or of those before one that passed its deadline. To that one the worker is
        then left.
        """
        left = deadlines[0]
        while not self._done.acquire(timeout=max(0.0, left)):
            with self._lock:
                number = len(self._answers)
                if number == len(deadlines):
                    continue  # just now
                left = self._since + deadlines[number] - self._clock.steady()
                if left <= 0:
                    self._leaving = True
                    break
        # Ours alone then: large ones must not stay in memory until the next are asked for.
        found, self._answers, self._tasks = self._answers, [], []
        return found

    def leave(self) -> None:
        self._leaving = True
        self._asked.release()

    def _work(self) -> None:
        try:
            self._work_on()
        finally:
            # However it ends: a collector is skipped until the worker it was left to has.
            self.returned = True

    def _work_on(self) -> None:
        while not self._leaving:
            self._asked.acquire()
            for task in self._tasks:
                answer = task()
                with self._lock:
                    if self._leaving:
                        break
                    self._answers.append(answer)
                    self._since = self._clock.steady()
            else:
                self._done.release()
