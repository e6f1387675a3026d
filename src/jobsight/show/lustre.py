"""The file system's page and its API: `/io`, `/api/v1/io/targets`, `/api/v1/io/panels`, `/api/v1/io/top`."""

import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import HTMLResponse

from jobsight.analyse.lustre import COUNTERS, OPERATIONS, counters, unit
from jobsight.analyse.lustreload import BY, Loads, checked, word
from jobsight.formats import number, when
from jobsight.show.pages import page
from jobsight.show.views import View, Views

# What is shown of a target where nothing was chosen.
FIRST = {"ost": "write_bytes", "mdt": "open"}
WHATS = ("targets", "panels", "top")


class Asked:
    """What is asked of the file system, as it stands in an address."""

    def __init__(
        self,
        target: str = "",
        operation: str = "",
        since: str = "24h",
        until: str = "",
        by: str = "user",
        most: Annotated[int, Query(ge=1, le=10_000)] = 50,
    ) -> None:
        self.target, self.operation, self.by, self.most = target, operation, by, most
        self.since, self.until = since, until

    def span(self, now: float) -> tuple[float, float]:
        """400 with a sentence for what nobody can read."""
        try:
            since = when.instant(self.since or "24h", now)
            until = when.instant(self.until, now, end=True) if self.until else now
        except ValueError as error:
            raise HTTPException(400, str(error)) from None
        if since >= until:
            raise HTTPException(400, "since must be before until")
        return since, until

    def check(self) -> None:
        if not self.target:
            raise HTTPException(400, "say which target")
        if self.by not in BY:
            raise HTTPException(400, f"no way {self.by!r} to list by; there are {', '.join(BY)}")
        try:
            checked(self.operation)
        except ValueError as error:
            raise HTTPException(400, str(error)) from None


def answer(loads: Loads, what: str, asked: Asked, now: float) -> Any:
    """The same for a request and for whoever has the store open."""
    since, until = asked.span(now)
    if what == "targets":
        return [{**row, "signal": word(row["trend"])} for row in loads.targets(since, until)]
    asked.check()
    if what == "panels":
        return loads.panels(asked.target, asked.operation, since, until)
    return loads.top(asked.target, asked.operation, since, until, asked.by, asked.most)


def router(views: Views) -> APIRouter:
    routes = APIRouter()

    @routes.get("/api/v1/io/{what}")
    def told(view: Annotated[View, Depends(views)], what: str, asked: Annotated[Asked, Depends()]) -> Any:
        if what not in WHATS:
            raise HTTPException(404, f"no {what!r}; there are {', '.join(WHATS)}")
        return answer(view.loads(), what, asked, time.time())

    @routes.get("/io", response_class=HTMLResponse)
    def shown(request: Request, view: Annotated[View, Depends(views)], asked: Annotated[Asked, Depends()]) -> Any:
        return _page(request, view, asked, request.query_params.get("from", ""), request.query_params.get("to", ""))

    return routes


def _page(request: Request, view: View, asked: Asked, begin: str, end: str) -> HTMLResponse:
    """Targets, the three panels of one, and who made them: of the whole time, or of a peak that was pointed at."""
    now, trouble = time.time(), ""
    loads = view.loads()
    targets: list[dict[str, Any]] = []
    lists: dict[str, list[dict[str, Any]]] = {}
    peak = None
    try:
        since, until = asked.span(now)
        targets = answer(loads, "targets", asked, now)
        _choose(asked, targets)
        if asked.target:
            asked.check()
            peak = _peak(begin, end, since, until)
            first, last = peak or (since, until)
            kinds = ("user", "job") if peak or until - since <= 2 * 86400 else ("user",)
            lists = {by: loads.top(asked.target, asked.operation, first, last, by, 15) for by in kinds}
    except HTTPException as error:
        trouble = error.detail
    kind = next((row["kind"] for row in targets if row["target"] == asked.target), "ost")
    return page(
        request, "io.html", 400 if trouble else 200, cluster="", viewer=view.viewer, trouble=trouble, targets=targets,
        said=sentence(targets), asked=asked, kind=kind, lists=lists, peak=peak, counted=_counted, short=brief,
        operations=[name for name in counters(kind) if name in OPERATIONS], own=not view.viewer.everything,
    )  # fmt: skip


def _choose(asked: Asked, targets: list[dict[str, Any]]) -> None:
    """The busiest target, and an operation that it has, where none was chosen."""
    kinds = {row["target"]: row["kind"] for row in targets}
    if not asked.target and targets:
        asked.target = max(targets, key=lambda row: (row["written_rate"] or 0) + (row["read_rate"] or 0))["target"]
    kind = kinds.get(asked.target, "ost")
    if asked.operation in COUNTERS and asked.operation not in counters(kind):
        asked.operation = ""
    asked.operation = asked.operation or FIRST[kind]


def _peak(begin: str, end: str, since: float, until: float) -> tuple[float, float] | None:
    try:
        first, last = float(begin), float(end)
    except ValueError:
        return None
    return (first, last) if since - 3600 <= first < last <= until + 3600 else None


def sentence(targets: list[dict[str, Any]]) -> str:
    """How things stand."""
    if not targets:
        return "No Lustre server was heard of in this time."
    parts = []
    objects = [row for row in targets if row["kind"] == "ost"]
    if objects:
        moved = [sum(row[name] or 0 for row in objects) for name in ("read_rate", "written_rate")]
        parts.append(
            f"{len(objects)} object target{'s' * (len(objects) != 1)} gave {number.volume(moved[0])}/s "
            f"and took {number.volume(moved[1])}/s"
        )
    names = [row for row in targets if row["kind"] == "mdt"]
    if names:
        rate = sum(row["metadata_rate"] or 0 for row in names)
        parts.append(f"{len(names)} metadata target{'s' * (len(names) != 1)} did {number.digits(rate)} operations/s")
    rising = [row["target"] for row in targets if row["signal"] == "rising"]
    if rising:
        parts.append(f"{', '.join(rising[:3])}{' and others' * (len(rising) > 3)} above the day's mean now")
    return "; ".join(parts) + "."


def brief(seconds: float | None) -> str:
    """A time that is mostly far less than a second."""
    if seconds is None:
        return "—"
    return number.scaled(1e6 * seconds, 1000, ("µs", "ms", "s"))


def _counted(amount: float | None, operation: str, per: str = "") -> str:
    """Bytes as bytes, operations as a number."""
    if amount is None:
        return "—"
    return (number.volume(amount) if unit(operation) == "bytes" else number.digits(amount)) + per
