"""A copy of a store is the same store, whichever engine it is in."""

import hashlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.keeper import open_database, open_store
from jobsight.cli.store import run
from jobsight.store import embeddedside, pgrows, side
from jobsight.store.findings import Kept
from jobsight.store.pgside import PgSide
from jobsight.store.protocol import JobQuery, Store
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414
from tests.store.contract import BOOT, load_line, process_line
from tests.store.test_postgres import messages, tables
from tests.store.test_postgres import url as url  # noqa: PLC0414

DAY = 86400
KINDS = side.tables(tables())


def opened(place: str) -> Store:
    return open_database(place) if "://" in place else open_store(place)


def fill(place: str, lines: list[bytes]) -> None:
    store = opened(place)
    store.append(lines).result(10)
    store.digest()
    kept = Kept("a1", "hog", "fox", "key.1", "ada", "physics", BOOT, BOOT + 9, BOOT + 9, BOOT + 9, None, "{}")
    store.findings.keep([kept, kept._replace(id="b2", ended=BOOT + 9)])
    assert store.findings.acknowledge("b2", BOOT + 10, "ada", "agreed")
    store.close()


def held(place: str) -> dict[str, Any]:
    """Every table's count, sums and a checksum over all its values, and the jobs."""
    store = opened(place)
    found: dict[str, Any] = {}
    for table, kinds in KINDS.items():
        rows = store.query(f"SELECT {', '.join(kinds)} FROM {table}")
        numbers = [index for index, kind in enumerate(kinds.values()) if kind is int]
        sums = [sum(row[index] for row in rows if row[index] is not None) for index in numbers]
        texts = sorted(repr(row) for row in rows)
        found[table] = (len(rows), sums, hashlib.sha256("\n".join(texts).encode()).hexdigest())
    found["job"] = sorted(json.dumps(job) for job in store.jobs(JobQuery(limit=10**6), BOOT))
    found["finding"] = store.findings.kept(0.0, 1e12)
    store.close()
    return found


def lines() -> list[bytes]:
    """Real messages of every kind, four days of some processes, and values that lose their way easily."""
    days = [
        process_line(BOOT + day * DAY + 10 * i, f"n{n}", pid=n, cpu_user=i / 3, started=day * DAY + 0.1)
        for day in range(4) for i in range(20) for n in (1, 2)
    ]  # fmt: skip
    odd = [
        process_line(BOOT + 5, "odd", memory_anon=2**62 + 1, cpu_user=0.1 + 0.2, command="a'b\"c\n\\;😀\u202e"),
        load_line(BOOT + 3000 * DAY, "ahead"),
        load_line(BOOT, "n1", "failed"),
    ]  # fmt: skip
    return messages() + days + odd


@pytest.fixture
def place(url: str, tmp_path: Path) -> Callable[[str], str]:
    def of(kind: str) -> str:
        return url if kind == "database" else str(tmp_path / kind)

    return of


@pytest.mark.parametrize(("left", "right"), [("here", "database"), ("database", "here"), ("here", "there")])
def test_a_copy_holds_the_same_and_a_second_one_changes_nothing(
    place: Callable[[str], str], left: str, right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(place(left), lines())
    before = held(place(left))
    assert before["process"][0] > 230
    for told in ("rows copied; ", "0 rows copied, "):
        assert run(["copy", "--from", place(left), "--to", place(right)]) == 0
        output = capsys.readouterr().out
        assert told in output
        assert "DIFFERENT" not in output
        assert held(place(right)) == before
        assert held(place(left)) == before


@pytest.mark.slow
def test_there_and_back_again_is_where_it_was(place: Callable[[str], str]) -> None:
    fill(place("here"), lines())
    assert run(["copy", "--from", place("here"), "--to", place("database")]) == 0
    assert run(["copy", "--from", place("database"), "--to", place("back")]) == 0
    assert held(place("back")) == held(place("here"))


@pytest.mark.slow
@pytest.mark.parametrize(("left", "right"), [("here", "database"), ("database", "here")])
def test_a_copy_that_is_broken_off_goes_on(
    place: Callable[[str], str], left: str, right: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(place(left), lines())
    source: Any = PgSide if left == "database" else embeddedside.EmbeddedSide
    real, turns = source.read, iter(range(1000))

    def fall(self: Any, table: str, day: int) -> Any:
        for rows in real(self, table, day):
            yield rows
            # After some days, when rows of the next have been written.
            if next(turns) == 8:
                raise KeyboardInterrupt

    monkeypatch.setattr(source, "read", fall)
    with pytest.raises(KeyboardInterrupt):
        run(["copy", "--from", place(left), "--to", place(right)])
    monkeypatch.undo()
    part = held(place(right))
    whole = held(place(left))
    assert 0 < sum(part[table][0] for table in KINDS) < sum(whole[table][0] for table in KINDS)
    assert run(["copy", "--from", place(left), "--to", place(right)]) == 0
    assert held(place(right)) == whole


@pytest.mark.parametrize(("left", "right"), [("here", "database"), ("database", "here")])
def test_a_database_that_falls_in_the_middle_is_a_sentence(
    place: Callable[[str], str], left: str, right: str, cluster: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    fill(place(left), [load_line(BOOT), load_line(BOOT + DAY), process_line(BOOT)])
    source: Any = PgSide if left == "database" else embeddedside.EmbeddedSide
    real = source.read

    def fall(self: Any, table: str, day: int) -> Any:
        cluster.stop(signal.SIGQUIT)
        yield from real(self, table, day)

    monkeypatch.setattr(source, "read", fall)
    try:
        assert run(["copy", "--from", place(left), "--to", place(right)]) == 1
    finally:
        cluster.start()
    assert "; run again to go on" in capsys.readouterr().err
    monkeypatch.undo()
    assert run(["copy", "--from", place(left), "--to", place(right)]) == 0
    assert held(place(right)) == held(place(left))


@pytest.mark.parametrize(("left", "right"), [("here", "database"), ("database", "here")])
def test_a_source_that_has_grown_is_copied_again_where_it_grew(
    place: Callable[[str], str], left: str, right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(place(left), lines())
    assert run(["copy", "--from", place(left), "--to", place(right)]) == 0
    fill(place(left), [process_line(BOOT + 2 * DAY + 5000, "n1", cpu_user=7), load_line(BOOT + 5 * DAY)])
    capsys.readouterr()
    assert run(["copy", "--from", place(left), "--to", place(right)]) == 0
    assert " were there" in capsys.readouterr().out
    assert held(place(right)) == held(place(left))


@pytest.mark.parametrize("right", ["database", "there"])
def test_a_target_with_rows_of_its_own_is_left_alone(
    place: Callable[[str], str], right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(place("here"), lines())
    fill(place(right), [load_line(BOOT + 10, "other")])
    before = held(place(right))
    assert run(["copy", "--from", place("here"), "--to", place(right)]) == 1
    assert "has rows of load on 2026-11-14 that are not from" in capsys.readouterr().err
    assert held(place(right)) == before


def test_a_second_source_is_not_copied_over_the_first(
    place: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    fill(place("one"), [load_line(BOOT + 10, "one")])
    fill(place("two"), [load_line(BOOT + 20, "two"), load_line(BOOT + 30, "two")])
    assert run(["copy", "--from", place("one"), "--to", place("database")]) == 0
    assert run(["copy", "--from", place("two"), "--to", place("database")]) == 1
    assert "that are not from" in capsys.readouterr().err
    store = opened(place("database"))
    assert store.query("SELECT node FROM load") == [("one",)]
    store.close()


@pytest.mark.parametrize(("left", "right"), [("here", "database"), ("database", "here")])
def test_nodes_are_in_a_copy_what_they_were(place: Callable[[str], str], left: str, right: str) -> None:
    fill(place(left), [*messages(), load_line(BOOT + 390, status="failed")])
    assert run(["copy", "--from", place(left), "--to", place(right)]) == 0
    stores = [opened(place(kind)) for kind in (left, right)]
    first, second = (store.nodes(BOOT + 400) for store in stores)
    assert len(first) == 3
    assert {node.troubles for node in first} == {0, 1}
    assert first == second
    for store in stores:
        store.close()


@pytest.mark.parametrize(("left", "right"), [("here", "database"), ("database", "here")])
def test_a_copy_knows_what_its_source_had_forgotten(place: Callable[[str], str], left: str, right: str) -> None:
    fill(place(left), [load_line(BOOT), load_line(BOOT + 2 * DAY)])
    source: Any = opened(place(left))
    source.forget(BOOT + DAY, ["load"])
    source.close()
    assert run(["copy", "--from", place(left), "--to", place(right)]) == 0
    target: Any = opened(place(right))
    assert (target.horizon("load"), target.horizon("process")) == (BOOT + DAY, 0)
    target.close()


def test_jobs_go_on_in_the_copy_as_they_would_have_in_the_original(place: Callable[[str], str]) -> None:
    fill(place("here"), [process_line(BOOT + 100), process_line(BOOT + 110)])
    assert run(["copy", "--from", place("here"), "--to", place("database")]) == 0
    assert run(["copy", "--from", place("database"), "--to", place("there")]) == 0
    for kind in ("here", "there", "database"):
        fill(place(kind), [process_line(BOOT + 120)])
    assert held(place("here")) == held(place("database")) == held(place("there"))
    store = opened(place("database"))
    (job,) = store.jobs(JobQuery(), BOOT + 120)
    assert job["parts"][0]["cpu_time"] == 70
    store.close()


def test_a_store_that_a_server_has_is_refused_with_a_sentence(
    place: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    store, database = opened(place("here")), opened(place("database"))
    database.digest()
    fill(place("there"), [load_line(BOOT)])
    assert run(["copy", "--from", place("here"), "--to", place("there")]) == 1
    assert "the store is in use" in capsys.readouterr().err
    for way in (("there", "database"), ("database", "there")):
        assert run(["copy", "--from", place(way[0]), "--to", place(way[1])]) == 1
        assert "a server digests into the database " in capsys.readouterr().err
    store.close()
    database.close()


def test_what_cannot_be_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = str(tmp_path / "nowhere")
    assert run(["copy", "--from", nowhere, "--to", str(tmp_path / "there")]) == 1
    assert f"there is no store in {nowhere}" in capsys.readouterr().err
    assert run(["copy", "--from", nowhere, "--to", nowhere]) == 2
    assert not os.path.exists(nowhere)


def test_the_columns_of_runs_are_the_same_in_both_engines(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    assert store.hot.columns() == {table: list(kinds) for table, kinds in KINDS.items()}
    store.close()
    assert list(side.RUN) == list(pgrows.RUN)


def test_figures_that_differ_in_the_last_digit_of_a_sum_are_the_same_and_others_are_not() -> None:
    assert side.same((3, 0.1 + 0.2, None), (3, 0.3, None))
    assert not side.same((3, 0.3, None), (3, 0.3001, None))
    assert not side.same((3, 0.3, None), (3, 0.3, 0))
    assert not side.same((2**62 + 1,), (2**62,))
    assert not side.same(None, (0,))
