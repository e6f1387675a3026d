"""The pages of utilisation and programs and their API: `/usage`, `/programs`, `/api/v1/usage`, `/api/v1/programs`,
`/api/v1/unmapped`.
"""

import time
from collections.abc import Callable
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse

from jobsight.analyse.calendar import WEEKDAYS
from jobsight.analyse.programmap import MapError
from jobsight.analyse.sites import Asked
from jobsight.analyse.utilisation import DIMENSIONS
from jobsight.formats import number
from jobsight.show.lately import Lately
from jobsight.show.pages import page
from jobsight.show.views import View, Views

T = TypeVar("T")
# Rows of a table on a page; all of them are in the exports.
MOST = 300
PERIODS = ("7d", "30d", "month", "last month", "365d")
WATT_HOUR = 3600.0
HOURS = 3600.0


def wanted(
    by: str = "",
    since: str = "",
    until: str = "",
    period: str = "",
    owner: str = "",
    account: str = "",
    partition: str = "",
    program: str = "",
    cluster: str = "",
) -> Asked:
    """What is asked for, as it stands in an address."""
    return Asked(by, since, until, period, owner, account, partition, program, cluster)


def answered(ask: Callable[[], T]) -> T:
    """400 with a sentence for what cannot be asked; a map that cannot be read is not the asker's fault."""
    try:
        return ask()
    except MapError as error:
        raise HTTPException(500, f"the map of programs: {error}") from None
    except ValueError as error:
        raise HTTPException(400, str(error)) from None


def router(views: Views) -> APIRouter:
    routes = APIRouter()
    # A year of a large site is half a second's work, for each who looks.
    lately: Lately[dict[str, Any]] = Lately()

    def report(view: View, asked: Asked, what: str) -> Any:
        ask = {"usage": view.usage, "programs": view.programs, "unmapped": view.unmapped}[what]
        version = answered(views.site.maps.current).version
        key = (what, view.viewer, asked, version)
        return answered(lambda: lately.made(key, lambda: {"found": ask(views.site, asked, time.time())}))["found"]

    @routes.get("/api/v1/usage")
    def usage(view: Annotated[View, Depends(views)], asked: Annotated[Asked, Depends(wanted)]) -> Any:
        return report(view, asked, "usage")

    @routes.get("/api/v1/programs")
    def programs(view: Annotated[View, Depends(views)], asked: Annotated[Asked, Depends(wanted)]) -> Any:
        return report(view, asked, "programs")

    @routes.get("/api/v1/unmapped")
    def unmapped(view: Annotated[View, Depends(views)], asked: Annotated[Asked, Depends(wanted)]) -> Any:
        return report(view, asked, "unmapped")

    def shown(request: Request, view: View, asked: Asked, what: str) -> HTMLResponse:
        found, trouble, status = None, "", 200
        try:
            found = report(view, asked, what)
        except HTTPException as error:
            trouble, status = error.detail, error.status_code
        return page(
            request, f"{what}.html", status, viewer=view.viewer, cluster="", asked=asked, found=found,
            trouble=trouble, dimensions=DIMENSIONS, periods=[*PERIODS, *views.site.periods], most=MOST,
            weekdays=WEEKDAYS, said=said(found, what) if found else "", cpu_hours=cpu_hours, energy=energy,
            colour=colour, link=lambda **changed: link(what, asked, **changed),
        )  # fmt: skip

    @routes.get("/usage", response_class=HTMLResponse)
    def usage_page(
        request: Request, view: Annotated[View, Depends(views)], asked: Annotated[Asked, Depends(wanted)]
    ) -> Any:
        return shown(request, view, asked, "usage")

    @routes.get("/programs", response_class=HTMLResponse)
    def programs_page(
        request: Request, view: Annotated[View, Depends(views)], asked: Annotated[Asked, Depends(wanted)]
    ) -> Any:
        return shown(request, view, asked, "programs")

    return routes


def link(what: str, asked: Asked, **changed: str) -> str:
    """The same page with something else chosen."""
    given = {name: value for name, value in (asked._asdict() | changed).items() if value}
    return f"/{what}?{urlencode(given)}"


def said(found: dict[str, Any], what: str) -> str:
    """What there is to know, in a sentence."""
    if what == "programs":
        if not found["used"]:
            return "Nothing was counted in this time."
        first = next((row["program"] for row in found["rows"] if row["program"]), "")
        known = f"{number.ratio(1 - found['unmapped'] / found['used'])} of it by programs that the map knows"
        return f"{cpu_hours(found['used'])} of CPU time, {known}{f', the most by {first}' if first else ''}."
    whole = found["whole"]
    if not whole["total"]:
        return "No hour of this time has been counted."
    up = whole["total"] - whole["down"]
    text = f"{number.ratio(whole['allocated'] / up if up else None)} of what could be had was given to jobs"
    text += f", and {number.ratio(whole['used'] / up if up else None)} was used"
    if whole["down"] > 0:
        text += f"; {number.ratio(whole['down'] / whole['total'])} of all was down"
    if whole["demand"]:
        # Of the time that was counted, which may begin long after what was asked for.
        mean = whole["demand"] / (found["counted"] - found["steps"][0]["time"])
        text += f"; on average jobs waited for {number.cores(mean)} CPUs"
    return f"{text}."


def cpu_hours(seconds: float | None) -> str:
    """CPU time by the hour: 1 230 h."""
    return number.MISSING if seconds is None else f"{number.digits(seconds / HOURS)} h"


def energy(joules: float | None) -> str:
    return number.MISSING if joules is None else number.scaled(joules / WATT_HOUR, 1000, ("Wh", "kWh", "MWh", "GWh"))


def colour(ratio: float | None) -> str:
    """How much of a cell's colour shows."""
    return "0" if ratio is None else f"{min(1.0, max(0.0, ratio)):.3f}"
