"""The JSON API: `/api/v1/nodes`, `/api/v1/jobs`, `/api/v1/job/KEY`. What the pages and the command line read."""

import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query

from jobsight.formats import when
from jobsight.show import route  # noqa: F401  # the addresses' names
from jobsight.show.views import View, Views
from jobsight.store.protocol import JobQuery

STATES = ("pending", "running", "ended", "silent")


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
        plain: dict[str, Any] = {
            key: value or None for key, value in self.given.items() if key not in ("since", "until")
        }
        if plain["state"] not in (None, *STATES):
            raise HTTPException(400, f"no state {plain['state']!r}; there are {', '.join(STATES)}")
        try:
            since = when.instant(self.given["since"], now) if self.given["since"] else None
            until = when.instant(self.given["until"], now, end=True) if self.given["until"] else None
        except ValueError as error:
            raise HTTPException(400, str(error)) from None
        return JobQuery(since=since, until=until, limit=self.limit, **plain)


def router(views: Views, prefix: str = "/api/v1") -> APIRouter:
    routes = APIRouter(prefix=prefix)

    @routes.get("/nodes")
    def nodes(view: Annotated[View, Depends(views)]) -> list[dict[str, Any]]:
        return view.nodes(time.time())

    @routes.get("/jobs")
    def jobs(view: Annotated[View, Depends(views)], chosen: Annotated[Filter, Depends()]) -> list[dict[str, Any]]:
        now = time.time()
        return view.jobs(chosen.query(now), now)

    @routes.get("/job/{key:name}")
    def job(
        view: Annotated[View, Depends(views)], key: str, points: Annotated[int, Query(ge=10, le=20_000)] = 800
    ) -> dict[str, Any]:
        found = view.job(key, time.time(), points)
        if found is None:
            raise HTTPException(404, f"no job {key}")
        return found

    @routes.get("/scaling/{key:name}")
    def scaling(view: Annotated[View, Depends(views)], key: str) -> dict[str, Any]:
        found = view.scaling(key, time.time())
        if found is None:
            raise HTTPException(404, f"no job {key}")
        return found

    @routes.get("/strays")
    def stray(view: Annotated[View, Depends(views)]) -> list[dict[str, Any]]:
        return view.strays(time.time(), views.stray)

    @routes.get("/named/{name:name}")
    def named(view: Annotated[View, Depends(views)], name: str) -> list[dict[str, Any]]:
        return view.named(name, time.time())

    @routes.get("/store")
    def state(view: Annotated[View, Depends(views)]) -> dict[str, Any]:
        if not view.viewer.everything:
            raise HTTPException(403, "what the store holds is for administrators")
        return view.state()

    return routes
