"""The pages: server-rendered, no build step; charts are drawn in the browser from the API's columns."""

import os
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates

from jobsight import __version__
from jobsight.analyse.consumption import grams, watthours
from jobsight.formats import number
from jobsight.show import comparison, route  # noqa: F401  # the addresses' names
from jobsight.show.api import Filter
from jobsight.show.facts import exit_of, facts, shown
from jobsight.show.lately import Lately
from jobsight.show.views import View, Views

RANGES = {"1h": "last 1 h", "24h": "last 24 h", "7d": "last 7 d", "30d": "last 30 d", "": "all time"}
# Everything comes from here. Bokeh lays its charts out with inline styles; it needs no inline script and no eval.
POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; frame-ancestors 'self'"
# Jobs side by side on one page.
COLUMNS = 5
NONE: list[str] = []
# How a machine is, worst first.
WORDS = ("silent", "failing collectors", "overloaded", "busy", "partly busy", "idle", "load not known")


def router(views: Views) -> APIRouter:
    routes = APIRouter(default_response_class=HTMLResponse)
    lately: Lately[bytes] = Lately()

    @routes.get("/")
    def start(request: Request, view: Annotated[View, Depends(views)]) -> HTMLResponse:
        # With ten thousand machines a second's work, for each who looks.
        body = lately.made((view.viewer, str(request.base_url)), lambda: bytes(started(request, view).body))
        return _ours(HTMLResponse(body))

    @routes.get("/jobs")
    def jobs(
        request: Request, view: Annotated[View, Depends(views)], chosen: Annotated[Filter, Depends()]
    ) -> HTMLResponse:
        now, found, trouble = time.time(), [], ""
        try:
            found = view.jobs(chosen.query(now), now)
        except HTTPException as error:
            trouble = error.detail
        return _page(
            request, "jobs.html", 400 if trouble else 200, cluster=cluster(found), jobs=found, given=chosen.given,
            viewer=view.viewer, limit=chosen.limit, trouble=trouble, now=now,
            states=Counter(job["state"] for job in found),
            sort=request.query_params.get("sort", ""), order=request.query_params.get("order", ""),
        )  # fmt: skip

    @routes.get("/job/{key:name}")
    def job(request: Request, view: Annotated[View, Depends(views)], key: str) -> HTMLResponse:
        return explained(request, view, key)

    @routes.get("/compare")
    def compare(
        request: Request, view: Annotated[View, Depends(views)], job: Annotated[list[str], Query()] = NONE
    ) -> HTMLResponse:
        now = time.time()
        # Somebody else's is as one that never was.
        found = [one for key in job[:COLUMNS] if (one := view.job(key, now, 10))]
        missing = len(job[:COLUMNS]) - len(found)
        trouble = "" if found else "An address that names two jobs or more shows them here: /compare?job=KEY&job=KEY."
        return _page(
            request, "compare.html", jobs=found, rows=comparison.rows(found) if found else [], viewer=view.viewer,
            heads=[comparison.name(one) for one in found], cluster=cluster([one["summary"] for one in found]),
            trouble=f"{_count(missing, 'job')} not found." if missing else trouble,
        )  # fmt: skip

    return routes


def explained(request: Request, view: View, key: str) -> HTMLResponse:
    """The page of one job."""
    now = time.time()
    found = view.job(key, now, 10)
    if found is None:
        return _page(request, "lost.html", 404, key=key, cluster="", viewer=view.viewer)
    figures = found["summary"]
    every = figures["every"]
    return _page(
        request, "job.html", cluster=figures["cluster"], profile=found, job=figures, viewer=view.viewer,
        reasons=reasons(figures, found["missing"]), commands=shares(figures["commands"]), every=every,
        next=max(1, round(figures["seen"] + every - now)), scaling=view.scaling(key, now),
        facts=facts(figures),
    )  # fmt: skip


def started(request: Request, view: View) -> HTMLResponse:
    """The start page."""
    now = time.time()
    nodes = view.nodes(now)
    squares = [square(node) for node in nodes]
    running = view.running(now)
    others = view.others(running, now)
    running.sort(key=lambda job: (-(job["cpus"] or 0), -(job["cores_now"] or 0), -(job["memory_now"] or 0)))
    return _page(
        request, "start.html", cluster=cluster(nodes), nodes=nodes, viewer=view.viewer,
        answer=answer(nodes, [*running, *others], own=not view.viewer.everything), count=len(running) + len(others),
        squares=squares, words=WORDS, counts=Counter(look["word"] for look in squares), jobs=running, now=now,
    )  # fmt: skip


def cluster(rows: list[dict[str, Any]]) -> str:
    """The name of the one there is."""
    names = sorted({row["cluster"] for row in rows})
    return names[0] if len(names) == 1 else f"{len(names)} clusters" if names else ""


def answer(nodes: list[dict[str, Any]], jobs: list[dict[str, Any]], *, own: bool = False) -> str:
    """How things stand, in a sentence. `own`: these are not all the jobs there are."""
    if not nodes:
        return "No machine has been heard of yet."
    states = Counter(node["state"] for node in nodes)
    heard = [node for node in nodes if node["state"] != "silent"]
    said = _count(len(nodes), "machine")
    if not heard:
        return f"{said}, {'silent' if len(nodes) == 1 else 'all silent'}: what runs there now is not known."
    if states["silent"]:
        said += f", {states['silent']} silent"
    if states["trouble"]:
        said += f", {states['trouble']} with failing collectors"
    cores = number.cores(sum(job["cores_now"] or 0 for job in jobs))
    memory = number.size(sum(job["memory_now"] or 0 for job in jobs))
    said += f"; {_count(len(jobs), 'job')}{' of yours' if own else ''} {'uses' if len(jobs) == 1 else 'use'} {cores}"
    said += f" of {sum(node['cpus'] or 0 for node in heard)} cores"
    return f"{said} and {memory} of {number.size(sum(node['memory'] or 0 for node in heard))} of memory."


def _count(many: int, noun: str) -> str:
    return f"{many} {noun}" if many == 1 else f"{many} {noun}s"


def square(node: dict[str, Any]) -> dict[str, Any]:
    """A node as the grid shows it: how full, in what state, and both in words."""
    load, cpus = node["load"], node["cpus"]
    full = None if load is None or not cpus else load / cpus
    if node["state"] == "silent":
        word = "silent"
    elif node["state"] == "trouble":
        word = "failing collectors"
    elif full is None:
        word = "load not known"
    else:
        word = "idle" if full < 0.1 else "partly busy" if full < 0.75 else "busy" if full < 1.25 else "overloaded"
    return {"full": min(1.0, full or 0.0), "word": word}


def reasons(job: dict[str, Any], missing: dict[str, str]) -> dict[str, str]:
    """What to say in the place of a number that is not there."""
    group = job["source"] == "cgroup"
    said = {name: f"— {reason}" for name, reason in missing.items()}
    return {
        "cpu": "— not known before the second sample",
        "memory": said.get("memory_anon", "— memory controller off" if group else "— not seen"),
        "io": said.get("written", "— io controller off" if group else "— not seen"),
        "threads": "— pids controller off" if group else "— not seen",
    }


def shares(commands: dict[str, float]) -> list[dict[str, Any]]:
    """Commands by CPU time, largest first, with their part of the whole."""
    whole = sum(commands.values())
    ordered = sorted(commands.items(), key=lambda item: -item[1])
    return [{"name": name, "cpu": cpu, "part": cpu / whole if whole else None} for name, cpu in ordered]


def job_link(key: str) -> str:
    return "/job/" + quote(key, safe="")


def compare_link(runs: list[dict[str, Any]], key: str) -> str:
    """A job beside some other runs of its program."""
    others = [run["key"] for run in runs if run["key"] != key][: COLUMNS - 1]
    return "/compare?" + urlencode([("job", one) for one in (key, *others)])


def jobs_link(**filters: str) -> str:
    """The job list with these filters; empty ones are left out, but for an empty `since`, which means all time."""
    return "/jobs?" + urlencode({key: value for key, value in filters.items() if value or key == "since"})


def part(used: float | None, given: float | None) -> str:
    """Width of a meter's bar."""
    return "0%" if used is None or not given else f"{min(1.0, max(0.0, used / given)):.1%}"


def utc(seconds: float) -> str:
    """To be read by people."""
    instant = _instant(seconds)
    return "— not a time" if instant is None else instant.strftime("%Y-%m-%d %H:%M:%S UTC")


def iso(seconds: float) -> str:
    """To be read by the browser, which shows it in the reader's zone."""
    instant = _instant(seconds)
    return "" if instant is None else instant.isoformat(timespec="seconds")


def _instant(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):  # one agent's broken clock must not break everybody's list
        return None


TEMPLATES = Jinja2Templates(directory=os.path.join(os.path.dirname(__file__), "templates"))
TEMPLATES.env.trim_blocks = TEMPLATES.env.lstrip_blocks = True
TEMPLATES.env.filters |= {
    "energy": watthours,
    "grams": grams,
    "size": number.size,
    "volume": number.volume,
    "cores": number.cores,
    "ratio": number.ratio,
    "duration": number.duration,
    "utc": utc,
    "iso": iso,
}
TEMPLATES.env.globals |= {
    "job_link": job_link, "jobs_link": jobs_link, "compare_link": compare_link, "part": part, "ranges": RANGES,
    "version": __version__, "shown": shown, "exit_of": exit_of,
}  # fmt: skip


def _page(request: Request, name: str, status: int = 200, **values: Any) -> HTMLResponse:
    return _ours(TEMPLATES.TemplateResponse(request, name, values, status))


def _ours(answered: HTMLResponse) -> HTMLResponse:
    answered.headers["Content-Security-Policy"] = POLICY
    return answered


# For pages that have a file of their own.
page = _page
