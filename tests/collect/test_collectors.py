"""Every collector on every recorded machine. `GOLDEN=1 pytest tests/collect` rewrites what is expected."""

import errno
import json
import os
from pathlib import Path

import pytest

from jobsight import catalogue
from jobsight.collector import Collector
from jobsight.host import Host
from jobsight.ingest.accept import Accepted, accept
from jobsight.recording import Replay, as_json, outcome, replay
from jobsight.roster import TURN
from jobsight.schema.wire import encode
from tests.conftest import said

HERE = Path(__file__).parent
MACHINES = sorted(path.parent for path in HERE.glob("*/*/root"))
COLLECTORS = catalogue.collectors()


def name(value: Path | Collector) -> str:
    return f"{value.parent.name}-{value.name}" if isinstance(value, Path) else value.name


@pytest.mark.parametrize("machine", MACHINES, ids=name)
def test_collector_gives_what_is_expected_of_a_recorded_machine(machine: Path) -> None:
    collector = catalogue.collector(machine.parent.name)
    found = outcome(collector, replay(collector, Replay(str(machine / "root"))))
    expected = machine / "expected.json"
    if os.environ.get("GOLDEN"):
        expected.write_bytes(as_json(found))
    assert found == json.loads(expected.read_text())


@pytest.mark.parametrize("machine", MACHINES, ids=name)
def test_message_of_a_recorded_machine_is_accepted_and_comes_back_equal(machine: Path) -> None:
    message = replay(catalogue.collector(machine.parent.name), Replay(str(machine / "root")))
    accepted = accept(encode(message))
    assert isinstance(accepted, Accepted), accepted
    assert accepted.columns == said(message)


@pytest.mark.parametrize("machine", MACHINES, ids=name)
def test_warm_host_gives_the_rows_of_a_cold_one(machine: Path) -> None:
    collector = catalogue.collector(machine.parent.name)
    warm = Replay(str(machine / "root"))
    # By then the process collector has looked at everything anew.
    times = TURN + 2 if collector.name == "process" else 5
    outcomes = [outcome(collector, replay(collector, warm)) for _ in range(times)]
    assert outcomes == [outcomes[0]] * times


@pytest.mark.parametrize("collector", COLLECTORS, ids=name)
def test_collector_has_a_recorded_machine(collector: Collector) -> None:
    assert [machine for machine in MACHINES if machine.parent.name == collector.name]


@pytest.mark.parametrize("collector", COLLECTORS, ids=name)
def test_collector_is_absent_on_an_empty_machine(collector: Collector, tmp_path: Path) -> None:
    message = replay(collector, Host(str(tmp_path)))
    assert (message.status, message.rows, message.error) == ("absent", {}, None)


class Closed(Host):
    """A machine that shows what it has and lets nobody read it."""

    def read_bytes(self, path: str) -> bytes:
        if path in ("machine.json", "owners.json", "etc/passwd"):
            return super().read_bytes(path)
        raise PermissionError(errno.EACCES, "Permission denied", path)

    def piece(self, path: str, size: int = 4096) -> bytes:
        return self.read_bytes(path)[:size]

    def hold(self, path: str) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", path)


@pytest.mark.parametrize("machine", MACHINES, ids=name)
def test_unreadable_source_is_never_taken_for_an_idle_one(machine: Path) -> None:
    message = replay(catalogue.collector(machine.parent.name), Closed(str(machine / "root")))
    assert message.status == "failed" or message.missing
    if message.status == "failed":
        assert message.error is not None
        assert message.error.startswith("PermissionError")
        assert message.rows == {}
    else:
        assert set(message.missing.values()) == {"forbidden"}
