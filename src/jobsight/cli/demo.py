"""A simulated cluster with its dashboard: something to look at in a minute. Nothing of this machine is read.

Machines, people and jobs are made up from a seed: good jobs, and each kind of bad one. A day of them is made and
stored, ending now; then they go on living. Ctrl-C ends it and removes what it made, unless --home says where to keep
it.
"""

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from jobsight.cli.arguments import FailedError, WrongUseError, parser, seconds, sentences, settings_of

if TYPE_CHECKING:
    from jobsight.cli.load import Progress
    from jobsight.simulate.cluster import Cluster

DAY = 86400.0
# How often the past is sampled. More often is more to load before there is anything to see.
EVERY = 300.0
# At most so far apart are samples from then on: a newcomer wants to see something move. On the way there so many are
# taken of each pace.
LIVELY = 40.0
STEPS = 10
# Days for which it can go on.
AHEAD = 2.0
# What a demonstration can do without: nothing shows it yet, and every message takes its time.
SPARED = ("cpu", "disk", "network", "agent")
LARGEST = 2000
# So long the file system has been watched (seconds).
FILES = 6 * 3600.0


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("demo", __doc__)
    accept.add_argument("--nodes", type=int, default=40, help="machines, from 8 on (40)")
    accept.add_argument("--days", type=float, default=1.0, help="days of the past (1)")
    accept.add_argument("--seed", type=int, default=1, help="another number, another cluster (1)")
    accept.add_argument(
        "--every", metavar="SECONDS", type=seconds, default=EVERY, help="seconds between samples (300)"
    )
    accept.add_argument("--listen", metavar="HOST:PORT", default="127.0.0.1:9020", help="default 127.0.0.1:9020")
    accept.add_argument("--home", metavar="DIR", help="keep the store there; removed at the end if not said")
    given = accept.parse_args(arguments)
    if not 8 <= given.nodes <= LARGEST:
        raise WrongUseError(f"--nodes: expected 8 to {LARGEST}, got {given.nodes}")
    if not 0.05 <= given.days <= 366:
        raise WrongUseError(f"--days: expected 0.05 to 366, got {given.days:g}")
    try:
        from jobsight.show.server import ListenError, listen, serve, url
        from jobsight.store.protocol import StoreError
    except ModuleNotFoundError as error:
        raise FailedError(f"the server needs {error.name}: pip install 'jobsight[server]'") from None
    settings = settings_of(None)
    settings = settings._replace(serve=settings.serve._replace(listen=given.listen))
    try:
        with _home(given.home) as path:
            asked = _asked_to_stop()
            link = listen(given.listen)
            cluster = _made(given.nodes, given.days, given.seed, given.every)
            _load(cluster, path, asked)
            print(f"jobsight: dashboard at {url(link, secure=False)}/   ({_end(given.home)})", flush=True)
            live = Live(cluster, path)
            serve(settings._replace(store=settings.store._replace(path=path)), link, before_stop=live.stop)
    except (ListenError, StoreError) as error:
        raise FailedError(str(error)) from None
    return 0


def _end(home: str | None) -> str:
    return f"Ctrl-C stops; data stays in {home}" if home else "Ctrl-C stops and removes it"


@contextmanager
def _home(given: str | None) -> Iterator[str]:
    """The store's place: a folder for this time only, or a new one that stays."""
    if given is not None:
        path = os.path.abspath(given)
        if os.path.isdir(path) and os.listdir(path):
            raise FailedError(f"{path} is not empty; `jobsight serve --store {path}` shows what an earlier demo made")
        yield path
        return
    path = tempfile.mkdtemp(prefix="jobsight-demo-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _made(nodes: int, days: float, seed: int, every: float) -> "Cluster":
    from jobsight.simulate.cluster import Cluster
    from jobsight.simulate.lustreclient import Faults
    from jobsight.simulate.lustrefeed import Servers
    from jobsight.simulate.plan import Wish
    from jobsight.simulate.sampler import ALL, Sampling

    begin = float(int(time.time() - days * DAY))
    collectors = tuple(name for name in ALL if name not in SPARED)
    wish = Wish(seed=seed, nodes=nodes, days=days, begin=begin, ahead=AHEAD)
    # An entry must be seen twice before it may go. Of a whole day it would be half of what there is to load.
    pace, since = max(EVERY, every), begin + days * DAY - FILES
    files = Servers(wish.cluster, every=pace, interval=3 * pace, faults=Faults(), seed=seed, since=since)
    return Cluster(wish, Sampling(every, collectors), files)


def _asked_to_stop() -> threading.Event:
    """Set by Ctrl-C or a polite kill, until the server takes over: neither may break a store in the middle of its
    work.
    """
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    return asked


def _load(cluster: "Cluster", path: str, asked: threading.Event) -> None:
    from jobsight.analyse.keeper import open_store
    from jobsight.cli.load import Progress
    from jobsight.formats.number import duration
    from jobsight.simulate.cluster import fill

    store, progress = open_store(path), Progress(sys.stderr)
    plan, done = cluster.plan, 0
    progress.total = int(plan.end - plan.wish.begin)
    try:
        for until, every in _paces(plan.end, cluster.sampling.every):
            cluster.pace(every)
            done += fill(cluster, store, until, partial(_tell, progress, asked, plan.wish.begin, done))
    finally:
        store.close()
    jobs, nodes = len(cluster.plan.seen()), len(cluster.plan.site.nodes)
    print(f"jobsight: {nodes} machines, {jobs} jobs, {done} messages in {duration(progress.end())}", flush=True)


def _tell(
    progress: "Progress", asked: threading.Event, begin: float, before: int, time: float, messages: int
) -> None:
    if asked.is_set():
        raise KeyboardInterrupt
    progress.show(int(time - begin), before + messages)


def _paces(end: float, every: float) -> list[tuple[float, float]]:
    """Until when to sample how often: more often towards the end, and at most twice as often at a time, so that no
    node seems to have been silent.
    """
    paces = [every]
    while paces[-1] > LIVELY:
        paces.append(paces[-1] / 2)
    found = []
    for pace in reversed(paces):
        found.append((end, pace))
        end -= STEPS * pace
    return found[::-1]


class Live:
    """The cluster goes on: what its nodes send from now on goes the way of all messages."""

    def __init__(self, cluster: "Cluster", path: str) -> None:
        self._cluster = cluster
        self._path = path
        self._waiting: list[bytes] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="demo", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _go_on(self) -> None:
        while not self._stop.wait(1.0) and time.time() < self._cluster.plan.last:
            self._waiting += self._lines()
            try:
                self._send()
            except FailedError:
                # Not yet there, or no longer: it is tried again with what comes next.
                continue
        if not self._stop.is_set():
            print(
                f"jobsight: the demo has no plans beyond {AHEAD:g} days; start it again", file=sys.stderr, flush=True
            )

    def _lines(self) -> list[bytes]:
        from jobsight.simulate.cluster import line

        return [line(message) for message in self._cluster.messages(time.time())]

    def _send(self) -> None:
        from jobsight.cli.door import Remote
        from jobsight.show import notice

        server = notice.read(self._path)
        if server is None or not self._waiting:
            return
        door = Remote(server, notice.token(self._path))
        try:
            door.hand_in(self._waiting)
            self._waiting = []
        finally:
            door.close()
