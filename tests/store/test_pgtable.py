"""Rows and the series they are of are apart in PostgreSQL, and nobody who asks notices."""

from typing import Any
from uuid import UUID

import pytest

from jobsight.schema.series import series_id, series_name
from jobsight.store import pgrows, pgtable
from jobsight.store.partition import DAY, days
from jobsight.store.pool import connect
from jobsight.store.postgres import Postgres
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414
from tests.store.contract import BOOT, load_line, process_line
from tests.store.test_postgres import Begin
from tests.store.test_postgres import opened as opened  # noqa: PLC0414
from tests.store.test_postgres import url as url  # noqa: PLC0414


def fill(store: Postgres, *lines: bytes) -> None:
    store.append(lines).result(10)
    assert store.digest() == len(lines)


def ask(url: str, sql: str) -> list[tuple[Any, ...]]:
    with connect(url) as connection:
        return connection.execute(sql).fetchall()


def test_labels_stand_once_however_many_rows_there_are(opened: Begin, url: str) -> None:
    store = opened()
    fill(store, *(process_line(BOOT + 100 + 10 * i, f"n{n}") for i in range(20) for n in (1, 2)))
    assert ask(url, "SELECT count(*), count(DISTINCT series) FROM process_row") == [(40, 2)]
    assert ask(url, "SELECT count(*) FROM process_series") == [(2,)]
    columns = ask(url, "SELECT attname FROM pg_attribute WHERE attrelid = 'process_row'::regclass AND attnum > 0")
    assert not {("node",), ("command",), ("job",)} & set(columns)
    asked = "SELECT node, command, count(*), sum(threads) FROM process GROUP BY node, command ORDER BY node"
    assert store.query(asked) == [("n1", "work", 20, 40), ("n2", "work", 20, 40)]


def test_identifiers_can_be_made_again_from_the_sites_namespace(opened: Begin, url: str) -> None:
    fill(opened(), load_line(BOOT + 100), process_line(BOOT + 100, container="podman"))
    ((namespace,),) = ask(url, "SELECT namespace FROM site")
    assert ask(url, "SELECT series FROM load_series") == [(series_id(namespace, "fox:n1:b1"),)]
    name = series_name(["fox", "n1", "b1", 100, 50.0, 1, 100, 100, "session", "100", "alice", "work", "podman", None])
    assert ask(url, "SELECT series FROM process_series") == [(series_id(namespace, name),)]


def test_the_namespace_is_made_once_and_every_site_has_its_own(opened: Begin, url: str, cluster: Any) -> None:
    opened().close()
    before = ask(url, "SELECT namespace FROM site")
    opened().close()
    assert ask(url, "SELECT namespace FROM site") == before
    other = cluster.database()
    opened(at=other).close()
    assert ask(other, "SELECT namespace FROM site") != before


def test_a_process_that_becomes_another_program_is_another_series(opened: Begin, url: str) -> None:
    store = opened()
    fill(store, process_line(BOOT + 100, command="bash"), process_line(BOOT + 110, command="vasp"))
    fill(store, process_line(BOOT + 120, command="vasp"))
    assert ask(url, "SELECT count(*) FROM process_series") == [(2,)]
    asked = "SELECT time, command FROM process ORDER BY time"
    assert store.query(asked) == [(BOOT + 100, "bash"), (BOOT + 110, "vasp"), (BOOT + 120, "vasp")]


def test_labels_that_look_alike_when_joined_stay_apart(opened: Begin) -> None:
    store = opened()
    names = [("a:b", "c"), ("a", "b:c"), ("a\\:b", "c"), ("", "-"), ("-", "")]
    fill(store, *(process_line(BOOT + 100 + i, owner=o, command=c) for i, (o, c) in enumerate(names)))
    assert store.query("SELECT owner, command FROM process ORDER BY time") == names


def test_series_go_with_their_last_rows_and_come_back_with_new_ones(opened: Begin, url: str) -> None:
    today = BOOT // DAY * DAY
    store = opened(clock=lambda: BOOT)
    old, both = process_line(today - 2 * DAY, pid=1, cpu_user=1), process_line(today - 2 * DAY + 9, pid=2, cpu_user=1)
    fill(store, old, both)
    # Known already, so nothing but the day is new.
    fill(store, process_line(today + 5, pid=2, cpu_user=1))
    store.forget(today - DAY, ["process"])
    assert store.query("SELECT pid, time FROM process") == [(2, today + 5)]
    assert ask(url, "SELECT pid, newest FROM process_series") == [(2, today // DAY)]
    fill(store, process_line(today + 9, pid=1, cpu_user=1))
    assert store.query("SELECT pid, command FROM process ORDER BY pid") == [(1, "work"), (2, "work")]


def test_what_is_kept_for_years_is_in_long_partitions_and_keeps_its_labels_while_they_last(
    opened: Begin, url: str
) -> None:
    first = BOOT // (30 * DAY) * 30 * DAY
    store = opened(clock=lambda: first + 70 * DAY)
    names = store.tables["slice"].columns
    rows = [
        tuple({"cluster": "fox", "node": f"n{day}", "boot": "b", "time": first + day * DAY, "job_key": "k",
               "source": "process", "seconds": 1.0, "covered": 1.0}.get(name) for name in names)
        for day in (0, 1, 29, 30, 69)
    ]  # fmt: skip
    store.mark("slice", rows)
    with connect(url) as connection:
        made = {day for table, day in days(connection) if table == "slice_row"}
    assert made == {first // DAY + number for number in (0, 30, 60)}
    # No month is over yet, so every row has its labels still.
    assert store.forget(first + 20 * DAY, ["slice"]) == 0
    asked = "SELECT node FROM slice ORDER BY time"
    assert store.query(asked) == [("n0",), ("n1",), ("n29",), ("n30",), ("n69",)]
    assert store.forget(first + 35 * DAY, ["slice"]) == 3
    assert store.query(asked) == [("n30",), ("n69",)]
    assert ask(url, "SELECT node FROM slice_series ORDER BY node") == [("n30",), ("n69",)]


def test_what_a_batch_that_failed_had_of_series_is_not_taken_for_stored(
    opened: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened()

    def fall(*_: Any) -> None:
        raise ConnectionError("nobody foresaw this")

    monkeypatch.setattr(pgrows, "remember", fall)
    store.append([process_line(BOOT + 100)]).result(10)
    with pytest.raises(ConnectionError):
        store.digest()
    monkeypatch.undo()
    assert store.digest() == 1
    assert store.query("SELECT node, command FROM process") == [("n1", "work")]


def test_more_series_than_are_remembered_are_all_stored(
    opened: Begin, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgtable, "MOST", 3)
    store = opened()
    for turn in range(3):
        fill(store, *(process_line(BOOT + 100 + 10 * turn, pid=pid, node=f"n{pid}") for pid in range(1, 11)))
    assert ask(url, "SELECT count(*) FROM process_series") == [(10,)]
    asked = "SELECT pid, node, count(*) FROM process GROUP BY pid, node ORDER BY pid"
    assert store.query(asked) == [(pid, f"n{pid}", 3) for pid in range(1, 11)]


def test_who_may_read_a_view_still_may_after_it_has_grown(opened: Begin, url: str) -> None:
    opened().close()
    with connect(url) as connection:
        connection.execute("DROP VIEW load")
        connection.execute("ALTER TABLE load_row DROP COLUMN load15")
        connection.execute("CREATE VIEW load AS SELECT * FROM load_row LEFT JOIN load_series USING (series)")
        connection.execute("DROP VIEW load")
        columns = "cluster, node, boot, time, load1, load5, runnable, existing"
        connection.execute(f"CREATE VIEW load AS SELECT {columns} FROM load_row LEFT JOIN load_series USING (series)")
        connection.execute("GRANT SELECT ON load TO PUBLIC")
    store = opened()
    fill(store, load_line(BOOT + 100))
    assert store.query("SELECT load15, node FROM load") == [(0.5, "n1")]
    assert ask(url, "SELECT has_table_privilege('pg_monitor', 'load', 'SELECT')") == [(True,)]


def test_a_query_without_labels_reads_no_series(opened: Begin) -> None:
    store = opened()
    fill(store, load_line(BOOT + 100))
    plan = str(store.query("EXPLAIN SELECT count(*), max(load1) FROM load"))
    assert "load_row" in plan
    assert "load_series" not in plan


def test_a_query_of_a_time_looks_at_no_partition_of_another(opened: Begin) -> None:
    store = opened(clock=lambda: BOOT + 3 * DAY)
    fill(store, *(load_line(BOOT + day * DAY) for day in range(3)))
    assert "load_row_other" in str(store.query("EXPLAIN SELECT node FROM load"))
    asked = "SELECT node, time FROM load JOIN run USING (cluster, node, boot, time) WHERE load1 > ?"
    between = (BOOT + DAY - 5, BOOT + DAY + 5)
    assert store.query(asked, [0.1], between) == [("n1", BOOT + DAY)]
    assert len(store.query(asked, [0.1])) == 3
    known = "WITH many AS (SELECT * FROM load) SELECT count(*) FROM many, load WHERE many.time = load.time"
    assert store.query(known, [], between) == [(1,)]


def test_an_identifier_is_a_uuid_of_version_5(opened: Begin, url: str) -> None:
    fill(opened(), load_line(BOOT + 100))
    ((found,),) = ask(url, "SELECT series FROM load_row")
    assert isinstance(found, UUID)
    assert found.version == 5
