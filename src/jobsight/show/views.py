"""What there is to see, as plain values: the same for the API, the pages and the command line.

A `View` is the store as one viewer sees it, and the only way to the store for whatever answers requests.
"""

import math
from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi import Request

from jobsight.analyse.answers import answers, scaled
from jobsight.analyse.consumption import Consumption, outlook
from jobsight.analyse.lustrejob import AFTER, sizes, use
from jobsight.analyse.lustreload import Loads
from jobsight.analyse.profile import POINTS, profile
from jobsight.analyse.program import programs, unmapped
from jobsight.analyse.sites import USUAL_SITE, Asked, Site
from jobsight.analyse.stray import batch_nodes, strays
from jobsight.analyse.summary import summary
from jobsight.analyse.told import Told
from jobsight.analyse.utilisation import usage
from jobsight.metering import USUAL, Energy
from jobsight.serving import Stray
from jobsight.show.access import EVERYBODY, Admission, Viewer
from jobsight.store.embedded import Embedded
from jobsight.store.protocol import JobQuery, Store

# Running jobs that are shown with all their figures.
MOST = 10_000
# What a running job used in its last interval. Ten minutes hold that interval at any sensible sampling rate.
LATEST = """
SELECT job_key, source, sum(cores), sum(memory) FROM (
  SELECT job_key, source, node, arg_max(cpu_time / seconds, time) AS cores, arg_max(memory, time) AS memory
  FROM usage WHERE time > ? AND seconds > 0 GROUP BY job_key, source, node) AS last
GROUP BY job_key, source
"""


class View:
    """The store as one viewer sees it."""

    def __init__(self, store: Store, viewer: Viewer = EVERYBODY, energy: Energy = USUAL) -> None:
        self._store = store
        self.viewer = viewer
        self._energy = energy
        self.given: Mapping[str, Any] = {}
        """What settings say of findings."""
        self.watched = False
        """Whether somebody looks for them now and then."""

    def by(self, viewer: Viewer) -> "View":
        """The same store as another one sees it. Only for what this one may choose."""
        return View(self._store, viewer, self._energy)

    def nodes(self, now: float) -> list[dict[str, Any]]:
        """All nodes of the last week, with their state. Machines are everybody's; nothing here is of a user's."""
        found = []
        for node in self._store.nodes(now):
            silent = now > node.seen + 3 * node.every + 30
            state = "silent" if silent else "trouble" if node.troubles else "ok"
            used = node.memory - node.memory_available if node.memory and node.memory_available is not None else None
            found.append({**node._asdict(), "state": state, "memory_used": used})
        return found

    def jobs(self, query: JobQuery, now: float) -> list[dict[str, Any]]:
        """Jobs with their figures."""
        documents = self._store.jobs(query._replace(sight=self.viewer.sight), now)
        return [msgspec.to_builtins(summary(document, now)) for document in documents]

    def running(self, now: float) -> list[dict[str, Any]]:
        """Running jobs with what they use now; the mean over their life where the last interval is not known."""
        latest = self._latest(now)
        found = []
        for item in self.jobs(JobQuery(state="running", limit=MOST), now):
            cores, memory = latest.get((item["key"], item["source"]), (item["cores_mean"], item["memory_mean"]))
            whole = item["memory_limit"] and item["memory_limit"] * len(item["nodes"])  # limits are per node
            found.append({**item, "cores_now": cores, "memory_now": memory, "memory_whole": whole})
        return found

    def others(self, running: list[dict[str, Any]], now: float) -> list[dict[str, Any]]:
        """What jobs use that run too, where there are more than a list takes: `key`, `cores_now` and `memory_now`, no
        more, for nobody looks at each of them.
        """
        if len(running) < MOST:
            return []
        shown = {item["key"] for item in running}
        latest = self._latest(now)
        found = []
        for key in self._store.running(now, self.viewer.sight):
            if key not in shown:
                cores, memory = latest.get((key, "cgroup"), (None, None))
                # Who counts the totals of a job; see `analyse.summary.source_of`.
                if cores is None:
                    cores, memory = latest.get((key, "process"), (None, memory))
                found.append({"key": key, "cores_now": cores, "memory_now": memory})
        return found

    def _latest(self, now: float) -> dict[tuple[str, str], tuple[float | None, float | None]]:
        """Cores and memory of the last interval of each job, by key and source."""
        since = now - 600
        rows = self._store.query(LATEST, [since], (since, math.inf))
        return {(key, source): (cores, memory) for key, source, cores, memory in rows}

    def job(self, key: str, now: float, points: int = POINTS) -> dict[str, Any] | None:
        """One job whole, by its key. Somebody else's is not there, as one that never was."""
        document = self._store.job(key, self.viewer.sight)
        if document is None:
            return None
        whole = profile(self._store, document, now, points)
        answered = answers(self._store, document, whole.summary)
        whole.verdict = answered.verdict
        found: dict[str, Any] = msgspec.to_builtins(whole)
        found["answers"] = msgspec.to_builtins(answered)
        found["energy"] = self._energy_of(document, found["answers"], now)
        found["findings"] = self.told().about(document, now, look=not self.watched)
        return self._with_lustre(found)

    def _energy_of(self, document: dict[str, Any], answered: dict[str, Any], now: float) -> dict[str, Any] | None:
        """What a job took, which the answers then tell of, too; None where nothing measured it."""
        took = msgspec.to_builtins(self.consumption().of_job(document, now))
        if took is None:
            return None
        answered["cost"] = f"{answered['cost']} {outlook(took, answered['request'])}".strip()
        return dict(took)

    def _with_lustre(self, found: dict[str, Any]) -> dict[str, Any]:
        """A job with what it asked of a Lustre file system, where that is watched."""
        job = found["summary"]
        used = use(self._store, job["key"], job["started"], job["seen"])
        if used["targets"]:
            found["series"] |= {f"lustre_{name}": series for name, series in used.pop("series").items()}
            span = (job["started"], job["seen"] + AFTER)
            found["lustre"] = used | {"sizes": sizes(self._store, job["number"] or job["id"], job["nodes"], span)}
        return found

    def scaling(self, key: str, now: float) -> dict[str, Any] | None:
        """Whether a job will scale, from its run and from others of its program that are in sight."""
        document = self._store.job(key, self.viewer.sight)
        if document is None:
            return None
        found: dict[str, Any] = msgspec.to_builtins(scaled(self._store, document, now, self.viewer.sight))
        return found

    def named(self, name: str, now: float) -> list[dict[str, Any]]:
        """The jobs somebody may mean, by key or by id; newest first."""
        document = self._store.job(name, self.viewer.sight)
        if document:
            return [msgspec.to_builtins(summary(document, now))]
        return sorted(self.jobs(JobQuery(id=name), now), key=lambda item: -item["seen"])

    def strays(self, now: float, options: Stray) -> list[dict[str, Any]]:
        """Sessions on batch nodes that belong to no batch job."""
        running = self.jobs(JobQuery(state="running", limit=100_000), now)
        return strays(running, batch_nodes(self._store, now), options)

    def consumption(self) -> Consumption:
        """Energy, carbon and money."""
        return Consumption(self._store, self._energy, self.viewer.sight)

    def usage(self, site: Site, asked: Asked, now: float) -> dict[str, Any]:
        """How full the site is, by whom and when. ValueError for what cannot be asked, here and next."""
        found: dict[str, Any] = msgspec.to_builtins(usage(self._store, site, asked, now, self.viewer.sight))
        return found

    def programs(self, site: Site, asked: Asked, now: float) -> dict[str, Any]:
        """Which software was used how much."""
        found: dict[str, Any] = msgspec.to_builtins(programs(self._store, site, asked, now, self.viewer.sight))
        return found

    def unmapped(self, site: Site, asked: Asked, now: float) -> list[dict[str, Any]]:
        """Commands that no rule knows, by use."""
        found = unmapped(self._store, site, asked, now, self.viewer.sight)
        return [msgspec.to_builtins(row) for row in found]

    def loads(self) -> Loads:
        """Who loads the file system."""
        return Loads(self._store, self.viewer.sight)

    def told(self) -> Told:
        """What was found."""
        return Told(self._store, self.viewer.sight, self.given)

    def accounts(self) -> list[str]:
        """The accounts that jobs in sight are charged to."""
        return self._store.accounts(self.viewer.sight)

    def state(self) -> dict[str, Any]:
        """What the store holds, and what waits to be stored."""
        held = self._store.status().plain() if isinstance(self._store, Embedded) else {}
        return held | {"backlog": self._store.backlog()._asdict()}


class Views:
    """Gives every request its view."""

    def __init__(
        self, store: Store, admission: Admission, stray: Stray | None = None, energy: Energy = USUAL
    ) -> None:
        self._store = store
        self._admission = admission
        self._energy = energy
        self.given: Mapping[str, Any] = {}
        """What settings say of findings."""
        self.site = USUAL_SITE
        """What it says of itself for reports."""
        self.stray = stray or Stray()
        """What is none."""

    def __call__(self, request: Request) -> View:
        view = View(self._store, self._admission.viewer(request), self._energy)
        view.given, view.watched = self.given, True
        return view

    def alive(self) -> None:
        """StoreError if the store does not answer."""
        self._store.query("SELECT 1")
