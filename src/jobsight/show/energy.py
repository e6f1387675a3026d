"""Energy's page and its API: `/energy`, `/api/v1/energy`: who took how much, and that the parts are the whole."""

import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse
from msgspec import to_builtins

from jobsight.analyse.consumption import KINDS, Consumption, grams, quality, watthours
from jobsight.analyse.takings import Asked
from jobsight.formats import when
from jobsight.show.pages import page
from jobsight.show.stack import stack
from jobsight.show.views import View, Views

HOUR, DAY = 3600.0, 86400.0
# Bars of the chart at the most.
BARS = 62


class Wanted:
    """Of which time and by what, as it stands in an address."""

    def __init__(self, by: str = "user", since: str = "7d", until: str = "") -> None:
        self.by, self.since, self.until = by, since, until

    def asked(self, now: float) -> Asked:
        """400 with a sentence for what nobody can read."""
        if self.by not in KINDS:
            raise HTTPException(400, f"no way {self.by!r} to list by; there are {', '.join(KINDS)}")
        try:
            since = when.instant(self.since or "7d", now)
            until = when.instant(self.until, now, end=True) if self.until else now
        except ValueError as error:
            raise HTTPException(400, str(error)) from None
        if since >= until:
            raise HTTPException(400, "since must be before until")
        return Asked(since, until)


def answer(consumption: Consumption, wanted: Wanted, now: float, *, everything: bool = True) -> dict[str, Any]:
    """The same for a request and for whoever has the store open."""
    asked = wanted.asked(now)
    found = to_builtins(consumption.listing(wanted.by, asked, now))
    return {
        "by": wanted.by,
        "since": asked.since,
        "until": asked.until,
        "rows": found,
        "waiting": consumption.waiting,
        "law": law(to_builtins(consumption.listing("part", asked, now))) if everything else None,
    }


def law(parts: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Jobs, system and idle, and what the nodes took as it was measured: they must be the same."""
    if not any(part["grade"] for part in parts):
        return None
    sums = {part["name"]: part["energy"] for part in parts}
    whole = sum(part["whole"] or 0.0 for part in parts)
    total = sum(sums.values())
    currencies = {part["currency"] for part in parts} - {None}
    return {
        "jobs": sums.get("job", 0.0),
        "system": sums.get("system", 0.0),
        "idle": sums.get("idle", 0.0),
        "measured": whole,
        "residual": abs(total - whole) / whole if whole > 0 else 0.0,
        "emissions": sum(part["emissions"] for part in parts),
        "cost": sum(part["cost"] or 0.0 for part in parts) if len(currencies) == 1 else None,
        "currency": currencies.pop() if len(currencies) == 1 else None,
    }


def router(views: Views) -> APIRouter:
    routes = APIRouter()

    @routes.get("/api/v1/energy")
    def told(view: Annotated[View, Depends(views)], wanted: Annotated[Wanted, Depends()]) -> dict[str, Any]:
        return answer(view.consumption(), wanted, time.time(), everything=view.viewer.everything)

    @routes.get("/energy", response_class=HTMLResponse)
    def shown(request: Request, view: Annotated[View, Depends(views)], wanted: Annotated[Wanted, Depends()]) -> Any:
        return _shown(request, view, wanted)

    return routes


def _shown(request: Request, view: View, wanted: Wanted) -> HTMLResponse:
    now, trouble, drawn = time.time(), "", None
    found: dict[str, Any] = {"rows": [], "law": None, "waiting": 0}
    try:
        asked = wanted.asked(now)
        consumption = view.consumption()
        found = answer(consumption, wanted, now, everything=view.viewer.everything)
        width = step(asked.until - asked.since)
        if found["rows"]:
            steps = consumption.timeline(wanted.by, asked, now, width)
            drawn = stack(steps, asked.since, asked.until, width)
    except HTTPException as error:
        trouble = error.detail
    return page(
        request, "energy.html", 400 if trouble else 200, viewer=view.viewer, cluster="", wanted=wanted, found=found,
        trouble=trouble, drawn=drawn, said=said(found, own=not view.viewer.everything), kinds=KINDS,
        watthours=watthours, grams=grams, quality=quality,
        factors=sorted({factor for row in found["rows"] for factor in row["factors"]}),
    )  # fmt: skip


def said(found: dict[str, Any], *, own: bool) -> str:
    """What there is to know, in a sentence."""
    rows = [row for row in found["rows"] if row["grade"]]
    if not rows:
        return "No energy is known of this time."
    total = sum(row["energy_full"] for row in rows)
    carbon = sum(row["emissions"] for row in rows)
    currencies = {row["currency"] for row in rows} - {None}
    text = f"{'Your jobs' if own else 'All nodes'} took {watthours(total)}, which caused {grams(carbon)} of CO₂e"
    if len(currencies) == 1:
        text += f" and cost {sum(row['cost'] or 0.0 for row in rows):.2f} {currencies.pop()}"
    return f"{text}."


def step(seconds: float) -> float:
    """How long a bar is: hours or days."""
    return next((width for width in (HOUR, 3 * HOUR, 6 * HOUR, DAY, 7 * DAY) if seconds / width <= BARS), 30 * DAY)
