"""A simulated cluster: its truth, and the messages its nodes would send.

cluster = Cluster(Wish(seed=7, nodes=20, days=2))
fill(cluster, store)
cluster.truths
"""

from collections.abc import Callable, Iterator

import msgspec

from jobsight.schema.message import Message
from jobsight.schema.wire import envelope
from jobsight.simulate.lustrefeed import Feed, Servers
from jobsight.simulate.lustrework import of_jobs
from jobsight.simulate.plan import Plan, Wish, plan
from jobsight.simulate.sampler import Sampler, Sampling
from jobsight.simulate.truth import Truth
from jobsight.store.protocol import Store

# Messages are made and loaded by slices of about this many.
SLICE = 10_000


class Cluster:
    """Its messages can be had once, from begin to end: nodes walk forward."""

    def __init__(
        self, wish: Wish | None = None, sampling: Sampling | None = None, servers: Servers | None = None
    ) -> None:
        """With `servers` its jobs use a Lustre file system, which tells of it too."""
        self.plan: Plan = plan(wish or Wish())
        self._feed = None if servers is None else Feed(servers, of_jobs(self.plan.truths, servers.seed))
        self.sampling = sampling or Sampling()
        self._samplers = [Sampler(self.plan, node, self.sampling) for node in self.plan.site.nodes]
        self._time = self.plan.wish.begin

    @property
    def truths(self) -> tuple[Truth, ...]:
        return self.plan.truths

    def messages(self, until: float | None = None) -> Iterator[Message]:
        """What all nodes send from where the last call ended to before `until`, node after node."""
        since = self._time
        self._time = max(since, self.plan.end if until is None else until)
        for sampler in self._samplers:
            yield from sampler.messages(since, self._time)
        if self._feed is not None:
            yield from self._feed.messages(since, self._time)

    def pace(self, every: float) -> None:
        """Sample so often from now on."""
        self.sampling = self.sampling._replace(every=every)
        for sampler in self._samplers:
            sampler.sampling = self.sampling

    def slices(self, until: float) -> Iterator[float]:
        """Times at which to stop on the way, so that no more is made at a time than fits in memory."""
        seconds = max(
            self.sampling.every,
            SLICE * self.sampling.every / (len(self._samplers) * len(self.sampling.collectors)),
        )
        time = self._time
        while time < until:
            time = min(until, time + seconds)
            yield time


def fill(
    cluster: Cluster, store: Store, until: float | None = None, tell: Callable[[float, int], None] = lambda *_: None
) -> int:
    """Send what nodes send up to a time, or to the end, to a store as if it had come from them; how many messages.
    `tell` hears how far it is, and how many they were.
    """
    total = 0
    for time in cluster.slices(cluster.plan.end if until is None else until):
        lines = [line(message) for message in cluster.messages(time)]
        if lines:
            store.append(lines).result()
        total += store.digest()
        tell(time, total)
    return total


def line(message: Message) -> bytes:
    """A message as a store takes it. `accept` lets it through as it is, so nobody need ask: a test does."""
    return msgspec.json.encode(envelope(message))
