"""The JSON API: `/api/nodes`, `/api/jobs`, `/api/job/KEY`. What the pages and the command line read."""

import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query

from jobsight.formats import when
from jobsight.show import views
from jobsight.store.embedded import Embedded
from jobsight.store.protocol import JobQuery, Store

STATES = ("running", "ended", "silent")


class Filter:
    """The filters of a job list, as they stand in an address. Empty means any."""

    def __init__(
        self,
        since: str = "24h",
        until: str = "",
        owner: str = "",
        node: str = "",
        command: str = "",
        scheduler: str = "",
        state: str = "",
        text: str = "",
        limit: Annotated[int, Query(ge=1, le=100_000)] = 1000,
    ) -> None:
        self.given = {
            "since": since, "until": until, "owner": owner, "node": node, "command": command,
            "scheduler": scheduler, "state": state, "text": text,
        }  # fmt: skip
        self.limit = limit

    def query(self, now: float) -> JobQuery:
        """400 with a sentence for a time nobody can read."""
        plain = {key: value or None for key, value in self.given.items() if key not in ("since", "until")}
        if plain["state"] not in (None, *STATES):
            raise HTTPException(400, f"no state {plain['state']!r}; there are {', '.join(STATES)}")
        try:
            since = when.instant(self.given["since"], now) if self.given["since"] else None
            until = when.instant(self.given["until"], now, end=True) if self.given["until"] else None
        except ValueError as error:
            raise HTTPException(400, str(error)) from None
        return JobQuery(since=since, until=until, limit=self.limit, **plain)


def router(store: Store) -> APIRouter:
    routes = APIRouter(prefix="/api")

    @routes.get("/nodes")
    def nodes() -> list[dict[str, Any]]:
        return views.nodes(store, time.time())

    @routes.get("/jobs")
    def jobs(chosen: Annotated[Filter, Depends()]) -> list[dict[str, Any]]:
        now = time.time()
        return views.jobs(store, chosen.query(now), now)

    @routes.get("/job/{key:path}")
    def job(key: str, points: Annotated[int, Query(ge=10, le=20_000)] = 800) -> dict[str, Any]:
        found = views.job(store, key, time.time(), points)
        if found is None:
            raise HTTPException(404, f"no job {key}")
        return found

    @routes.get("/named/{name:path}")
    def named(name: str) -> list[dict[str, Any]]:
        return views.named(store, name, time.time())

    if isinstance(store, Embedded):

        @routes.get("/store")
        def state() -> dict[str, Any]:
            return store.status().plain()

    return routes
