"""Destinations are opened together or not at all."""

import threading
from pathlib import Path

import pytest

from jobsight import catalogue
from jobsight.agent.service import open_sinks
from jobsight.clock import SystemClock
from jobsight.host import Host
from jobsight.settings import SettingsError, from_values


def test_a_sink_that_cannot_be_opened_leaves_no_other_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"spool": {"path": str(tmp_path)}, "sinks": [{"http": {"url": "http://127.0.0.1:1/i"}}, "stdout"]}
    settings = from_values(given)

    def refuse(*_: object) -> None:
        raise PermissionError("not for you")

    monkeypatch.setattr(catalogue.sink("stdout"), "open_sink", refuse)
    before = set(threading.enumerate())
    with pytest.raises(PermissionError):
        open_sinks(settings, Host(), SystemClock())
    assert set(threading.enumerate()) == before


def test_a_token_that_cannot_be_read_keeps_no_agent_from_starting(tmp_path: Path) -> None:
    sinks = [{"http": {"url": "http://127.0.0.1:1/i", "token_file": str(tmp_path)}}]
    settings = from_values({"spool": {"path": str(tmp_path / "spool")}, "sinks": sinks})
    for sink in open_sinks(settings, Host(), SystemClock()):
        sink.close()


def test_two_sinks_to_one_place_are_refused() -> None:
    sink = {"http": {"url": "http://127.0.0.1:1/i"}}
    with pytest.raises(SettingsError, match=r"sinks\[1\]: goes to the same place as sinks\[0\]"):
        from_values({"sinks": [sink, sink]})


@pytest.mark.parametrize("place", ["bob:hunter2@monitor.example", "bob:hunter2@monitor.example:443"])
def test_a_password_in_an_address_is_refused_and_not_repeated(place: str) -> None:
    with pytest.raises(SettingsError) as refused:
        from_values({"sinks": [{"http": {"url": f"https://{place}/ingest"}}]})
    assert "hunter2" not in str(refused.value)
