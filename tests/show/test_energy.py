"""Energy on its page, in the API and on a job's page; and nobody else's."""

import time
from urllib.parse import quote

import pytest

from jobsight.metering import Energy
from jobsight.serving import Access
from jobsight.show.stack import HEIGHT, OTHERS, stack
from jobsight.store.embedded import Embedded
from jobsight.store.protocol import JobQuery
from tests.show.conftest import JOBS, Reached
from tests.store.contract import _line

PROXY = "198.51.100.7"
ACCESS = Access(admins=("root2",), trusted_proxies=("198.51.100.0/24",))


@pytest.fixture
def metered(store: Embedded) -> Embedded:
    """Each job's node has a meter that says 500 W."""
    now = time.time()
    lines = [
        _line("ipmi", now - ago, {"source": ["ipmi-dcmi"], "power": [500.0], "age": [0.0]}, node)
        for *_, node in JOBS.values()
        for ago in (60, 45, 30, 15, 1)
    ]
    store.append(lines).result(10)
    store.digest()
    return store


def test_the_api_lists_who_took_how_much_and_that_it_adds_up(reached: Reached, metered: Embedded) -> None:
    told = reached().get("/api/v1/energy?by=user&since=2h").json()
    assert {"ada", "bob", "carol"} <= {row["name"] for row in told["rows"]}
    whole = sum(row["energy_full"] for row in told["rows"])
    law = told["law"]
    assert whole == pytest.approx(law["measured"], rel=1e-9)
    assert law["jobs"] + law["system"] + law["idle"] == pytest.approx(law["measured"], rel=1e-9)
    assert law["residual"] <= 1e-9
    # Four nodes, a minute, 500 W.
    assert law["measured"] == pytest.approx(4 * 59 * 500.0, rel=0.05)
    assert metered is not None


def test_the_page_has_the_figures_the_law_and_the_chart(reached: Reached, metered: Embedded) -> None:
    page = reached().get("/energy?since=2h")
    assert page.status_code == 200
    for words in (
        "All nodes took",
        "= jobs + system + idle, exactly",
        "<rect",
        "ada",
        "grade A (ipmi)",
        "owid WORLD",
    ):
        assert words in page.text
    assert metered is not None


def test_without_a_meter_the_page_says_what_would_be_there(reached: Reached) -> None:
    page = reached().get("/energy?since=2h")
    assert page.status_code == 200
    assert "No energy is known of this time" in page.text
    assert reached().get("/api/v1/energy").json()["rows"] == []


@pytest.mark.parametrize("address", ["by=colour", "since=yesterdayish", "since=1h&until=2h"])
def test_what_nobody_can_read_is_a_sentence(reached: Reached, address: str) -> None:
    assert reached().get(f"/energy?{address}").status_code == 400
    assert reached().get(f"/api/v1/energy?{address}").status_code == 400


def test_jobs_that_nothing_measured_have_no_cost_and_the_page_says_so(reached: Reached, store: Embedded) -> None:
    """A processor's counter that may not be read, as on most machines, and a price."""
    row = {"source": ["rapl"], "device": ["intel-rapl:0"], "sensor": ["package-0"], "scope": ["processor"],
           "counted": [True]}  # fmt: skip
    store.append([_line("power", time.time() - 5, row, "n1")]).result(10)
    store.digest()
    client = reached(metering=Energy(price=0.2))
    page = client.get("/energy?since=2h")
    assert page.status_code == 200
    assert "nothing measured it" in page.text
    assert "No energy is known of this time" in page.text
    told = client.get("/api/v1/energy?since=2h").json()
    assert [row["cost"] for row in told["rows"]] == [None]
    assert told["law"] is None


def test_somebody_sees_what_their_own_jobs_took_and_nothing_of_nodes(reached: Reached, metered: Embedded) -> None:
    client, ada = reached(PROXY, access=ACCESS), {"X-Grafana-User": "ada"}
    for by in ("user", "node", "part", "job", "program"):
        told = client.get(f"/api/v1/energy?by={by}&since=2h", ada).json()
        assert told["law"] is None
        assert len(told["rows"]) == 1
        assert told["rows"][0]["jobs"] == 1
    page = client.get("/energy?since=2h", ada).text
    assert "Your jobs took" in page
    assert "bob" not in page
    everything = client.get("/api/v1/energy?by=user&since=2h", {"X-Grafana-User": "root2"}).json()
    assert everything["law"] is not None
    assert metered is not None


def test_a_jobs_page_tells_its_energy_with_the_grade_beside_it(reached: Reached, metered: Embedded) -> None:
    key = next(job["key"] for job in metered.jobs(JobQuery(), time.time()) if job["id"] == "1")
    told = reached().get(f"/api/v1/job/{key}").json()["energy"]
    assert told["grade"] == "A"
    assert told["energy_full"] > 0
    page = reached().get(f"/job/{quote(key, safe='')}").text
    assert "CO₂e" in page
    assert "grade A" in page
    assert "It took" in page


def test_a_stack_has_the_largest_below_and_what_is_nobodys_on_top() -> None:
    series = {f"u{n}": {0.0: float(10 - n), 3600.0: 1.0} for n in range(9)} | {"(idle)": {0.0: 5.0}}
    drawn = stack(series, 0.0, 7000.0, 3600.0)
    assert [key.name for key in drawn.names] == [*(f"u{n}" for n in range(7)), OTHERS, "(idle)"]
    first = [bar for bar in drawn.bars if bar.x == drawn.bars[0].x]
    assert first[0].name == "u0"
    assert first[-1].name == "(idle)"
    assert sum(bar.height for bar in first) == pytest.approx(HEIGHT, abs=0.1)
    assert first[-1].y == pytest.approx(0.0, abs=0.1)
