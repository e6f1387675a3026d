"""Utilisation: in every time the parts are the whole, whoever asks, in either engine."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobsight.analyse.calendar import Calendar
from jobsight.analyse.capacity import is_down
from jobsight.analyse.keeper import open_database, open_store
from jobsight.analyse.program import programs, unmapped
from jobsight.analyse.programmap import Maps
from jobsight.analyse.sites import Asked, Site
from jobsight.analyse.tending import settle
from jobsight.analyse.utilisation import DIMENSIONS, STEPS, usage
from jobsight.analyse.waiting import demand
from jobsight.schema.wire import instant
from jobsight.store.protocol import JobQuery, Store
from jobsight.store.sight import Sight
from tests.analyse.estate import CPUS, HOUR, START, Estate
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414
from tests.store.contract import BOOT, _line
from tests.store.test_postgres import url as url  # noqa: PLC0414

SITE = Site(Calendar(ZoneInfo("Europe/Oslo")), Maps())
SIGHTS = [None, Sight(("ada",)), Sight(("bob",), ("biology",)), Sight()]


class Known(NamedTuple):
    """A store and what is true of it."""

    store: Store
    estate: Estate
    now: float

    def usage(self, by: str = "user", sight: Sight | None = None, **asked: str) -> Any:
        return usage(self.store, SITE, Asked(by=by, **({"since": "3d"} | asked)), self.now, sight)


def filled(store: Store, seed: int) -> Known:
    estate = Estate(seed)
    store.append(estate.lines).result(30)
    store.digest()
    now = estate.end + 2 * HOUR
    settle(store, now)
    return Known(store, estate, now)


@pytest.fixture(scope="module", params=[1, 2])
def known(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Known]:
    store = open_store(str(tmp_path_factory.mktemp("estate") / "store"))
    yield filled(store, request.param)
    store.close()


def close(one: float, other: float) -> bool:
    return one == pytest.approx(other, rel=1e-9, abs=1e-3)


# A question may take long on a machine that is busy.
@settings(deadline=None, max_examples=60)
@given(
    first=st.integers(-3, 33), hours=st.integers(1, 40), by=st.sampled_from(DIMENSIONS), sight=st.sampled_from(SIGHTS)
)
def test_parts_idle_and_down_are_what_there_was_in_every_time(
    known: Known, first: int, hours: int, by: str, sight: Sight | None
) -> None:
    since = START + first * HOUR
    until = min(since + hours * HOUR, known.now)
    if since >= until:
        return
    found = known.usage(by, sight, since=instant(since), until=instant(until))
    whole = found.whole
    assert close(whole.used + whole.idle + whole.down - whole.beyond_used, whole.total)
    assert whole.beyond_used >= -1e-3
    assert whole.beyond_allocated >= -1e-3
    if by in STEPS or by == "node":
        for name in ("total", "used", "allocated", "idle", "free", "down"):
            assert close(sum(getattr(row, name) for row in found.rows), getattr(whole, name)), name
    else:
        for name in ("used", "allocated"):
            parts = sum(getattr(row, name) for row in found.rows if row.kind != "whole")
            assert close(parts, whole.total), name
        named = {row.name for row in found.rows if row.kind == "part"}
        if sight == Sight():
            assert not named
        elif sight is not None and by == "user":
            assert named <= {"ada", "bob", "carol"} - ({"bob", "carol"} if sight == SIGHTS[1] else {"ada"} - named)


def test_what_each_used_is_what_its_processes_counted(known: Known) -> None:
    truth: dict[str, float] = defaultdict(float)
    names = {"vasp_std": "VASP", "python3": "Python", "bash": "Shell", "gmx_mpi": "GROMACS", "own_code": ""}
    for job in known.estate.jobs:
        for command, used in job.used().items():
            truth[names[command]] += used
    rows = {row.name: row.used for row in known.usage("program").rows if row.kind == "part"}
    assert rows == pytest.approx({name: used for name, used in truth.items() if used}, rel=1e-6)
    report = programs(known.store, SITE, Asked(since="3d"), known.now)
    assert {row.program: row.used for row in report.rows} == pytest.approx(rows)
    assert report.used == pytest.approx(sum(truth.values()), rel=1e-6)
    (own,) = unmapped(known.store, SITE, Asked(since="3d"), known.now)
    assert own.command == "own_code"
    assert own.used == pytest.approx(truth[""], rel=1e-6)


def test_what_a_group_had_used_before_anybody_looked_is_of_no_hour(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    began = START - BOOT
    rows = {"scheduler": ["slurm"], "job": ["7"], "path": ["slurm/job_7"], "cpus": [4]}
    for turn in range(7):
        used = {**rows, "cpu_time": [500_000.0 + 1200.0 * turn]}
        store.append([_line("cgroup", BOOT + began + 600 * turn, used, "n1")]).result(10)
    store.digest()
    settle(store, START + 3 * HOUR)
    ((used,),) = store.query("SELECT sum(used) FROM tally")
    assert used == pytest.approx(6 * 1200.0)
    (job,) = store.jobs(JobQuery(), START + HOUR)
    assert job["parts"][0]["cpu_time"] == 507_200.0
    store.close()


def test_what_is_given_is_the_schedulers_word_and_without_one_what_was_used(known: Known) -> None:
    for owner in ("ada", "bob", "carol"):
        found = known.usage("user", Sight((owner,)))
        mine = [job for job in known.estate.jobs if job.owner == owner and any(job.used().values())]
        slurm = sum(job.cpus * (job.ends - job.begins) for job in mine if job.scheduler == "slurm")
        session = sum(sum(job.used().values()) for job in mine if job.scheduler == "session")
        # A job is seen in samples: what it held after its last one is not.
        unseen = sum(job.cpus * 600.0 for job in mine)
        (row,) = [row for row in found.rows if row.kind == "part"]
        assert slurm + session - unseen <= row.allocated <= slurm + session + 1e-6


def test_a_drained_node_is_down_and_a_silent_one_without_work_is_not_there(known: Known) -> None:
    nodes = {row.name: row for row in known.usage("node").rows}
    hours = round((known.estate.end - START) / HOUR)
    assert nodes["n4"].down == pytest.approx(4 * CPUS * HOUR, abs=CPUS * 700)
    assert nodes["n4"].total == hours * CPUS * HOUR
    assert nodes["n1"].down == 0
    assert nodes["laptop"].total == hours * CPUS * HOUR


def test_days_of_the_clocks_change_have_their_own_length(known: Known) -> None:
    rows = {row.name: row for row in known.usage("day").rows}
    # 25 hours, of five nodes; one of them may have slept for three of these.
    assert rows["2026-10-25"].total == pytest.approx(25 * 5 * CPUS * HOUR, abs=3 * CPUS * HOUR)
    clock = {row.name: row for row in known.usage("hour-of-day", since="2026-10-25", until="2026-10-25").rows}
    assert clock["02"].total == pytest.approx(2 * clock["01"].total, abs=CPUS * HOUR)
    assert len(clock) == 24


def test_what_waited_is_cpus_times_seconds_hour_by_hour(known: Known) -> None:
    span = Asked(since=instant(START - 24 * HOUR)).span(SITE, known.now)
    found = demand(known.store, span, known.now)
    truth = sum(job.cpus * job.waited for job in known.estate.jobs)
    assert sum(found.values()) == pytest.approx(truth, rel=1e-6)
    hour = span.since + 27 * HOUR
    expected = sum(
        job.cpus * max(0.0, min(job.begins, hour + HOUR) - max(job.begins - job.waited, hour))
        for job in known.estate.jobs
    )
    assert found[hour] == pytest.approx(expected, abs=1e-3)
    waits = known.usage().waits
    assert sum(row.jobs for row in waits) == sum(job.scheduler == "slurm" for job in known.estate.jobs)
    assert max(row.longest for row in waits) == max(job.waited for job in known.estate.jobs)


def test_making_it_all_again_changes_nothing(known: Known) -> None:
    from jobsight.analyse.chronicle import make

    def everything() -> list[list[tuple[Any, ...]]]:
        tables = ("tally", "capacity", "stint")
        return [sorted(known.store.query(f"SELECT * FROM {table}"), key=repr) for table in tables]

    before = everything()
    with known.store.still():
        make(known.store, START // HOUR * HOUR, START // HOUR * HOUR + 35 * HOUR, known.now)
    assert [[tuple(map(_rounded, row)) for row in rows] for rows in everything()] == [
        [tuple(map(_rounded, row)) for row in rows] for rows in before
    ]
    assert before[0]


def test_cards_are_counted_beside_cores_and_add_up_too(known: Known) -> None:
    rows = known.store.query(
        "SELECT sum(gpu_time), sum(gpus * seconds), sum(cpu_time) FROM usage WHERE source = 'gpu'"
    )
    ((computed, held, cores),) = rows
    assert cores is None
    assert held > 0
    for by in ("user", "account", "partition", "program"):
        parts = [row for row in known.usage(by).rows if row.kind == "part"]
        assert close(sum(row.gpu_used or 0.0 for row in parts), computed)
        assert close(sum(row.gpu_allocated or 0.0 for row in parts), held)
        assert close(sum(row.used for row in parts), known.usage().whole.used)


def test_of_decades_before_the_first_job_nothing_is_made(known: Known) -> None:
    span = Asked(since="99999999999d").span(SITE, known.now)
    found = demand(known.store, span, known.now)
    assert len(found) < 24 * 10
    assert sum(found.values()) == pytest.approx(sum(job.cpus * job.waited for job in known.estate.jobs), rel=1e-6)


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def test_a_changed_map_changes_the_past_at_once(known: Known, tmp_path: Path) -> None:
    own = tmp_path / "own.tsv"
    own.write_text("exact\town_code\tOur code\tours\n")
    site = SITE._replace(maps=Maps(str(own)))

    def names() -> set[str]:
        return {row.program for row in programs(known.store, site, Asked(since="3d"), known.now).rows}

    assert "Our code" in names()
    own.write_text("exact\town_code\tOther name\n")
    assert names() & {"Our code", "Other name"} == {"Other name"}
    by_tag = programs(known.store, SITE, Asked(since="3d", by="tag"), known.now)
    assert {"chemistry", "chemistry/quantum", "licensed"} <= {row.program for row in by_tag.rows}
    chemistry = programs(known.store, SITE, Asked(since="3d", program="chemistry"), known.now)
    assert {row.program for row in chemistry.rows} <= {"VASP", "GROMACS"}


def test_memory_of_a_program_is_that_of_the_jobs_it_was_the_main_one_of(known: Known) -> None:
    rows = {row.program: row for row in programs(known.store, SITE, Asked(since="3d"), known.now).rows}
    main: dict[str, list[int]] = {}
    for job in known.estate.jobs:
        if sum(job.used().values()):
            command = max(job.commands, key=lambda name: job.commands[name])
            main.setdefault(command, []).append(2**20 * int(job.number) * len(job.commands))
    assert rows["VASP"].jobs == len(main["vasp_std"])
    assert rows["VASP"].memory_peak == max(main["vasp_std"])
    assert rows["VASP"].users == len(set(rows["VASP"].owners))


@pytest.mark.parametrize(
    ("state", "flags", "down"),
    [
        ("IDLE", None, False), ("DOWN", None, True), ("IDLE", "DRAIN", True), ("MIXED", "DRAIN", False),
        ("IDLE", "NOT_RESPONDING", True), ("IDLE", "POWERED_DOWN", False), ("ALLOCATED", None, False),
        ("IDLE", "MAINTENANCE,PLANNED", True),
    ],
)  # fmt: skip
def test_a_node_is_down_if_no_job_can_use_it(state: str, flags: str | None, down: bool) -> None:
    assert is_down(state, flags) is down


def test_in_postgresql_it_is_the_same(url: str, tmp_path: Path) -> None:
    stores: list[Store] = [open_database(url), open_store(str(tmp_path / "store"))]
    one, other = (filled(store, 1) for store in stores)
    for by in DIMENSIONS:
        for sight in SIGHTS[:2]:
            rows = [
                [(row.name, round(row.used, 3), round(row.allocated, 3)) for row in each.usage(by, sight).rows]
                for each in (one, other)
            ]
            assert rows[0] == rows[1], by
    for asked in (Asked(since="3d"), Asked(since="3d", by="tag")):
        reports = [programs(each.store, SITE, asked, each.now) for each in (one, other)]
        plain = [
            [(row.program, round(row.used, 3), row.jobs, round(row.memory_high or 0, 3)) for row in found.rows]
            for found in reports
        ]
        assert plain[0] == plain[1]
    assert one.usage().waits == other.usage().waits
    for store in stores:
        store.close()


def test_one_cluster_of_several_is_chosen(known: Known) -> None:
    assert known.usage("user", cluster="fox").rows == known.usage("user").rows
    other = known.usage("user", cluster="saga")
    assert other.whole.total == 0
    assert not [row for row in other.rows if row.kind == "part" or row.used]
    assert other.whole.demand is None
