"""What was found: `/findings`, `/api/v1/findings`, `/api/v1/backtest`, and that somebody knows of it."""

import time
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, HTTPException, Query, Request
from fastapi.responses import HTMLResponse

from jobsight import catalogue
from jobsight.analyse.standing import STATES
from jobsight.analyse.told import Chosen
from jobsight.formats import when
from jobsight.settings import SettingsError
from jobsight.show.grouping import BY, KINDS, groups, wasted
from jobsight.show.pages import page
from jobsight.show.views import View, Views
from jobsight.store.protocol import StoreError

# What a page from elsewhere cannot send: a browser asks first, and is not allowed.
OURS = "X-Jobsight"
NONE: list[str] = []
# Rows on a page; the rest is in the export.
MOST = 500
# By which filter one of a group's names is chosen.
FILTERS = {"code": "code", "user": "owner", "account": "account", "node": "node"}


class Asked:
    """The filters of a list of findings, as they stand in an address. Empty means any."""

    def __init__(
        self,
        since: str = "7d",
        until: str = "",
        owner: str = "",
        account: str = "",
        node: str = "",
        code: str = "",
        state: str = "",
    ) -> None:
        self.given = {
            "since": since, "until": until, "owner": owner, "account": account, "node": node, "code": code,
            "state": state,
        }  # fmt: skip

    def chosen(self, now: float) -> Chosen:
        """400 with a sentence for what cannot be."""
        try:
            return chosen(self.given, now)
        except StoreError as error:
            raise HTTPException(400, str(error)) from None


def chosen(given: Mapping[str, str], now: float) -> Chosen:
    """Filters as they are written, understood; StoreError with a sentence for what cannot be."""
    code, state = given.get("code", ""), given.get("state", "")
    if code and code not in catalogue.finding_names():
        raise StoreError(f"no finding {code!r}; there are {', '.join(catalogue.finding_names())}")
    if state and state not in STATES:
        raise StoreError(f"no state {state!r}; there are {', '.join(STATES)}")
    try:
        since = when.instant(given.get("since") or "7d", now)
        until = when.instant(given["until"], now, end=True) if given.get("until") else now
    except ValueError as error:
        raise StoreError(str(error)) from None
    plain = {name: given.get(name, "") for name in ("owner", "account", "node")}
    return Chosen(since, until, code=code, state=state, **plain)


def router(views: Views) -> APIRouter:
    routes = APIRouter()

    @routes.get("/api/v1/findings")
    def listed(view: Annotated[View, Depends(views)], asked: Annotated[Asked, Depends()]) -> list[dict[str, Any]]:
        return view.told().kept(asked.chosen(time.time()))

    @routes.get("/api/v1/backtest")
    def backtest(
        view: Annotated[View, Depends(views)],
        asked: Annotated[Asked, Depends()],
        tried: Annotated[list[str], Query()] = NONE,
    ) -> dict[str, Any]:
        if not view.viewer.everything:
            raise HTTPException(403, "trying thresholds is for administrators")
        now = time.time()
        try:
            return view.told().backtest(asked.chosen(now), tried, now)
        except SettingsError as error:
            raise HTTPException(400, str(error)) from None

    @routes.post("/api/v1/finding/{number}")
    def acknowledge(
        view: Annotated[View, Depends(views)],
        number: str,
        note: Annotated[str, Query(max_length=1000)] = "",
        ours: Annotated[str, Header(alias=OURS)] = "",
    ) -> dict[str, str]:
        if not ours:
            raise HTTPException(403, f"a request that changes something needs the header {OURS}")
        if not view.told().acknowledge(number, view.viewer.name or "somebody", note, time.time(), look=False):
            raise HTTPException(404, f"no finding {number}")
        return {"acknowledged": number}

    @routes.get("/findings", response_class=HTMLResponse)
    def shown(request: Request, view: Annotated[View, Depends(views)], asked: Annotated[Asked, Depends()]) -> Any:
        return _page(request, view, asked, request.query_params.get("by", "code"))

    return routes


def _page(request: Request, view: View, asked: Asked, by: str) -> HTMLResponse:
    now, found, trouble = time.time(), [], ""
    try:
        found = view.told().kept(asked.chosen(now))
    except HTTPException as error:
        trouble = error.detail
    names = sorted({one["cluster"] for one in found})
    way = by if by in BY else "code"
    return page(
        request, "findings.html", 400 if trouble else 200, cluster=names[0] if len(names) == 1 else "",
        findings=found[:MOST], count=len(found), groups=groups(found, way), by=way, ways=list(BY), filters=FILTERS,
        asked=asked.given, trouble=trouble, viewer=view.viewer, codes=catalogue.findings(), states=STATES, most=MOST,
        titles={one.code: one.title for one in catalogue.findings()} if way == "code" else {},
        total={kind: wasted(found, kind) for kind in KINDS},
    )  # fmt: skip
