"""Whatever a collector does becomes a message."""

import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobsight.agent.run import run
from jobsight.agent.runner import Ask, Runner
from jobsight.clock import SystemClock
from jobsight.collector import Collector, ParseError, collector
from jobsight.host import Host
from jobsight.schema.message import Origin, Status
from jobsight.schema.record import gauge, record
from tests.conftest import wait_until

ORIGIN = Origin("fox", "n1", "b1")


@record
class Thing:
    """Something."""

    size: int = gauge("How large.")


def collector_that(act: Any, *needs: str) -> Collector:
    @collector(*needs)
    def thing(host: Host) -> Iterator[Thing]:
        yield from act(host)

    found: Collector = thing.collector  # type: ignore[attr-defined]
    return found


def rows(_: Host) -> Iterator[Thing]:
    yield Thing(size=1)
    yield Thing(size=2)


def test_rows_become_columns_of_an_ok_message(tmp_path: Path) -> None:
    message = run(collector_that(rows), None, Host(str(tmp_path)), ORIGIN, SystemClock(), 30.0)
    assert (message.status, message.rows, message.error) == (Status.OK, {"size": (1, 2)}, None)
    assert (message.every, message.origin) == (30.0, ORIGIN)
    assert message.seconds >= 0


def test_a_source_that_is_not_there_is_absent_and_no_error(tmp_path: Path) -> None:
    message = run(collector_that(rows, "proc/nothing"), None, Host(str(tmp_path)), ORIGIN, SystemClock())
    assert (message.status, message.rows, message.error) == (Status.ABSENT, {}, None)


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (ParseError("expected digits, got 'x'"), "ParseError: expected digits, got 'x'"),
        (PermissionError(13, "Permission denied"), "PermissionError: [Errno 13] Permission denied"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (ValueError("x" * 10_000), "ValueError: xxxx"),
    ],
)
def test_anything_raised_is_a_failed_message_with_its_reason(tmp_path: Path, problem: Exception, text: str) -> None:
    def fail(_: Host) -> Iterator[Thing]:
        yield Thing(size=1)
        raise problem

    message = run(collector_that(fail), None, Host(str(tmp_path)), ORIGIN, SystemClock())
    assert message.status == Status.FAILED
    assert message.rows == {}
    assert message.error is not None
    assert message.error.startswith(text)
    assert len(message.error) <= 500


def test_what_was_said_to_be_missing_is_in_the_message_and_not_in_the_next(tmp_path: Path) -> None:
    host = Host(str(tmp_path))

    def short(host: Host) -> Iterator[Thing]:
        host.miss("size", "forbidden")
        yield Thing(size=1)

    assert run(collector_that(short), None, host, ORIGIN, SystemClock()).missing == {"size": "forbidden"}
    assert run(collector_that(rows), None, host, ORIGIN, SystemClock()).missing == {}


def test_a_source_that_hangs_is_late_holds_up_nobody_and_comes_back(tmp_path: Path) -> None:
    let_go = threading.Event()
    calls: list[int] = []

    def hang(_: Host) -> Iterator[Thing]:
        calls.append(1)
        if len(calls) == 1:
            let_go.wait(30)
        yield Thing(size=len(calls))

    hanging, quick = collector_that(hang), collector_that(rows)._replace(name="quick")
    runner = Runner(Host(str(tmp_path)), ORIGIN, SystemClock())
    late = runner.run(hanging, None, 0.05, 30.0)
    assert late is not None
    assert (late.status, late.error) == (Status.LATE, "no answer within 0.05 s")
    assert runner.run(hanging, None, 0.05, 30.0) is None, "a second run while the first hangs"
    good = runner.run(quick, None, 5.0, 30.0)
    assert good is not None
    assert good.rows == {"size": (1, 2)}
    let_go.set()
    for _ in range(100):
        again = runner.run(hanging, None, 5.0, 30.0)
        if again is not None:
            break
        threading.Event().wait(0.02)
    assert again is not None
    assert again.rows == {"size": (2,)}, "rows of the past were not dropped"


def test_of_many_at_once_only_those_that_hang_are_late(tmp_path: Path) -> None:
    let_go = threading.Event()

    def hang(_: Host) -> Iterator[Thing]:
        let_go.wait(30)
        yield Thing(size=0)

    names = ["a", "b", "c", "d", "e"]
    slow = {"b", "d"}
    asks = [
        Ask(collector_that(hang if name in slow else rows)._replace(name=name), None, 0.05 if name in slow else 5, 30)
        for name in names
    ]
    runner = Runner(Host(str(tmp_path)), ORIGIN, SystemClock())
    first = runner.run_all(asks)
    assert [message.collector for message in first] == names
    assert {message.collector for message in first if message.status == Status.LATE} == slow
    second = runner.run_all(asks)
    assert [message.collector for message in second] == ["a", "c", "e"], "who hangs is not asked again"
    assert all(message.rows == {"size": (1, 2)} for message in second)
    let_go.set()
    wait_until(lambda: len(runner.run_all(asks)) == 5, what="those that hung are asked again")
    runner.close()


def test_a_collector_takes_its_name_record_and_options_from_where_it_stands() -> None:
    module = types.ModuleType("jobsight.collect.thing")
    sys.modules[module.__name__] = module
    try:
        found = collector_that(rows)
    finally:
        del sys.modules[module.__name__]
    assert found.record is Thing
    assert found.options is None
    assert found.name == "test_runner"


def test_a_collector_that_exits_has_failed_and_runs_again(tmp_path: Path) -> None:
    def leave(_: Host) -> Iterator[Thing]:
        sys.exit("enough")
        yield

    runner = Runner(Host(str(tmp_path)), ORIGIN, SystemClock())
    for _ in range(2):
        message = runner.run(collector_that(leave), None, 5.0, None)
        assert message is not None
        assert message.status is Status.FAILED
        assert message.error == "SystemExit: enough"
    runner.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_worker_that_breaks_off_does_not_keep_its_collector_from_running(tmp_path: Path) -> None:
    class BreakError(BaseException):
        pass

    def break_off(_: Host) -> Iterator[Thing]:
        raise BreakError
        yield

    runner = Runner(Host(str(tmp_path)), ORIGIN, SystemClock())
    first = runner.run(collector_that(break_off), None, 0.1, None)
    assert first is not None
    assert first.status is Status.LATE
    assert runner.run(collector_that(rows), None, 5.0, None) is not None
    runner.close()
