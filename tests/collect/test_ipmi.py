"""A management controller that is asked by a program: how often, with which rights, and if it does not answer."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jobsight import catalogue
from jobsight.agent.run import run
from jobsight.clock import SystemClock
from jobsight.collect.ipmi import Answer, Options, check
from jobsight.collector import ParseError
from jobsight.command import CommandError
from jobsight.host import Host
from jobsight.schema.message import Origin
from jobsight.schema.units import Seconds
from jobsight.settings import SettingsError, parse

GOOD = (Path(__file__).parent / "ipmi/freeipmi/root/commands/ipmi-dcmi").read_text()
COLLECTOR = catalogue.collector("ipmi")
Program = Callable[..., tuple[str, ...]]


class Hands(SystemClock):
    """A clock whose hands the test turns."""

    now = 1000.0

    def steady(self) -> float:
        return self.now


class Unprivileged(Host):
    """A machine on which we are nobody special."""

    def user(self, uid: int) -> str:  # noqa: ARG002
        return "jobsight"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A program that notes that it was run and then does as it is told."""

    def write(script: str = f"cat <<'END'\n{GOOD}END", name: str = "dcmi") -> tuple[str, ...]:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/sh\necho "$0 $*" >> {tmp_path}/runs\n{script}\n')
        path.chmod(0o755)
        return (str(path), "--all")

    return write


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text().splitlines())


def hands(host: Host) -> Hands:
    clock = host.keep(Answer).clock = Hands()
    return clock


def test_an_answer_serves_for_a_while_and_tells_its_age(program: Program, tmp_path: Path) -> None:
    host, options = Host(), Options(command=program())
    clock = hands(host)
    first, *_ = COLLECTOR.rows(host, options)
    clock.now += 30.0
    second, *_ = COLLECTOR.rows(host, options)
    assert (first.power, first.age, second.power, second.age, runs(tmp_path)) == (217.0, 0.0, 217.0, 30.0, 1)
    clock.now += 30.0
    assert COLLECTOR.rows(host, options)[0].age == 0.0
    assert runs(tmp_path) == 2


def test_what_cannot_be_renewed_is_told_with_its_age_until_it_expires(program: Program) -> None:
    host, options = Host(), Options(command=program())
    clock = hands(host)
    COLLECTOR.rows(host, options)
    program("echo busy >&2; exit 1")
    clock.now += 200.0
    assert [row.age for row in COLLECTOR.rows(host, options)] == [200.0]
    assert host.missed() == {"power": "failed"}
    clock.now += 101.0
    with pytest.raises(CommandError, match="dcmi ended with code 1: busy"):
        COLLECTOR.rows(host, options)


def test_one_that_does_not_answer_is_not_asked_again_at_once(program: Program, tmp_path: Path) -> None:
    host, options = Host(), Options(command=program("echo no such device >&2; exit 1"))
    clock = hands(host)
    for _ in range(3):
        with pytest.raises(CommandError, match="no such device"):
            COLLECTOR.rows(host, options)
    assert runs(tmp_path) == 1
    clock.now += 60.0
    program()
    assert [row.power for row in COLLECTOR.rows(host, options)] == [217.0]
    assert host.missed() == {"power": "failed"}, "that of the runs before"
    assert COLLECTOR.rows(host, options)
    assert host.missed() == {}


def test_a_controller_that_hangs_is_given_up_in_time(program: Program) -> None:
    options = Options(command=program("exec sleep 600"), limit=Seconds(0.3))
    with pytest.raises(CommandError, match=r"dcmi did not end within 0\.3 s and was ended"):
        COLLECTOR.rows(Host(), options)


def test_another_format_is_refused_and_is_not_kept(program: Program) -> None:
    options = Options(command=program("echo 'PW Consumption | 216 Watts | ok'"), fresh=Seconds(0.0))
    host = Host()
    with pytest.raises(ParseError, match=r"expected what ipmi-dcmi or .* prints, got 'PW Consumption"):
        COLLECTOR.rows(host, options)
    program()
    assert [row.power for row in COLLECTOR.rows(host, options)] == [217.0]


def test_a_refusal_is_said_as_forbidden(program: Program) -> None:
    host = Host()
    with pytest.raises(CommandError, match="Permission denied"):
        COLLECTOR.rows(host, Options(command=program("echo 'ipmi-dcmi: Permission denied' >&2; exit 1")))
    assert host.missed() == {"power": "forbidden"}


SUDO = 'shift; if [ "$1" = -l ]; then exit %d; fi; MAY=1 exec "$@"'
NEEDS_RIGHTS = f"[ \"$MAY\" ] || exit 1\ncat <<'END'\n{GOOD}END"


def test_where_it_fails_as_we_are_sudo_does_it_and_is_kept_to(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(SUDO % 0, "sudo")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    host, options = Unprivileged(), Options(command=program(NEEDS_RIGHTS))
    clock = hands(host)
    assert COLLECTOR.rows(host, options)[0].power == 217.0
    before = runs(tmp_path)
    clock.now += 60.0
    assert COLLECTOR.rows(host, options)[0].age == 0.0
    assert runs(tmp_path) - before == 2, "sudo and the command itself: not once more as we are, no second probe"


def test_sudo_that_refuses_is_asked_once(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(SUDO % 1, "sudo")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    host, options = Unprivileged(), Options(command=program(NEEDS_RIGHTS), fresh=Seconds(0.0))
    for _ in range(3):
        with pytest.raises(CommandError):
            COLLECTOR.rows(host, options)
    asked = [line for line in (tmp_path / "runs").read_text().splitlines() if "/sudo " in line]
    assert len(asked) == 1


@pytest.mark.parametrize(("sudo", "power"), [(True, [217.0]), (False, None)])
def test_a_setting_decides_about_sudo(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, sudo: bool, power: list[float] | None
) -> None:
    program(SUDO % 0, "sudo")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    options = Options(command=program(NEEDS_RIGHTS), sudo=sudo)
    if power is None:
        with pytest.raises(CommandError):
            COLLECTOR.rows(Unprivileged(), options)
    else:
        assert [row.power for row in COLLECTOR.rows(Unprivileged(), options)] == power


def test_settings_are_words_and_what_makes_no_sense_is_refused() -> None:
    (plan,) = parse("collect: {ipmi: {command: [/opt/bmc, power], fresh: 2m}}", "f", only=("ipmi",)).collect
    assert plan.options.command == ("/opt/bmc", "power")
    assert plan.options.fresh == 120.0
    with pytest.raises(SettingsError, match="expires must not be less than fresh"):
        parse("collect: {ipmi: {fresh: 10m}}", "f", only=("ipmi",))
    with pytest.raises(ValueError, match="limit"):
        check(Options(limit=Seconds(0.0)))


def test_a_command_that_is_not_there_is_an_absent_source() -> None:
    message = run(COLLECTOR, Options(command=("/no/such",)), Host(), Origin("c", "n", "b"), SystemClock())
    assert (message.status, message.error) == ("absent", None)
