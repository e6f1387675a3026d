"""What any store must do. Each engine's test imports this and gives a way to open one."""

import json
from collections.abc import Callable
from typing import Any

from jobsight.analyse.judge import judge
from jobsight.analyse.profile import profile
from jobsight.analyse.scene import scene
from jobsight.analyse.tending import settle
from jobsight.store.findings import Kept
from jobsight.store.protocol import JobQuery, Store
from jobsight.store.sight import Sight

Open = Callable[[], Store]
BOOT = 1794700000.0


def load_line(time: float, node: str = "n1", status: str = "ok") -> bytes:
    rows = {"load1": [0.5], "load5": [0.5], "load15": [0.5], "runnable": [1], "existing": [80]}
    return _line("load", time, rows if status == "ok" else {}, node, status)


def process_line(time: float, node: str = "n1", **changes: Any) -> bytes:
    row = {
        "pid": 100, "started": 50.0, "parent": 1, "session": 100, "process_group": 100, "scheduler": "session",
        "job": "100", "owner": "alice", "command": "work", "state": "R", "threads": 2, "cpu_user": time - BOOT - 50,
        "cpu_system": 0.0, "cpu_children": 0.0, "memory_virtual": 10, "memory_anon": 1000,
    } | changes  # fmt: skip
    return _line("process", time, {name: [value] for name, value in row.items()}, node)


def _line(collector: str, time: float, rows: dict[str, Any], node: str, status: str = "ok") -> bytes:
    from jobsight.schema.wire import instant

    message = {
        "schema": 1, "cluster": "fox", "node": node, "boot": "b1", "collector": collector, "time": instant(time),
        "uptime": time - BOOT, "every": 10, "status": status, "seconds": 0.01, "rows": rows,
    }  # fmt: skip
    return json.dumps(message).encode()


class StoreContract:
    """Subclass with a fixture `opened`: a function that opens the same store each time it is called."""

    def test_what_is_appended_can_be_read_after_digesting(self, opened: Open) -> None:
        store = opened()
        store.append([load_line(BOOT + 100), load_line(BOOT + 110)]).result(10)
        assert store.digest() == 2
        assert store.query("SELECT node, time, load1 FROM load ORDER BY time") == [
            ("n1", BOOT + 100, 0.5),
            ("n1", BOOT + 110, 0.5),
        ]

    def test_storing_twice_changes_nothing(self, opened: Open) -> None:
        store = opened()
        lines = [load_line(BOOT + 100), process_line(BOOT + 100), load_line(BOOT + 100)]
        store.append(lines).result(10)
        store.append(lines).result(10)
        assert store.digest() == 2
        store.append(lines).result(10)
        assert store.digest() == 0
        assert store.query("SELECT count(*) FROM load") == [(1,)]
        assert store.query("SELECT count(*) FROM process") == [(1,)]
        assert store.query("SELECT count(*) FROM run") == [(2,)]

    def test_what_was_appended_and_not_digested_is_there_after_opening_again(self, opened: Open) -> None:
        store = opened()
        store.append([load_line(BOOT + 100)]).result(10)
        store.close()
        again = opened()
        assert again.digest() == 1
        assert again.query("SELECT count(*) FROM load") == [(1,)]

    def test_what_waits_to_be_digested_is_told(self, opened: Open) -> None:
        store = opened()
        assert store.backlog().size == 0
        store.append([load_line(BOOT + 100)]).result(10)
        assert 0 < store.backlog().size < store.backlog().most
        store.digest()
        assert store.backlog().size == 0

    def test_a_job_goes_on_over_a_restart(self, opened: Open) -> None:
        store = opened()
        store.append([process_line(BOOT + 100)]).result(10)
        store.digest()
        store.close()
        again = opened()
        again.append([process_line(BOOT + 110)]).result(10)
        again.digest()
        (job,) = again.jobs(JobQuery(), BOOT + 110)
        assert job["parts"][0]["cpu_time"] == 60
        assert job["started"] == BOOT + 50
        assert again.query("SELECT sum(cpu_time) FROM usage") == [(60.0,)]
        assert again.job(job["key"]) == job
        assert again.job("nobody") is None

    def test_a_run_that_failed_is_kept_and_ends_no_job(self, opened: Open) -> None:
        store = opened()
        failed = process_line(BOOT + 110).replace(b'"ok"', b'"failed"')
        store.append([process_line(BOOT + 100), failed]).result(10)
        store.digest()
        (job,) = store.jobs(JobQuery(state="running"), BOOT + 110)
        assert job["seen"] == BOOT + 100
        statuses = store.query("SELECT status FROM run ORDER BY time")
        assert statuses == [("ok",), ("failed",)]

    def test_a_row_without_its_optional_columns_has_them_missing(self, opened: Open) -> None:
        store = opened()
        store.append([process_line(BOOT + 100)]).result(10)
        store.digest()
        assert store.query("SELECT read, written, memory_shared FROM process") == [(None, None, None)]

    def test_hostile_names_come_back_as_they_went_in(self, opened: Open) -> None:
        store = opened()
        name = "a'b\"c\n\t\\; DROP TABLE process; -- \u202e😀"
        store.append([process_line(BOOT + 100, command=name, owner=name, job=name)]).result(10)
        store.digest()
        assert store.query("SELECT command, owner, job FROM process") == [(name, name, name)]
        (job,) = store.jobs(JobQuery(owner=name, command=name, text="DROP"), BOOT + 100)
        assert job["id"] == name

    def test_jobs_are_found_by_what_is_asked(self, opened: Open) -> None:
        store = opened()
        lines = [
            process_line(BOOT + 100, job="1", pid=1, owner="alice", command="vasp"),
            process_line(BOOT + 100, node="n2", job="2", pid=2, owner="bob", command="gmx"),
            process_line(BOOT + 500, job="3", pid=3, started=495.0, owner="alice", command="gmx"),
        ]
        store.append(lines).result(10)
        store.digest()

        def ids(**asked: Any) -> set[str]:
            return {job["id"] for job in store.jobs(JobQuery(**asked), BOOT + 500)}

        assert ids() == {"1", "2", "3"}
        assert ids(owner="alice") == {"1", "3"}
        assert ids(command="gmx", node="n2") == {"2"}
        assert ids(since=BOOT + 400) == {"3"}
        assert ids(until=BOOT + 400) == {"1", "2"}
        assert ids(state="running") == {"3"}
        assert ids(state="ended") == {"1"}
        assert ids(state="silent") == {"2"}
        assert ids(text="VAS") == {"1"}
        assert len(store.jobs(JobQuery(limit=1), BOOT + 500)) == 1

    def test_nodes_show_their_latest(self, opened: Open) -> None:
        store = opened()
        lines = [load_line(BOOT + 100), load_line(BOOT + 110, status="failed"), load_line(BOOT + 90, node="n2")]
        store.append(lines).result(10)
        store.digest()
        first, second = store.nodes(BOOT + 120)
        assert (first.name, first.seen, first.load, first.troubles) == ("n1", BOOT + 110, 0.5, 1)
        assert (second.name, second.troubles, second.cpus) == ("n2", 0, None)

    def test_a_late_message_is_counted_and_rollups_add_up(self, opened: Open) -> None:
        store = opened()
        times = [BOOT + 100 + 10 * step for step in range(60)]
        for some in (times[:20] + times[25:], times[20:25]):
            store.append([process_line(time, node=node) for time in some for node in ("n1", "n2")]).result(10)
            store.digest()
        assert store.query("SELECT count(*) FROM late") == [(10,)]
        settle(store, BOOT + 86400)
        assert store.query("SELECT count(*) FROM late") == [(0,)]
        assert store.query("SELECT node, count(*), sum(cpu_time) FROM usage GROUP BY node ORDER BY node") == [
            ("n1", 60, 640.0),
            ("n2", 60, 640.0),
        ]
        for table in ("slice", "share"):
            ((total, seconds),) = store.query(f"SELECT sum(cpu_time), sum(seconds) FROM {table}")
            assert (round(total, 6), round(seconds, 6)) == (1280, 1280)
        assert {job["parts"][0]["cpu_time"] for job in store.jobs(JobQuery(), BOOT)} == {640}
        assert store.query("SELECT count(*) FROM due") == [(0,)]

    def test_what_is_not_in_sight_is_not_there(self, opened: Open) -> None:
        store = opened()
        lines = []
        for number, owner, account in (("1", "ada", "physics"), ("2", "bob", "physics"), ("3", "bob", "")):
            told = {"scheduler": ["slurm"], "job": [number], "source": ["prolog"], "account": [account or None]}
            node = f"n{number}"
            lines += [
                _line("allocation", BOOT + 99, told, node),
                process_line(BOOT + 100, node=node, scheduler="slurm", job=number, owner=owner),
            ]
        store.append(lines).result(10)
        store.digest()
        keys = {job["id"]: job["key"] for job in store.jobs(JobQuery(), BOOT + 100)}
        for sight, seen in (
            (None, {"1", "2", "3"}),
            (Sight(("bob",)), {"2", "3"}),
            (Sight((), ("physics",)), {"1", "2"}),
            (Sight(("bob",), ("physics", "biology")), {"1", "2", "3"}),
            (Sight(("Bob", "%", "' OR 1=1 --"), ("",)), {"3"}),
            (Sight(), set()),
        ):
            found = store.jobs(JobQuery(sight=sight), BOOT + 100)
            assert {job["id"] for job in found} == seen
            assert {number for number, key in keys.items() if store.job(key, sight)} == seen
            assert store.accounts(sight) == (["physics"] if seen & {"1", "2"} else [])
            assert sorted(store.running(BOOT + 100, sight)) == sorted(keys[number] for number in seen)
            assert store.running(BOOT + 9000, sight) == []
            assert {job["id"] for job in store.jobs(JobQuery(sight=sight, owner="ada"), BOOT + 100)} == seen & {"1"}
            assert len(store.jobs(JobQuery(sight=sight, state="running", text="w"), BOOT + 100)) == len(seen)

    def test_a_jobs_processes_began_when_their_own_boot_says(self, opened: Open) -> None:
        """One job on two nodes, of which one was booted a thousand seconds later; the other could not read all."""
        store = opened()
        lines = []
        for ago, used in ((20, 5.0), (10, 9.0)):
            common = {"scheduler": "slurm", "job": "7", "owner": "ada", "started": 100.0}
            time = BOOT + 3000 - ago
            first = json.loads(process_line(time, "n1", **common, pid=1, cpu_user=used))
            second = json.loads(process_line(time, "n2", **common, pid=2, cpu_user=2 * used, read=4096))
            first["missing"] = {"read": "forbidden"}
            second |= {"boot": "b2", "uptime": time - BOOT - 1000}
            lines += [json.dumps(first).encode(), json.dumps(second).encode()]
        store.append(lines).result(10)
        store.digest()
        (job,) = store.jobs(JobQuery(), BOOT + 3000)
        found = profile(store, job, BOOT + 3000)
        assert found.processes_total == 2
        told = [(p.node, p.pid, p.owner, p.started, p.seen, p.cpu_time, p.read) for p in found.processes]
        assert told == [
            ("n2", 2, "ada", BOOT + 1100, BOOT + 2990, 18.0, 4096),
            ("n1", 1, "ada", BOOT + 100, BOOT + 2990, 9.0, None),
        ]
        assert found.missing == {"read": "no permission"}

    def test_jobs_are_found_by_several_ids_accounts_and_their_start(self, opened: Open) -> None:
        store = opened()
        lines = [process_line(BOOT + 100, node=f"n{n}", job=n, started=10.0 * int(n)) for n in "123"]
        store.append(lines).result(10)
        store.digest()

        def ids(**asked: Any) -> set[str]:
            return {job["id"] for job in store.jobs(JobQuery(**asked), BOOT + 100)}

        assert ids(ids=("1", "3", "9")) == {"1", "3"}
        assert ids(ids=("1",), accounts=("physics",)) == set()
        assert ids(begun=BOOT + 20) == {"2", "3"}
        assert ids(begun=BOOT + 20, until=BOOT + 20) == {"2"}

    def test_job_is_found_by_the_number_people_know_and_by_its_account(self, opened: Open) -> None:
        store = opened()
        told = {"scheduler": ["slurm"], "job": ["s0123456789ABC"], "source": ["prolog"], "number": ["4711"]}
        line = _line("allocation", BOOT + 99, told | {"account": ["Physics"], "name": ["melt"]}, "n1")
        process = process_line(BOOT + 100, scheduler="slurm", job="s0123456789ABC")
        store.append([line, process, process_line(BOOT + 100, node="n2")]).result(10)
        store.digest()
        for query in (JobQuery(id="4711"), JobQuery(id="s0123456789ABC"), JobQuery(text="physics")):
            (job,) = store.jobs(query, BOOT + 100)
            assert (job["id"], job["number"], job["account"]) == ("s0123456789ABC", "4711", "Physics")

    def test_findings_are_kept_told_to_those_who_may_see_them_and_acknowledged(self, opened: Open) -> None:
        store = opened()
        mine = Kept("a1", "hog", "fox", "key.1", "ada", "physics", 100.0, 200.0, 210.0, 210.0, None, '{"x": 1}')
        theirs = mine._replace(id="b2", subject="key.2", owner="bob", begun=300.0, seen=400.0)
        node = mine._replace(id="c3", subject="n1", owner="", account="")
        store.findings.keep([mine, theirs, node])
        assert store.findings.kept(0.0, 1000.0) == [theirs, mine, node]
        assert store.findings.kept(250.0, 1000.0) == [theirs]
        assert store.findings.kept(0.0, 250.0) == [mine, node]
        assert store.findings.kept(0.0, 1000.0, subject="key.1") == [mine]
        # What belongs to nobody is for those who see everything.
        assert store.findings.kept(0.0, 1000.0, Sight(("ada",))) == [mine]
        assert store.findings.kept(0.0, 1000.0, Sight((), ("physics",))) == [theirs, mine]
        assert store.findings.kept(0.0, 1000.0, Sight()) == []
        assert not store.findings.acknowledge("b2", 500.0, "ada", "mine?", Sight(("ada",)))
        assert not store.findings.acknowledge("zz", 500.0, "ada", "")
        assert store.findings.acknowledge("a1", 500.0, "ada", "agreed", Sight(("ada",)))
        # Found again it is written over, but for when it was first found and what somebody wrote.
        store.findings.keep([mine._replace(seen=290.0, first=290.0, last=290.0, ended=290.0, document="{}")])
        store.close()
        (again, _) = opened().findings.kept(0.0, 299.0)
        assert again[:12] == mine._replace(seen=290.0, last=290.0, ended=290.0, document="{}")[:12]
        assert again[12:] == (500.0, "ada", "agreed")

    def test_old_findings_are_forgotten(self, opened: Open) -> None:
        store = opened()
        old = Kept("a1", "hog", "fox", "key.1", "ada", "physics", 100.0, 200.0, 210.0, 210.0, None, "{}")
        store.findings.keep([old, old._replace(id="b2", seen=300.0)])
        assert store.findings.forget(250.0) == 1
        assert [one.id for one in store.findings.kept(0.0, 1000.0)] == ["b2"]

    def test_what_findings_look_at_can_be_asked_of_it(self, opened: Open) -> None:
        store = opened()
        told = {"nodes": ["n[1-2]"], "partitions": ["normal"], "state": ["IDLE"], "node_count": [2], "cpus": [64]}
        lines = [process_line(BOOT + 100 + 10 * turn) for turn in range(4)]
        lines += [load_line(BOOT + 100), _line("slurmnode", BOOT + 100, told, "head")]
        machine = {"model": ["x"], "cpus": [64], "memory": [2**38], "threads": [2], "system": ["x"], "kernel": ["x"]}
        lines.append(_line("hardware", BOOT + 100, machine, "n3"))
        store.append(lines).result(10)
        store.digest()
        seen = scene(store, BOOT, BOOT + 7200, BOOT + 7200)
        assert [case.figures.id for case in seen.cases] == ["100"]
        assert seen.machines["fox", "n1"].scheduled
        assert seen.machines["fox", "n2"].partitions == ("normal",)
        assert (seen.machines["fox", "n3"].threads, seen.machines["fox", "n3"].scheduled) == (2, False)
        assert judge(seen) == []
