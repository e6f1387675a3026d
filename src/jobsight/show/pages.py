"""The pages: server-rendered, no build step; charts are drawn in the browser from the API's columns."""

import os
import time
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates

from jobsight.formats import number
from jobsight.show import views
from jobsight.show.api import Filter
from jobsight.store.protocol import JobQuery, Store

TEMPLATES = Jinja2Templates(directory=os.path.join(os.path.dirname(__file__), "templates"))
TEMPLATES.env.filters |= {
    "size": number.size,
    "volume": number.volume,
    "cores": number.cores,
    "ratio": number.ratio,
    "duration": number.duration,
    "utc": lambda seconds: datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
    "iso": lambda seconds: datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds"),
}


def router(store: Store) -> APIRouter:
    routes = APIRouter(default_response_class=HTMLResponse)

    @routes.get("/")
    def start(request: Request) -> HTMLResponse:
        now = time.time()
        nodes = views.nodes(store, now)
        running = views.jobs(store, JobQuery(state="running", limit=500), now)
        running.sort(key=lambda job: -(job["cores_mean"] or 0))
        return _page(request, "start.html", nodes=nodes, jobs=running, now=now)

    @routes.get("/jobs")
    def jobs(request: Request, chosen: Annotated[Filter, Query()]) -> HTMLResponse:
        now = time.time()
        found = views.jobs(store, chosen.query(now), now)
        return _page(request, "jobs.html", jobs=found, given=chosen.given, limit=chosen.limit, now=now)

    @routes.get("/job/{key:path}")
    def job(request: Request, key: str) -> HTMLResponse:
        now = time.time()
        found = views.job(store, key, now)
        if found is None:
            raise HTTPException(404, f"no job {key}")
        return _page(request, "job.html", profile=found, job=found["summary"], now=now)

    return routes


def _page(request: Request, name: str, **values: Any) -> HTMLResponse:
    return TEMPLATES.TemplateResponse(request, name, values)
