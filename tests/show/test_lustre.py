"""The file system's page, its API, what a job's page says of it, and the verb: whole targets, and one's own names."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.lustreroll import roll
from jobsight.cli import io, job
from jobsight.serving import Access
from jobsight.store.embedded import Embedded
from jobsight.store.protocol import JobQuery
from tests.analyse.lustrehistory import message, row, scan
from tests.show.conftest import Reached

PROXY = "198.51.100.7"
ACCESS = Access(admins=("root2",), trusted_proxies=("198.51.100.0/24",))
OST, MDT = "scratch-OST0000", "scratch-MDT0000"
# Jobs of `tests.show.conftest`, and what each moved.
MOVED = {"1": ("n1", 6 * 10**9), "2": ("n2", 3 * 10**9), "4": ("n4", 10**9)}


def by(name: str) -> dict[str, str]:
    return {"X-Grafana-User": name}


@pytest.fixture(autouse=True)
def used(store: Embedded) -> None:
    """Ten minutes in which three jobs wrote and opened."""
    now = time.time()
    lines = [message("lustrescan", now - 600, [scan(OST, "ost", now - 600), scan(MDT, "mdt", now - 600)])]
    for number in (1, 2, 3, 4, 5):
        at = now - 600 + number * 120
        told = {"absent_at": now - 600}
        entries = [(f"{job}:{5000 + int(job)}:{node}", moved) for job, (node, moved) in MOVED.items()]
        rows = [
            row(OST, entry, write_bytes=moved * number // 5, write=number * 100, **told) for entry, moved in entries
        ]
        names = [row(MDT, entry, open=moved * number // 10**7, **told) for entry, moved in entries]
        lines += [message("lustreost", at, rows, "oss1"), message("lustremdt", at, names, "mds1"),
                  message("lustrescan", at, [scan(OST, "ost", at), scan(MDT, "mdt", at)])]  # fmt: skip
    store.append(lines).result(10)
    store.digest()
    roll(store)


def test_the_page_has_targets_panels_and_who_made_them(reached: Reached) -> None:
    page = reached().get(f"/io?target={OST}&operation=write_bytes&since=1h")
    assert page.status_code == 200
    assert "1 object target gave 0 B/s and took" in page.text
    assert [name for name in ("ada", "bob", "carol") if name in page.text] == ["ada", "bob", "carol"]
    for part in ('id="chart-total"', 'id="chart-users"', 'id="chart-density"', MDT, "60 %"):
        assert part in page.text


def test_a_peak_that_was_pointed_at_is_in_the_address(reached: Reached) -> None:
    panels = reached().get(f"/api/v1/io/panels?target={OST}&operation=write_bytes&since=1h").json()
    first = panels["total"]["time"][-1]
    page = reached().get(f"/io?target={OST}&operation=write_bytes&since=1h&from={first}&to={first + 300}")
    assert 'data-from="' in page.text
    assert "the whole time</a>" in page.text
    # What cannot be is as if nothing was said.
    assert 'data-from="' not in reached().get(f"/io?target={OST}&since=1h&from=x&to=nan").text


def test_the_api_says_the_same_in_numbers(reached: Reached) -> None:
    client = reached()
    targets = client.get("/api/v1/io/targets?since=1h").json()
    assert {told["target"] for told in targets} == {OST, MDT}
    top = client.get(f"/api/v1/io/top?target={OST}&operation=write_bytes&by=job&since=1h").json()
    assert [told["job"] for told in top] == ["1", "2", "4"]
    assert [told["share"] for told in top] == pytest.approx([0.6, 0.3, 0.1])
    panels = client.get(f"/api/v1/io/panels?target={OST}&operation=write_bytes&since=1h").json()
    assert sum(panels["total"]["value"]) > 0
    assert [user["name"] for user in panels["users"]] == ["ada", "bob", "carol"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (f"top?target={OST}&operation=nothing", "no operation 'nothing'"),
        ("top?operation=read", "say which target"),
        (f"top?target={OST}&operation=read&by=moon", "no way 'moon'"),
        ("targets?since=yesterday", "expected a time"),
        ("targets?since=1h&until=2h", "since must be before until"),
        (f"panels?target={OST}&operation=time%3B%20DROP", "no operation"),
    ],
)
def test_what_nobody_can_read_is_told_in_a_sentence(reached: Reached, asked: str, said: str) -> None:
    answer = reached().get(f"/api/v1/io/{asked}")
    assert answer.status_code == 400
    assert said in answer.json()["detail"]
    page = reached().get(f"/io?{asked.partition('?')[2]}")
    assert page.status_code in (200, 400)


def test_users_see_whole_targets_and_their_own_names(reached: Reached) -> None:
    client = reached(PROXY, access=ACCESS)
    page = client.get(f"/io?target={OST}&operation=write_bytes&since=1h", headers=by("ada"))
    assert "ada" in page.text
    assert "bob" not in page.text
    assert 'id="chart-density"' not in page.text
    for what, found in (("top", 1), ("panels", 1)):
        address = f"/api/v1/io/{what}?target={OST}&operation=write_bytes&since=1h"
        own = client.get(address, headers=by("bob")).json()
        assert len(own if what == "top" else own["users"]) == found
        nobody = client.get(address, headers=by("eve")).json()
        assert not (nobody if what == "top" else nobody["users"])
        assert client.get(address).status_code == 401
    top = client.get(f"/api/v1/io/top?target={OST}&operation=write_bytes&since=1h", headers=by("root2")).json()
    assert [told["user"] for told in top] == ["ada", "bob", "carol"]


def test_a_jobs_page_shows_its_targets_over_time_with_its_share(reached: Reached, store: Embedded) -> None:
    (found,) = store.jobs(JobQuery(id="1"), time.time())
    told = reached().get(f"/api/v1/job/{found['key']}").json()
    assert {target["target"]: round(target["share"], 2) for target in told["lustre"]["targets"]} == {
        OST: 0.6,
        MDT: 0.6,
    }
    assert max(told["series"]["lustre_written"]["value"]) > 0
    page = reached().get(f"/job/{found['key']}")
    assert 'id="chart-lustre"' in page.text
    assert OST in page.text
    (other,) = store.jobs(JobQuery(id="3"), time.time())
    assert 'id="chart-lustre"' not in reached().get(f"/job/{other['key']}").text


def verb(store: Embedded, tmp_path: Path, run: Any, *arguments: str) -> int:
    """A verb reads the store itself."""
    store.close()
    return int(run([*arguments, "--store", str(tmp_path / "store")]))


def test_the_verb_lists_targets(store: Embedded, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verb(store, tmp_path, io.run, "--since", "1h") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["target", "kind", "read", "written", "metadata", "now", "against", "the", "day",
                                "entries", "observed"]  # fmt: skip
    assert [line.split()[0] for line in lines[1:]] == [MDT, OST]


def test_the_verb_lists_who_asked(store: Embedded, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verb(store, tmp_path, io.run, "--target", OST, "--since", "1h", "--by", "job", "--json") == 0
    assert [told["owner"] for told in json.loads(capsys.readouterr().out)] == ["ada", "bob", "carol"]


def test_the_verb_draws_densities(store: Embedded, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verb(store, tmp_path, io.run, "--target", OST, "--density", "--since", "1h") == 0
    assert "from 1 MB/s" in capsys.readouterr().out


def test_wrong_use_of_the_verb_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert io.run(["--op", "read"]) == 2
    assert capsys.readouterr().err.startswith("jobsight: say which target")


def test_a_job_on_the_terminal_has_its_targets(
    store: Embedded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verb(store, tmp_path, job.run, "1") == 0
    shown = capsys.readouterr().out
    assert "share of its load" in shown
    assert "60 %" in shown
