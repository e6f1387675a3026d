"""What was counted can be put right in either engine, whole or not at all."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.keeper import open_database, open_store
from jobsight.analyse.tending import settle
from jobsight.store import document
from jobsight.store.pool import connect
from jobsight.store.protocol import Change, JobQuery, Store, StoreError
from jobsight.store.side import DAY
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414
from tests.store.contract import BOOT, load_line, process_line
from tests.store.test_postgres import url as url  # noqa: PLC0414

Begin = Callable[[], Any]


@pytest.fixture(params=["embedded", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Begin]:
    stores: list[Store] = []
    url = request.getfixturevalue("url") if request.param == "postgres" else ""

    def begin() -> Any:
        stores.append(open_database(url) if url else open_store(str(tmp_path / "store")))
        return stores[-1]

    yield begin
    for store in stores:
        store.close()


def fill(store: Store) -> None:
    """Two jobs on one node and one on another."""
    lines = [
        process_line(BOOT + 100 + 10 * step, node, pid=int(job), job=job, cpu_user=float(step))
        for step in range(5) for node, job in (("n1", "100"), ("n2", "300"))
    ]  # fmt: skip
    store.append(lines).result(10)
    store.digest()


def usage(store: Store) -> list[tuple[Any, ...]]:
    return store.query("SELECT node, job_key, time, cpu_time FROM usage ORDER BY node, job_key, time")


def key(store: Store, job: str) -> str:
    (found,) = store.jobs(JobQuery(id=job), BOOT)
    return str(found["key"])


def replacement(store: Store, job: str, time: float) -> tuple[Any, ...]:
    """A row of usage like the first one of a job, at another time and with 77 seconds of CPU."""
    from jobsight.analyse.usage import Usage
    from jobsight.schema.record import fields_of

    names = ["cluster", "node", "boot", "time", *(field.name for field in fields_of(Usage))]
    row = store.query(f"SELECT {', '.join(names)} FROM usage WHERE job_key = ? ORDER BY time", [key(store, job)])[0]
    return tuple({"time": time, "cpu_time": 77.0}.get(name, value) for name, value in zip(names, row, strict=True))


def test_a_change_replaces_the_rows_of_its_jobs_on_its_node_and_no_others(opened: Begin) -> None:
    store = opened()
    fill(store)
    before = usage(store)
    one, other = key(store, "100"), key(store, "300")
    late = [("fox", "n1", "b1", BOOT + 105, "process"), ("fox", "n2", "b1", BOOT + 105, "process")]
    row = replacement(store, "100", BOOT + 108)
    with store.still() as may:
        assert may
        store.mark("late", late)
        span = (BOOT, BOOT + 1000)
        due = [("fox", "", "", BOOT // 3600 * 3600, "recount")]
        store.change([Change("fox", "n1", *span, [one], [row], due, [], [], span)])
    assert usage(store) == [("n1", one, BOOT + 108, 77.0), *(line for line in before if line[1] == other)]
    # The node's mark is done with, the other's is not.
    assert store.query("SELECT node FROM late") == [("n2",)]
    assert store.query("SELECT count(*) FROM due WHERE reason = 'recount'") == [(1,)]
    with store.still():
        store.unmark("late", [("fox", "n2", BOOT, BOOT + 104)])
        assert store.query("SELECT count(*) FROM late") == [(1,)]
        store.unmark("late", [("fox", "n2", BOOT, BOOT + 105)])
    assert store.query("SELECT count(*) FROM late") == [(0,)]


def test_jobs_change_and_go_with_their_rows(opened: Begin) -> None:
    store = opened()
    fill(store)
    one = key(store, "100")
    with store.still():
        store.change([Change("fox", "n1", BOOT, BOOT + 1000, [one], [], [], [], [one], (0.0, 0.0))])
    assert store.job(one) is None
    assert [line[0] for line in usage(store)] == ["n2"] * 5
    # What comes next starts from what is stored: the same job anew.
    store.append([process_line(BOOT + 200, "n1", cpu_user=9.0)]).result(10)
    assert store.digest() == 1
    assert len(store.jobs(JobQuery(id="100"), BOOT)) == 1


def test_refilling_replaces_a_span_and_can_be_done_again(opened: Begin) -> None:
    store = opened()
    fill(store)
    one, other = key(store, "100"), key(store, "300")
    label = [(one, "process", "alice", "physics", "short", "work"), (other, "process", "bob", None, "", "gmx")]
    sql = (
        "SELECT usage.cluster, node, boot, max(time) AS time, coalesce(owner, '?') || '%' AS reason "
        "FROM usage JOIN label USING (job_key) WHERE account = 'physics' GROUP BY usage.cluster, node, boot, owner"
    )
    with store.still():
        store.unmark("due", [("fox", "", 0.0, BOOT * 2)])
        store.mark("due", [("fox", "x", "", BOOT + 120, "old"), ("fox", "x", "", BOOT + 5000, "later")])
        for _ in range(2):
            assert store.refill("due", (BOOT, BOOT + 1000), sql, label) == 1
            found = store.query("SELECT node, time, reason FROM due ORDER BY time")
            assert found == [("n1", BOOT + 140, "alice%"), ("x", BOOT + 5000, "later")]
        assert store.refill("due", (BOOT, BOOT + 1000), sql, []) == 0


def test_the_horizon_is_where_rows_begin_to_be_complete(opened: Begin) -> None:
    store = opened()
    assert store.horizon("load") == 0
    store.append([load_line(BOOT), load_line(BOOT + 3 * DAY)]).result(10)
    store.digest()
    store.forget(BOOT + DAY, ["load"])
    store.forget(BOOT - DAY, ["load"])
    assert store.horizon("load") == BOOT + DAY
    assert store.horizon("process") == 0


def test_messages_that_come_late_are_counted_as_if_they_had_not(opened: Begin, tmp_path: Path) -> None:
    lines = [process_line(BOOT + 100 + 10 * step, cpu_user=1.25 * step) for step in range(30)]
    inline = open_store(str(tmp_path / "inline"))
    inline.append(lines).result(10)
    inline.digest()
    store = opened()
    for some in (lines[:5], lines[20:], lines[5:20]):
        store.append(some).result(10)
        store.digest()
    assert usage(store) != usage(inline)
    assert store.query("SELECT count(*) FROM late") == [(15,)]
    settle(store, BOOT + 5000)
    assert usage(store) == usage(inline)
    assert store.jobs(JobQuery(), BOOT) == inline.jobs(JobQuery(), BOOT)
    assert store.query("SELECT count(*) FROM late") == [(0,)]
    inline.close()


def test_nothing_is_changed_while_another_server_digests(url: str) -> None:
    first, second = open_database(url), open_database(url)
    fill(first)
    with second.still() as may:
        assert not may
    with pytest.raises(StoreError, match="another server digests into the database"):
        second.mark("late", [("fox", "n1", "b1", BOOT, "process")])
    first.close()
    with second.still() as may:
        assert may
    second.close()


def test_a_change_that_fails_leaves_everything_as_it_was(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_database(url)
    fill(store)
    before, one = usage(store), key(store, "100")
    row = replacement(store, "100", BOOT + 108)

    def fall(*_: Any) -> None:
        with connect(url) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != pg_backend_pid() "
                "AND datname = current_database() AND state = 'idle in transaction'"
            )

    monkeypatch.setattr(document, "put", fall)
    change = Change("fox", "n1", BOOT, BOOT + 1000, [one], [row], [], [], [one], (0.0, 0.0))
    with pytest.raises(StoreError, match="has not taken a change"):
        store.change([change])
    monkeypatch.undo()
    assert usage(store) == before
    assert store.job(one) is not None
    store.change([change])
    assert store.job(one) is None
    store.close()
