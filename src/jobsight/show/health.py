"""`GET /health`: for what stands in front of several servers, or watches one."""

from typing import Any

from fastapi import APIRouter

from jobsight import __version__
from jobsight.store.protocol import Store


def router(store: Store) -> APIRouter:
    routes = APIRouter()

    @routes.get("/health")
    def health() -> dict[str, Any]:
        """200 while the store answers, else 503 and a sentence."""
        store.query("SELECT 1")
        return {"status": "ok", "version": __version__, "digests": store.digests}

    return routes
