"""The roster's held files: every one is let go."""

import os
from pathlib import Path

import pytest

from jobsight.collect.process import traffic
from jobsight.host import Host
from jobsight.roster import ONCE, Roster


def test_a_file_whose_process_goes_while_it_is_opened_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> bytes:
        raise ProcessLookupError

    host, roster, name = Host(), Roster(), str(os.getpid())
    roster.begin(host, host.names("proc"))
    seen = roster.meet(host, name)
    seen.held_io = ONCE
    monkeypatch.setattr(host, "peek", gone)
    assert traffic(host, roster, name, seen, due=True) == (None, None)
    roster.forget(host, name)
    assert roster.held == 0
    assert not host._held


def test_a_host_that_was_closed_holds_nothing_new() -> None:
    host = Host()
    host.close()
    with pytest.raises(FileNotFoundError):
        host.hold("proc/self/stat")


def test_a_pipe_where_a_file_is_expected_reads_as_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "17")
    host = Host(str(tmp_path))
    assert host.read_bytes("17") == host.piece("17") == b""
