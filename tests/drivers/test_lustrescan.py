"""How Lustre targets are read: files or lctl, what is left out and why, and the account of it."""

import os
from pathlib import Path
from typing import Any

import pytest

from jobsight import catalogue
from jobsight.drivers import lustre, lustresource
from jobsight.drivers.lustreoptions import Options, check
from jobsight.host import Host
from jobsight.ingest.accept import Accepted, accept
from jobsight.schema.wire import encode
from jobsight.settings import SettingsError, parse
from jobsight.simulate.lustretarget import Target
from jobsight.simulate.lustretext import DIALECTS, framed, render
from jobsight.simulate.lustretree import Tree
from tests.drivers.lustreserver import BEGIN, EVERY, Hands, Server, rows, scan, told

T = "scratch-OST0000"


def used(name: str = T, kind: str = "ost") -> Target:
    target = Target(name, kind, BEGIN - 9000.0)
    for raw in (b"17:1001:n1", b":0:n1", b"\xff\\\n:1.7000", b"x" * 40):
        target.log(raw, "write", BEGIN - 60.0, 4096, 3, 50)
        target.log(raw, "statfs", BEGIN - 50.0)
    return target


def server(folder: Path, dialect: str = "2.16") -> Server:
    made = Server(Hands(), folder, dialect)
    made.mount(used())
    return made


def account(one: Server, **options: Any) -> dict[str, Any]:
    (found,) = rows(scan(one, "lustrescan", **options))
    return found


def test_the_account_of_a_scan_adds_up(tmp_path: Path) -> None:
    one = server(tmp_path)
    message = scan(one)
    found = account(one)
    assert isinstance(accept(encode(message)), Accepted)
    assert (found["ok"], found["entries"], found["changed"], found["unchanged"]) == (True, 4, 4, 0)
    assert (found["malformed"], found["truncated"], found["torn"], found["bad_lines"]) == (1, 1, 0, 0)
    assert found["scanned_at"] == message.time
    assert found["cleanup_interval"] == 600.0
    for entries in (4, 4):
        one.hands.passed += EVERY
        scan(one)
        found = account(one)
        assert found["changed"] + found["unchanged"] == found["entries"] == entries
    assert found["unchanged"] == 4


def test_an_account_is_given_once_and_not_where_nobody_scanned(tmp_path: Path) -> None:
    one = server(tmp_path)
    scan(one)
    assert account(one)["changed"] == 4
    assert scan(one, "lustrescan").rows == {}


def test_alone_the_account_reads_the_files_itself_and_remembers_nothing(tmp_path: Path) -> None:
    one = server(tmp_path)
    assert account(one)["entries"] == 4
    assert account(one)["changed"] == 4
    assert not (tmp_path / "lustreost.json").exists()
    assert all(row["absent_at"] is None for row in rows(scan(one)))


def test_the_systems_users_are_dropped_where_that_is_wanted_and_counted(tmp_path: Path) -> None:
    one = server(tmp_path)
    assert ":0:n1" not in told(scan(one, system="drop"))
    assert account(one)["system"] == 1
    assert ":0:n1" in told(scan(server(tmp_path / "other"), system="drop", system_below=0))


def test_formats_of_the_site_are_used(tmp_path: Path) -> None:
    found = told(scan(server(tmp_path), formats={"mine": "%j:%u:%h"}))
    assert found["17:1001:n1"]["format"] == "mine"
    assert found["x" * 31]["format"] == "malformed"
    assert found["x" * 31]["truncated"] is True
    assert found["\\xff\\\\\\x0a:1.7000"]["write"] == 3


def test_entries_too_many_for_a_message_are_told_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lustre, "MOST_ROWS", 3)
    one = server(tmp_path)
    first = set(told(scan(one, again=0)))
    assert account(one)["postponed"] == 1
    one.hands.passed += EVERY
    second = set(told(scan(one, again=0)))
    assert (len(first), len(second), len(first | second)) == (3, 1, 4)


def test_an_entry_printed_twice_is_told_once(tmp_path: Path) -> None:
    one = server(tmp_path)
    text = render(one.targets[T].read(BEGIN), "ost", one.dialect)
    one.pieces = lambda path, size=1: iter((text, text))  # type: ignore[method-assign]  # noqa: ARG005
    assert len(rows(scan(one))) == 4
    assert account(one)["bad_lines"] == 4


@pytest.mark.slow
def test_two_hundred_thousand_entries_take_no_more_than_a_message_at_a_time(tmp_path: Path) -> None:
    one = server(tmp_path)
    text = render(one.targets[T].read(BEGIN)[:1], "ost", one.dialect)

    def many(path: str, size: int = 0) -> Any:
        yield b"job_stats:\n"
        for number in range(200_000):
            yield text.removeprefix(b"job_stats:\n").replace(b"17:1001", b"%d:1001" % number)

    one.pieces = many  # type: ignore[method-assign]
    message = scan(one)
    assert len(rows(message)) == lustre.MOST_ROWS
    assert len(encode(message)) < 32 * 2**20
    found = account(one)
    assert (found["entries"], found["postponed"]) == (200_000, 200_000 - lustre.MOST_ROWS)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_lctl_and_files_give_the_same(dialect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(tmp_path / "root", DIALECTS[dialect], BEGIN - 5000.0)
    target = Target(T, "ost", BEGIN - 9000.0)
    for number in range(5):
        target.log(b"17:1001:n%d" % number, "write", BEGIN - 60.0, 2**24, 1 + number, 70)
    tree.mount(target)
    tree.mount(Target("scratch-OST0001", "ost", BEGIN))
    tree.write(BEGIN)
    monkeypatch.setenv("PATH", f"{tree.lctl(tmp_path / 'bin').parent}:{os.environ['PATH']}")
    collector = catalogue.collector("lustreost")
    printed = collector.rows(Host(), Options(through="lctl"))
    assert printed == collector.rows(Host(str(tree.root)), Options())
    assert [row.write for row in printed] == [1, 2, 3, 4, 5]
    host = Host()
    catalogue.collector("lustreost").rows(host, Options(through="lctl"))
    accounts = catalogue.collector("lustrescan").rows(host, Options(through="lctl"))
    assert [(row.target, row.ok, row.entries, row.source) for row in accounts] == [
        (T, True, 5, "lctl"), ("scratch-OST0001", True, 0, "lctl")
    ]  # fmt: skip
    assert (accounts[0].write, accounts[0].write_bytes, accounts[1].write) == (15, 15 * 2**24, 0)


def test_lctl_without_a_kind_of_targets_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(tmp_path / "root", DIALECTS["2.16"])
    tree.mount(used())
    tree.write(BEGIN)
    monkeypatch.setenv("PATH", str(tree.lctl(tmp_path / "bin").parent))
    assert catalogue.collector("lustremdt").rows(Host(), Options(through="lctl")) == []


def test_an_lctl_that_fails_is_a_failed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lctl").write_text("#!/bin/sh\necho no permission >&2\nexit 1\n")
    (tmp_path / "lctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(RuntimeError, match="lctl ended with code 1: no permission"):
        catalogue.collector("lustreost").rows(Host(), Options(through="lctl"))


def test_the_three_forms_of_an_empty_target_are_framed_and_read() -> None:
    text = framed([
        ("ost", "a-OST0000", "job_stats", b"job_stats:\n"), ("ost", "a-OST0001", "job_stats", b""),
        ("ost", "a-OST0002", "job_stats", b"job_stats:\n- job_id: x\n"), ("mdt", "a-MDT0000", "job_stats", b""),
    ]).decode()  # fmt: skip
    assert text.startswith("obdfilter.a-OST0000.job_stats=job_stats:\nobdfilter.a-OST0001.job_stats=\n")
    found = {target: part.strip() for target, _, part in lustresource.sections(text)}
    assert found == {
        "a-OST0000": "job_stats:", "a-OST0001": "", "a-OST0002": "job_stats:\n- job_id: x", "a-MDT0000": ""
    }  # fmt: skip


def test_totals_that_may_not_be_read_are_forbidden_and_cost_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: Any) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(lustresource, "totals", closed)
    one = server(tmp_path)
    scan(one)
    message = scan(one, "lustrescan")
    assert message.missing == {"operations": "forbidden"}
    assert (rows(message)[0]["ok"], rows(message)[0]["read"]) == (True, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("through: tar", "through: expected files or lctl"),
        ("system: fold", "system: expected keep or drop"),
        ("again: -1", "again must not be less"),
        ("formats: {malformed: '%j'}", "malformed is the name"),
        ("formats: {a: '%C'}", "format: expected"),
        ("limit: 0", "limit must be more"),
    ],
)
def test_options_that_cannot_be_are_refused_by_name(text: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=f"collect.lustreost: .*{reason}"):
        parse(f"collect: {{lustreost: {{{text}}}}}", "x.yaml", ["lustreost"])
    check(Options())
