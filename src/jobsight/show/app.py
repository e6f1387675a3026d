"""The web application: ingest, API and pages over one store."""

import os

import bokeh
from fastapi import FastAPI, Request
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles

from jobsight import __version__
from jobsight.ingest import http
from jobsight.ingest.quarantine import Quarantine
from jobsight.show import api, pages
from jobsight.store.protocol import Store, StoreError

HERE = os.path.dirname(__file__)
BOKEH = os.path.join(os.path.dirname(bokeh.__file__), "server", "static", "js")


def application(store: Store, quarantine: Quarantine, token: str | None = None, *, local: bool = False) -> FastAPI:
    """Everything the server answers. A `local` one answers to local names only: a page from elsewhere that gives our
    address another name must not read here.
    """
    app = FastAPI(title="jobsight", version=__version__, docs_url=None, redoc_url=None)
    if local:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    app.add_exception_handler(StoreError, _away)
    app.include_router(http.router(store.append, quarantine, token))
    app.include_router(api.router(store))
    app.include_router(pages.router(store))
    app.mount("/static", StaticFiles(directory=os.path.join(HERE, "static")), "static")
    # Bokeh's JavaScript comes out of its wheel: clusters have no internet.
    app.mount("/bokeh", StaticFiles(directory=BOKEH), "bokeh")
    return app


def _away(_: Request, error: Exception) -> JSONResponse:
    """A database that does not answer now will soon."""
    return JSONResponse({"detail": str(error)}, 503, {"Retry-After": "10"})
