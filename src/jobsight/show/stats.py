"""The stats API: `/api/health`, `/api/accounts`, `/api/jobs`, as the batch job stats server has them.

For Grafana's JSON data sources. Who asks is known as everywhere here, see `show.access`; an administrator sees their
own jobs first, and chooses by the header `X-Dashboard-User` whose to see: a user's, or `all`.
"""

import math
import pwd
import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from jobsight.compat import batchjob
from jobsight.serving import Stats
from jobsight.show.access import Viewer
from jobsight.show.views import View, Views
from jobsight.store.protocol import JobQuery, StoreError

CHOICE = "X-Dashboard-User"
ALL = "all"
DAY = 86400.0
USUAL, LONGEST = 7 * DAY, 30 * DAY
# More than any dashboard shows.
MOST = 20_000
# How far ids that are made of other things are looked for.
SEARCHED = 100_000
# Digits of the largest number a user can have.
LONGEST_NUMBER = 10
KINDS = {400: "bad_data", 401: "unauthorized", 503: "unavailable"}


class Wish(NamedTuple):
    """What a request for jobs asks for."""

    accounts: tuple[str, ...]
    numbers: tuple[str, ...]
    ids: frozenset[str]
    begun: float | None
    until: float | None


def wish(request: Request, now: float) -> Wish:
    """400 with a sentence for what cannot be."""
    given = request.query_params
    accounts, numbers, ids = (tuple(filter(None, given.getlist(name))) for name in ("account", "jobid", "jobuuid"))
    until = _seconds(given.get("to"), "to", now)
    begun = _seconds(given.get("from"), "from", until - USUAL)
    if numbers or ids:
        return Wish(accounts, numbers, frozenset(ids), None, None)
    if begun > until:
        raise HTTPException(400, "the window ends before it begins")
    if until - begun > LONGEST:
        raise HTTPException(400, "the window is longer than 30 days")
    return Wish(accounts, numbers, frozenset(ids), begun, until)


def _seconds(text: str | None, name: str, usual: float) -> float:
    if not text:
        return usual
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise HTTPException(400, f"{name}: expected seconds since 1970, got {text[:40]!r}")
    return number


def chosen(view: View, request: Request) -> View:
    """What is shown to whom: their own jobs, unless they may see others' and say whose."""
    if not view.viewer.everything:
        return view
    user = request.headers.get(CHOICE, "").strip() or view.viewer.name or ALL
    return view if user == ALL else view.by(Viewer(user))


def router(views: Views, options: Stats, clock: Callable[[], float] = time.time) -> APIRouter:
    routes = APIRouter(prefix="/api")

    @routes.get("/health")
    def health() -> Response:
        try:
            views.alive()
        except StoreError:
            return PlainTextResponse("KO", 503)
        return PlainTextResponse("OK")

    @routes.get("/accounts")
    def accounts(request: Request) -> Response:
        return _enveloped(lambda: ([{"id": name} for name in chosen(views(request), request).accounts()], ()))

    @routes.get("/jobs")
    def jobs(request: Request) -> Response:
        return _enveloped(lambda: _jobs(chosen(views(request), request), wish(request, clock()), options, clock()))

    return routes


def _enveloped(answer: Callable[[], tuple[list[Any], tuple[str, ...]]]) -> Response:
    headers = {"X-Content-Type-Options": "nosniff"}
    try:
        return JSONResponse(batchjob.envelope(*answer()), headers=headers)
    except HTTPException as error:
        kind, reason = KINDS.get(error.status_code, "internal"), str(error.detail)
        return JSONResponse(batchjob.refusal(kind, reason), error.status_code, {**headers, **(error.headers or {})})
    except StoreError as error:
        return JSONResponse(batchjob.refusal(KINDS[503], str(error)), 503, {**headers, "Retry-After": "10"})


def _jobs(view: View, asked: Wish, options: Stats, now: float) -> tuple[list[Any], tuple[str, ...]]:
    query = JobQuery(
        # What began then was also seen then or later, and that has an index.
        since=asked.begun, begun=asked.begun, until=asked.until, ids=asked.numbers, accounts=asked.accounts,
        limit=SEARCHED if asked.ids else MOST + 1,
    )  # fmt: skip
    found = []
    number = cache(user_number)
    for job in view.jobs(query, now):
        facts = {"uid": number(job["owner"])} | (job["batch"] or {})
        if job["state"] == "ended" and job["elapsed"] < options.shortest:
            continue
        if asked.ids and batchjob.job_id(job, facts, by_uid=options.uid_in_id) not in asked.ids:
            continue
        found.append(batchjob.fields(job, facts, by_uid=options.uid_in_id))
    more = (f"only the newest {MOST} jobs are listed",) if len(found) > MOST else ()
    return found[:MOST], more


def user_number(name: str) -> int | None:
    """As this machine knows it. Nodes may call an owner anything: what no name can be has no number."""
    try:
        return pwd.getpwnam(name).pw_uid
    except (KeyError, ValueError):
        return int(name) if name.isascii() and name.isdecimal() and len(name) <= LONGEST_NUMBER else None
