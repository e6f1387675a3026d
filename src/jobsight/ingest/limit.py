"""Bounds on what senders may ask of the server, and how they are told to come again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

# Senders somebody counts: beyond this many those who owe nothing are forgotten.
KNOWN = 10_000
# How soon to come again when all hands are full. Agents add their own jitter.
SOON = 2.0
# Tables whose rows are about the whole cluster, not about the node that sends them: other people's jobs among them.
CLUSTERWIDE = frozenset({"slurmjob", "slurmqueue", "slurmnode", "pbsjob", "emissionfactor"})


class BusyError(OSError):
    """Not now. An `append` with too much waiting raises it, or sets it on its future: senders hear 503 and when to
    come again.
    """

    def __init__(self, reason: str, after: float = 10.0) -> None:
        super().__init__(reason)
        self.after = after


class DeniedError(RuntimeError):
    """A request that is not taken: the status, a sentence, and what else the answer says."""

    def __init__(self, status: int, reason: str, after: float | None = None, **more: Any) -> None:
        super().__init__(reason)
        self.status = status
        self.after = after
        self.more = more

    def headers(self) -> dict[str, str]:
        found = {} if self.after is None else {"Retry-After": str(max(1, round(self.after)))}
        if self.status == 401:
            found["WWW-Authenticate"] = "Bearer"
        # What is still on its way is not worth waiting for.
        return found | ({"Connection": "close"} if self.status in (408, 413) else {})


class Limits(NamedTuple):
    """What one request may bring, and how many may come."""

    requests: int = 256
    """Bodies read at once; those beyond come again."""
    rate: int | None = None
    """Messages a second that one token may send on average."""
    packed: int = 64 * 2**20
    """Bytes of a compressed body. An agent sends one MiB."""
    unpacked: int = 256 * 2**20
    messages: int = 100_000
    quiet: float = 20.0
    """Seconds a body may pause."""
    whole: float = 300.0
    """Seconds a body may take."""
    speakers: tuple[str, ...] = ()
    """Nodes that speak for their cluster, see `CLUSTERWIDE`; any if not set."""


class Slots:
    """So many at once. Not a queue: who waits in one holds memory and a connection."""

    def __init__(self, count: int) -> None:
        self._free = count

    @contextmanager
    def one(self) -> Iterator[None]:
        if not self._free:
            raise DeniedError(503, "too many requests at once", SOON)
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1


class Rate:
    """So much a second on average from each, and `burst` seconds' worth at once."""

    def __init__(self, limit: float, clock: Callable[[], float], burst: float = 60.0) -> None:
        self._limit = limit
        self._most = limit * burst
        self._clock = clock
        # Who has used how much that time has not yet forgiven.
        self._debts: dict[str, tuple[float, float]] = {}

    def wait(self, who: str) -> float:
        """Seconds until more is taken; 0 if now."""
        over = self._debt(who) - self._most
        return 0.0 if over < 0 else over / self._limit + 1.0

    def count(self, who: str, amount: int) -> None:
        self._debts[who] = (self._debt(who) + amount, self._clock())
        if len(self._debts) > KNOWN:
            self._debts = {name: debt for name, debt in self._debts.items() if self._debt(name) > 0}
        if len(self._debts) > KNOWN:
            # So many at a time are an attack from many places; memory is worth more than the memory of it.
            self._debts.clear()

    def _debt(self, who: str) -> float:
        debt, since = self._debts.get(who, (0.0, 0.0))
        return max(0.0, debt - self._limit * (self._clock() - since))
