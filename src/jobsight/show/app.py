"""The web application: ingest, API and pages over one store."""

import os
from collections.abc import Mapping
from typing import Any

import bokeh
from fastapi import FastAPI, Request
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles

from jobsight import __version__
from jobsight.analyse.sites import USUAL_SITE, Site
from jobsight.exporter.webconfig import Watched
from jobsight.ingest import enrol, http
from jobsight.ingest.gate import Gate
from jobsight.ingest.limit import Limits
from jobsight.ingest.quarantine import Quarantine
from jobsight.ingest.shortcut import Shortcut
from jobsight.ingest.token import Tokens
from jobsight.metering import USUAL, Energy
from jobsight.serving import Access, Stats, Stray
from jobsight.show import api, energy, health, lustre, pages, stats, usage
from jobsight.show import findings as finding_pages
from jobsight.show.access import Admission
from jobsight.show.guard import Guard, Private
from jobsight.show.views import Views
from jobsight.store.protocol import Store, StoreError

HERE = os.path.dirname(__file__)
BOKEH = os.path.join(os.path.dirname(bokeh.__file__), "server", "static", "js")

# What this machine calls itself; the last as releases of the framework before 1.0 read the one before.
LOCAL = ["127.0.0.1", "localhost", "[::1]", "["]


def application(
    store: Store,
    quarantine: Quarantine,
    tokens: Tokens,
    gate: Gate,
    limits: Limits,
    *,
    local: bool = False,
    shown: bool = True,
    access: Access | None = None,
    statistics: Stats | None = None,
    stray: Stray | None = None,
    web: Watched | None = None,
    metering: Energy = USUAL,
    findings: Mapping[str, Any] | None = None,
    site: Site = USUAL_SITE,
) -> FastAPI:
    """Everything the server answers; pages and API only if it is to be `shown`. A `local` one answers to local names
    only: a page from elsewhere that gives our address another name must not read here.
    """
    app = FastAPI(title="jobsight", version=__version__, docs_url=None, redoc_url=None)
    take = http.receiver(store.append, quarantine, gate, limits)
    app.add_middleware(Shortcut, answer=take, trouble=StoreError, excuse=_away)
    if local:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=LOCAL)
    if access is not None:
        app.add_middleware(Private)
    if web is not None:
        app.add_middleware(Guard, watched=web)
    app.add_exception_handler(StoreError, _away)
    app.include_router(http.router(take))
    app.include_router(enrol.router(tokens))
    app.include_router(health.router(store))
    if not shown:
        return app
    views = Views(store, Admission(access), stray, metering)
    views.site = site
    views.given = findings or {}
    app.include_router(api.router(views))
    app.include_router(stats.router(views, statistics or Stats()))
    # The addresses of before the stats API took /api/jobs.
    app.include_router(api.router(views, "/api"), include_in_schema=False)
    for topic in (pages, lustre, finding_pages, energy, usage):
        app.include_router(topic.router(views))
    app.mount("/static", StaticFiles(directory=os.path.join(HERE, "static")), "static")
    # Bokeh's JavaScript comes out of its wheel: clusters have no internet.
    app.mount("/bokeh", StaticFiles(directory=BOKEH), "bokeh")
    return app


def _away(_: Request, error: Exception) -> JSONResponse:
    """A database that does not answer now will soon."""
    return JSONResponse({"detail": str(error)}, 503, {"Retry-After": "10"})
