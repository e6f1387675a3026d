"""The resident agent: what is due is run, what was run is handed to every sink."""

import gc
import os
import select
import signal
import sys
from collections.abc import Callable

from jobsight import catalogue
from jobsight.agent.notify import Notify
from jobsight.agent.origin import origin
from jobsight.agent.runner import Ask, Runner
from jobsight.agent.schedule import Schedule
from jobsight.clock import Clock
from jobsight.collect.agent import Tally
from jobsight.drivers.notebook import Notebook
from jobsight.host import Host
from jobsight.schema.message import Message, Status
from jobsight.settings import Destination, Settings
from jobsight.ship.sink import Place, Sink

# Seconds until it is said once more that messages are lost.
AGAIN = 3600.0


def open_sinks(settings: Settings, host: Host, clock: Clock) -> list[Sink]:
    """The destinations; standard output if none is set."""
    place = Place(settings.node or host.node(), settings.spool, clock, host.keep(Tally))
    chosen = settings.sinks or (Destination("stdout", catalogue.sink("stdout").Options()),)
    sinks: list[Sink] = []
    try:
        for name, options in chosen:
            sinks.append(catalogue.sink(name).open_sink(options, place))
    except BaseException:
        # Their threads and spools would live on beside those of the next attempt.
        for sink in sinks:
            sink.close()
        raise
    return sinks


def settle() -> None:
    """Tell the garbage collector that what is loaded stays, and that rows come by the thousand: left to itself it
    would look through all of them at every sample. What it is for, cycles after errors, can wait.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


class Agent:
    """One life of the agent with one set of settings."""

    def __init__(
        self, settings: Settings, host: Host, clock: Clock, sinks: list[Sink], *, once: bool = False
    ) -> None:
        """With `once` its messages say that nobody knows when the next come."""
        self._once = once
        self._plans = {plan.name: plan for plan in settings.collect if plan.enabled}
        self._collectors = {name: catalogue.collector(name) for name in self._plans}
        self._runner = Runner(host, origin(settings, host), clock)
        self._tally = host.keep(Tally)
        host.keep(Notebook).folder = os.path.join(os.path.dirname(settings.lock) or ".", "read")
        self._clock = clock
        self._sinks = sinks
        self._state: dict[str, Status] = {}
        self._losses: dict[int, float] = {}
        self.schedule = Schedule({name: plan.every for name, plan in self._plans.items()}, clock.wall())

    def step(self) -> None:
        """Run what is due now."""
        plans = [self._plans[name] for name in self.schedule.due(self._clock.wall())]
        asks = [
            Ask(self._collectors[plan.name], plan.options, plan.deadline, None if self._once else plan.every)
            for plan in plans
        ]
        for message in self._runner.run_all(asks):
            self._hand_over(message)

    def close(self) -> None:
        self._runner.close()

    def _hand_over(self, message: Message) -> None:
        self._tally.messages += 1
        self._tally.failed += message.status in (Status.FAILED, Status.LATE)
        self._log_change(message)
        for sink in self._sinks:
            try:
                sink.send(message)
            except OSError as error:
                self._tally.dropped += 1
                self._log_loss(message.collector, error)

    def _log_loss(self, collector: str, error: OSError) -> None:
        """A full disk is worth one line an hour; the messages it costs are counted."""
        now, kind = self._clock.steady(), error.errno or 0
        if now - self._losses.get(kind, now - AGAIN) >= AGAIN:
            self._losses[kind] = now
            print(f"jobsight: {collector}: lost a message: {error}", file=sys.stderr, flush=True)

    def _log_change(self, message: Message) -> None:
        """A collector that starts or stops failing is worth one line; one that goes on failing is not."""
        before = self._state.get(message.collector, Status.OK)
        self._state[message.collector] = message.status
        bad = message.status in (Status.FAILED, Status.LATE)
        if bad and message.status != before:
            print(
                f"jobsight: {message.collector}: {message.status}: {message.error}",
                file=sys.stderr,
                flush=True,
            )
        elif before in (Status.FAILED, Status.LATE) and not bad:
            print(f"jobsight: {message.collector}: works again", file=sys.stderr, flush=True)


class Signals:
    """SIGTERM and SIGINT stop, SIGHUP reloads; waiting is cut short by any of them."""

    def __init__(self, *, leash: bool = False) -> None:
        """On a `leash` the end of standard input stops as well."""
        self.stop = False
        self.reload = False
        self._watched = [sys.stdin.fileno()] if leash else []
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGHUP, self._on_reload)

    def wait(self, seconds: float) -> None:
        if not (self.stop or self.reload):
            ready, _, _ = select.select([self._read, *self._watched], [], [], seconds)
            if self._read in ready:
                os.read(self._read, 1024)
            self.stop = self.stop or any(not os.read(fd, 1024) for fd in self._watched if fd in ready)

    def _on_stop(self, *_: object) -> None:
        self.stop = True

    def _on_reload(self, *_: object) -> None:
        self.reload = True


def serve(load: Callable[[], Settings], root: str, clock: Clock, signals: Signals, notify: Notify) -> None:
    """Sample until told to stop. A reload with settings that cannot be keeps the old ones and says so."""
    settings = load()
    settle()
    host = Host(root)
    sinks = open_sinks(settings, host, clock)
    notify.say("READY=1")
    while True:
        agent = Agent(settings, host, clock, sinks)
        while not (signals.stop or signals.reload):
            agent.step()
            notify.say("WATCHDOG=1")
            signals.wait(min(agent.schedule.wait(clock.wall()), notify.every or 3600.0))
        notify.say("STOPPING=1" if signals.stop else "RELOADING=1")
        agent.close()
        for sink in sinks:
            sink.close()
        host.close()
        if signals.stop:
            return
        signals.reload = False
        host = Host(root)
        settings, sinks = _reloaded(load, settings, host, clock)
        notify.say("READY=1")


def _reloaded(
    load: Callable[[], Settings], current: Settings, host: Host, clock: Clock
) -> tuple[Settings, list[Sink]]:
    """The new settings with their sinks, or the old ones if the new do not work."""
    try:
        fresh = load()
        sinks = open_sinks(fresh, host, clock)
    except (ValueError, OSError) as error:
        print(f"jobsight: settings not reloaded: {error}", file=sys.stderr, flush=True)
        return current, open_sinks(current, host, clock)
    print("jobsight: settings reloaded", file=sys.stderr, flush=True)
    return fresh, sinks
