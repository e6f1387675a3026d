"""Pages and API of utilisation and programs: what everybody may see, and what only whom it is about."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.calendar import Calendar, zone
from jobsight.analyse.keeper import open_store
from jobsight.analyse.programmap import Maps
from jobsight.analyse.sites import Site
from jobsight.analyse.tending import settle
from jobsight.serving import Access
from jobsight.store.embedded import Embedded
from tests.analyse.estate import HOUR, Estate
from tests.show.conftest import Reached

PROXY = "198.51.100.7"
ACCESS = Access(admins=("root2",), trusted_proxies=("198.51.100.0/24",))
OCTOBER = "period=2026-10"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Embedded]:
    opened, estate = open_store(str(tmp_path / "store")), Estate(3)
    opened.append(estate.lines).result(30)
    opened.digest()
    settle(opened, estate.end + 2 * HOUR)
    yield opened
    opened.close()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    own = tmp_path / "own.tsv"
    own.write_text("exact\town_code\tOur code\tours\n")
    return Site(Calendar(zone("Europe/Oslo")), Maps(str(own)), {"autumn": "2026-10-01..2026-10-31"})


def by(name: str) -> dict[str, str]:
    return {"X-Grafana-User": name}


def parts(report: dict[str, Any]) -> dict[str, float]:
    return {row["name"]: row["used"] for row in report["rows"] if row["kind"] == "part"}


def test_a_user_sees_their_own_rows_and_the_anonymous_whole(reached: Reached, site: Site) -> None:
    client = reached(PROXY, access=ACCESS, site=site)
    everything = client.get(f"/api/v1/usage?{OCTOBER}", by("root2")).json()
    assert set(parts(everything)) == {"ada", "bob", "carol"}
    for dimension in ("user", "account", "partition", "program", "node", "day", "weekday"):
        text = client.get(f"/api/v1/usage?{OCTOBER}&by={dimension}", by("ada")).text
        assert not re.search(r"\b(bob|carol)\b", text)
        assert json.loads(text)["whole"]["total"] == pytest.approx(everything["whole"]["total"])
    own = client.get(f"/api/v1/usage?{OCTOBER}", by("ada")).json()
    assert parts(own) == pytest.approx({"ada": parts(everything)["ada"]})
    (others,) = [row for row in own["rows"] if row["kind"] == "others"]
    assert others["used"] == pytest.approx(parts(everything)["bob"] + parts(everything)["carol"])
    assert own["whole"]["own_used"] == pytest.approx(parts(everything)["ada"])


def test_asking_for_somebody_else_shows_nothing_of_them(reached: Reached, site: Site) -> None:
    client = reached(PROXY, access=ACCESS, site=site)
    for path in ("usage", "programs", "unmapped"):
        answer = client.get(f"/api/v1/{path}?{OCTOBER}&owner=bob", by("ada"))
        found = answer.json()
        rows = found if path == "unmapped" else found["rows"]
        assert not [row for row in rows if row.get("kind", "part") == "part"]
    assert parts(client.get(f"/api/v1/usage?{OCTOBER}&owner=bob&by=account", by("root2")).json())


def test_programs_of_a_user_name_nobody_else(reached: Reached, site: Site) -> None:
    client = reached(PROXY, access=ACCESS, site=site)
    for path in (f"/api/v1/programs?{OCTOBER}", f"/programs?{OCTOBER}", f"/usage?{OCTOBER}&by=program"):
        answer = client.get(path, by("ada"))
        assert answer.status_code == 200
        assert not re.search(r"\b(bob|carol)\b", answer.text)
    rows = client.get(f"/api/v1/programs?{OCTOBER}", by("root2")).json()["rows"]
    assert "Our code" in {row["program"] for row in rows}
    assert any(len(row["owners"]) > 1 for row in rows)


def test_who_is_not_known_sees_nothing(reached: Reached, site: Site) -> None:
    client = reached(PROXY, access=ACCESS, site=site)
    for path in ("/usage", "/programs", "/api/v1/usage", "/api/v1/programs", "/api/v1/unmapped"):
        assert client.get(path).status_code == 401


def test_pages_show_the_answer_the_law_and_every_way_to_list(reached: Reached, site: Site) -> None:
    client = reached(site=site)
    page = client.get(f"/usage?{OCTOBER}").text
    assert "of what could be had was given to jobs" in page
    assert "all there was" in page
    assert "Hours and days" not in page
    assert "Europe/Oslo" in page
    assert page.count("<td title=") == 2 * 7 * 24
    for dimension in ("account", "partition", "program", "node", "hour", "day", "month", "weekday", "hour-of-day"):
        assert client.get(f"/usage?{OCTOBER}&by={dimension}").status_code == 200
    assert "autumn" in page
    assert client.get("/usage?period=autumn").status_code == 200
    programs = client.get(f"/programs?{OCTOBER}").text
    assert "VASP" in programs
    assert 'href="/programs?period=2026-10&amp;program=chemistry%2Fquantum"' in programs
    assert "chemistry" in client.get(f"/programs?{OCTOBER}&by=tag").text


def test_what_cannot_be_asked_is_told_in_a_sentence(reached: Reached, site: Site) -> None:
    client = reached(site=site)
    for query, said in (
        ("by=colour", "no way to report by"),
        ("since=soon", "expected a time"),
        ("period=x", "no period"),
    ):
        answer = client.get(f"/api/v1/usage?{query}")
        assert answer.status_code == 400
        assert said in answer.json()["detail"]
        page = client.get(f"/usage?{query}")
        assert page.status_code == 400
        assert said in page.text


def test_a_changed_map_shows_at_once_and_a_broken_one_says_where(
    reached: Reached, site: Site, tmp_path: Path
) -> None:
    client, own = reached(site=site), tmp_path / "own.tsv"

    def names() -> set[str]:
        return {row["program"] for row in client.get(f"/api/v1/programs?{OCTOBER}").json()["rows"]}

    assert "Our code" in names()
    own.write_text("exact\town_code\tNew name\n")
    assert names() & {"Our code", "New name"} == {"New name"}
    own.write_text("exact\town_code\tNew name\nregex\t(\tBad\n")
    answer = client.get(f"/api/v1/programs?{OCTOBER}")
    assert answer.status_code == 500
    assert "own.tsv, line 2" in answer.json()["detail"]
    assert "own.tsv, line 2" in client.get(f"/programs?{OCTOBER}").text


def test_an_empty_time_says_what_would_be_there(reached: Reached, site: Site) -> None:
    client = reached(site=site)
    assert "No hour of this time has been counted" in client.get("/usage?period=2025").text
    assert "Hours appear here" in client.get("/programs?period=2025").text
