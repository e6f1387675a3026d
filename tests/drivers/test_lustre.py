"""When a Lustre entry is told, and since when it was surely absent."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jobsight.simulate.lustretarget import Target
from tests.drivers.lustreserver import BEGIN, EVERY, Hands, Server, rows, scan, told

JOB, OTHER = b"17:1001:n1", b"18:1002:n2"
T = "scratch-OST0000"


@pytest.fixture(params=["2.12", "2.15.0", "2.16"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Server:
    """One with a target that was scanned once and had an old entry. Of entries some tell no start, some no times."""
    made = Server(Hands(), tmp_path, request.param)
    target = Target(T, "ost", BEGIN - 9000.0)
    made.mount(target)
    target.log(OTHER, "write", BEGIN - 60.0, 4096)
    assert told(scan(made))[OTHER.decode()]["absent_at"] is None
    return made


def after(server: Server, seconds: float = EVERY) -> float:
    server.hands.passed += seconds
    return server.hands.wall()


def write(server: Server, raw: bytes = JOB, before: float = 50.0) -> float:
    """A write some time ago; when."""
    at = server.hands.wall() - before
    server.targets[T].log(raw, "write", at, 1000)
    return at


def test_a_new_entry_was_absent_at_the_last_scan_or_began_later(server: Server) -> None:
    last = server.hands.wall()
    after(server)
    began = write(server)
    row = told(scan(server))["17:1001:n1"]
    assert row["absent_at"] == (began if server.dialect.name == "2.16" else last)
    assert row["write_bytes"] == 1000


def test_every_row_of_a_life_says_since_when_it_was_absent(server: Server) -> None:
    after(server)
    write(server)
    first = told(scan(server))["17:1001:n1"]
    for _ in range(3):
        after(server)
        write(server)
        assert told(scan(server))["17:1001:n1"]["absent_at"] == first["absent_at"]


def test_an_entry_that_holds_still_is_told_once_more_and_then_left_out(server: Server) -> None:
    after(server)
    assert set(told(scan(server))) == {"18:1002:n2"}
    after(server)
    assert scan(server).rows == {}
    after(server)
    write(server, OTHER)
    assert set(told(scan(server))) == {"18:1002:n2"}


def test_an_entry_left_out_of_one_reading_is_no_new_one(server: Server) -> None:
    after(server)
    write(server)
    first = told(scan(server))["17:1001:n1"]
    after(server)
    write(server)
    server.skip = {T: 1}
    assert "17:1001:n1" not in told(scan(server))
    server.skip = {}
    after(server)
    write(server)
    row = told(scan(server))["17:1001:n1"]
    assert (row["absent_at"], row["write_bytes"]) == (first["absent_at"], 3000)


def test_an_entry_that_began_anew_between_two_scans_says_so_where_it_can(server: Server) -> None:
    after(server)
    first = write(server)
    scan(server)
    after(server)
    server.targets[T].clear(JOB)
    second = write(server, before=20.0)
    row = told(scan(server))["17:1001:n1"]
    if server.dialect.name == "2.16":
        assert (row["absent_at"], row["start_time"]) == (second, second)
    else:
        assert row["absent_at"] == BEGIN < first


def test_a_clock_set_forward_makes_no_entry_old_enough_to_go(tmp_path: Path) -> None:
    server = Server(Hands(), tmp_path, "2.12")
    server.mount(Target(T, "ost", BEGIN - 9000.0))
    scan(server)
    after(server)
    write(server, OTHER)
    write(server)
    server.hands.shift += 3600.0
    first = told(scan(server))["17:1001:n1"]
    after(server)
    server.skip = {T: 1}
    scan(server)
    server.skip = {}
    after(server)
    write(server)
    assert told(scan(server))["17:1001:n1"]["absent_at"] == first["absent_at"]


def test_an_unknown_entry_used_before_the_last_scan_only_was_overlooked(tmp_path: Path) -> None:
    server = Server(Hands(), tmp_path, "2.12")
    target = Target(T, "ost", BEGIN - 9000.0)
    server.mount(target)
    target.log(JOB, "write", BEGIN - 30.0, 1000)
    server.skip = {T: 0}
    assert scan(server).rows == {}
    server.skip = {}
    after(server)
    assert told(scan(server))["17:1001:n1"]["absent_at"] is None


def test_an_entry_that_expired_and_came_back_is_a_new_one(server: Server) -> None:
    after(server)
    write(server)
    scan(server)
    seen = True
    while seen:
        after(server)
        scan(server)
        seen = JOB in server.targets[T].accounts
    after(server)
    # The reading that removed it still showed it: this one does not.
    scan(server)
    last = server.hands.wall()
    after(server)
    began = write(server)
    row = told(scan(server))["17:1001:n1"]
    assert row["absent_at"] == (began if server.dialect.name == "2.16" else last)


@pytest.mark.parametrize("trouble", [OSError(5, "Input/output error"), PermissionError(13, "Permission denied")])
def test_a_scan_that_failed_says_nothing_of_absence(server: Server, trouble: OSError) -> None:
    last = server.hands.wall()
    after(server)
    write(server, before=10.0)
    server.broken = {T: trouble}
    message = scan(server)
    expected = "forbidden" if isinstance(trouble, PermissionError) else "failed"
    assert (message.status, message.rows, message.missing) == ("ok", {}, {"entry": expected})
    server.broken = {}
    after(server)
    row = told(scan(server))["17:1001:n1"]
    assert row["absent_at"] in (last, last + EVERY - 10.0)


def test_a_torn_reading_tells_what_it_has_and_says_nothing_of_absence(server: Server) -> None:
    last = server.hands.wall()
    after(server)
    write(server, OTHER)
    write(server)
    server.cut = {T: 40}
    assert set(told(scan(server))) == {"18:1002:n2"}
    server.cut = {}
    after(server)
    row = told(scan(server))["17:1001:n1"]
    assert row["absent_at"] in (last, last + EVERY - 50.0)


def test_one_failing_target_costs_the_others_nothing(server: Server) -> None:
    second = Target("scratch-OST0001", "ost", BEGIN)
    server.mount(second)
    after(server)
    second.log(JOB, "write", server.hands.wall() - 5.0, 77)
    server.broken = {T: OSError(5, "Input/output error")}
    assert [row["write_bytes"] for row in rows(scan(server))] == [77]
    accounts = {row["target"]: row for row in rows(scan(server, "lustrescan"))}
    assert (accounts[T]["ok"], accounts[T]["entries"]) == (False, None)
    assert "Input/output error" in accounts[T]["error"]
    assert (accounts["scratch-OST0001"]["ok"], accounts["scratch-OST0001"]["changed"]) == (True, 1)


def restarted(server: Server, folder: Path, **changes: str) -> Server:
    """The agent, or the whole machine, starts again."""
    made = Server(server.hands, folder, server.dialect.name, changes.get("boot", server.boot_name))
    made.mount(*server.targets.values())
    return made


def test_a_restarted_agent_remembers(server: Server, tmp_path: Path) -> None:
    last = server.hands.wall()
    after(server)
    began = write(server)
    row = told(scan(restarted(server, tmp_path)))
    assert row["17:1001:n1"]["absent_at"] == (began if server.dialect.name == "2.16" else last)
    assert row["18:1002:n2"]["absent_at"] is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: b"",
        lambda text: text[: len(text) // 2],
        lambda _: b"\0" * 50,
        lambda _: b"[]",
        lambda text: text.replace(b'"scanned":1', b'"scanned":"x'),
        lambda text: text.replace(b'"scanned":1', b'"scanned":9'),
        lambda text: text.replace(b'"form":1', b'"form":2'),
        lambda text: text.replace(b'"scanned":', b'"scanned":NaN,"x":'),
    ],
)
def test_without_a_memory_that_reads_the_scan_is_a_first_one(
    server: Server, tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    kept = tmp_path / "lustreost.json"
    kept.write_bytes(spoil(kept.read_bytes()))
    after(server)
    write(server)
    found = told(scan(restarted(server, tmp_path)))
    assert [row["absent_at"] for row in found.values()] == [None, None]


def test_after_a_boot_all_entries_are_new(server: Server, tmp_path: Path) -> None:
    after(server, 300.0)
    server.targets[T].mount(server.hands.wall())
    new = restarted(server, tmp_path, boot="boot2")
    new.booted = server.hands.uptime()
    booted = server.hands.wall()
    after(server, 60.0)
    began = write(new, OTHER, before=20.0)
    row = told(scan(new))["18:1002:n2"]
    assert row["absent_at"] == pytest.approx(began if server.dialect.name == "2.16" else booted)


def test_a_target_that_went_away_and_came_back_has_new_entries(server: Server) -> None:
    stays = Target("scratch-OST0001", "ost", BEGIN)
    target = server.targets.pop(T)
    server.mount(stays)
    after(server)
    scan(server)
    gone = server.hands.wall()
    after(server, 600.0)
    target.mount(server.hands.wall() - 100.0)
    server.mount(target)
    began = write(server, OTHER)
    row = told(scan(server))["18:1002:n2"]
    assert row["absent_at"] == (began if server.dialect.name == "2.16" else gone)


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_clock_that_is_set_leaves_absences_before_the_row(server: Server, step: float) -> None:
    after(server)
    server.hands.shift += step
    began = write(server, before=10.0)
    message = scan(server)
    row = told(message)["17:1001:n1"]
    last = server.hands.wall() - EVERY
    assert row["absent_at"] == pytest.approx(began if server.dialect.name == "2.16" else last)
    assert row["absent_at"] < message.time


def test_entries_that_never_expire_are_forgotten_in_the_end(server: Server) -> None:
    server.targets[T].interval = 0.0
    after(server)
    write(server)
    scan(server)
    server.targets[T].clear()
    for _ in range(40):
        after(server)
        scan(server)
    last = server.hands.wall()
    after(server)
    began = write(server)
    assert told(scan(server))["17:1001:n1"]["absent_at"] in (last, began)
