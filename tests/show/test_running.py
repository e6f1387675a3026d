"""How much runs now, also where there is more of it than is shown."""

import re
import time
from typing import Any

import pytest

from jobsight.show import views
from jobsight.show.access import Viewer
from jobsight.show.views import View
from jobsight.store.embedded import Embedded

Reached = Any


def test_start_page_counts_jobs_beyond_those_it_shows(reached: Reached, monkeypatch: pytest.MonkeyPatch) -> None:
    def said() -> str:
        found = re.search(r'<h1 class="answer">(.*)</h1>', reached().get("/").text)
        assert found
        return found[1]

    whole = said()
    assert "4 jobs use" in whole
    monkeypatch.setattr(views, "MOST", 2)
    assert said() == whole


def test_jobs_beyond_those_shown_are_the_others_each_once(store: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    everything = {job["key"]: (job["cores_now"], job["memory_now"]) for job in View(store).running(now)}
    monkeypatch.setattr(views, "MOST", 1)
    view = View(store)
    shown = view.running(now)
    others = {job["key"]: (job["cores_now"], job["memory_now"]) for job in view.others(shown, now)}
    assert len(shown) == 1
    assert others == {key: used for key, used in everything.items() if key != shown[0]["key"]}


def test_nobody_counts_jobs_he_may_not_see(store: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "MOST", 0)
    view = View(store, Viewer("nobody"))
    assert view.others([], time.time()) == []
