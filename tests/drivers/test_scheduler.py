import contextlib
import sys
from pathlib import Path
from typing import Any

import pytest

from jobsight.collector import AbsentError
from jobsight.command import CommandError, Output
from jobsight.drivers import scheduler
from jobsight.drivers.calls import Calls
from jobsight.drivers.scheduler import Errand
from jobsight.host import Host


class Hands:
    def __init__(self) -> None:
        self.now = 1000.0

    def wall(self) -> float:
        return self.now

    def steady(self) -> float:
        return self.now


class Machine(Host):
    """A machine whose programs take the time a test says."""

    def __init__(self, *, user: str = "root", capabilities: int = 0, programs: tuple[str, ...] = ("sacct",)) -> None:
        super().__init__()
        self.clock = Hands()
        self.takes = 0.1
        self.fails: tuple[str, ...] = ()
        self.ran: list[tuple[str, ...]] = []
        self.limits: list[float] = []
        self._name, self._capabilities, self._programs = user, capabilities, programs

    def run(self, command: tuple[str, ...], limit: float, **_: Any) -> Output:
        self.ran.append(command)
        self.limits.append(limit)
        self.clock.now += min(self.takes, limit)
        if command[0] in self.fails or self.takes > limit:
            raise CommandError(f"{command[0]} did not end well")
        return Output(0, "said", "")

    def has(self, program: str) -> bool:
        return program in self._programs

    def uid(self, path: str) -> int:  # noqa: ARG002
        return 4711

    def user(self, uid: int) -> str:  # noqa: ARG002
        return self._name

    def glimpse(self, path: str, column: str = "") -> str | None:  # noqa: ARG002
        return f"Name:\tx\nCapAmb:\t{self._capabilities:016x}\n" if path == "proc/self/status" else None

    def errand(self, limit: float = 8.0) -> Errand:
        return Errand(self, "slurmjob", limit, "slurm", self.clock)

    def asks(self, runs: int) -> list[bool]:
        """Which of so many runs, a minute apart, asked something."""
        asked = []
        for _ in range(runs):
            errand = self.errand()
            asked.append(not errand.rests())
            if asked[-1]:
                with contextlib.suppress(CommandError):
                    errand.ask(("sacct", "-x"))
            self.clock.now = (self.clock.now // 60 + 1) * 60
        return asked


def test_quick_answers_are_asked_for_every_time() -> None:
    assert Machine().asks(5) == [True] * 5


def test_slow_answers_are_asked_for_less_and_less_often_up_to_a_bound() -> None:
    machine = Machine()
    machine.takes = 13.0  # more than the errand's limit: it fails as well
    asked = machine.asks(60)
    rests = "".join("x" if one else "." for one in asked).split("x")
    assert [len(rest) for rest in rests[1:6]] == [1, 3, 7, 15, 15]


def test_quick_answer_ends_the_rest() -> None:
    machine = Machine()
    machine.takes = 13.0
    machine.asks(2)
    machine.takes = 0.1
    assert machine.asks(4) == [True] * 4


def test_all_calls_of_a_run_share_one_limit() -> None:
    machine = Machine()
    machine.takes = 3.0
    errand = machine.errand(limit=8.0)
    errand.ask(("sacct", "1"))
    errand.ask(("sacct", "2"))
    with pytest.raises(CommandError):
        errand.ask(("sacct", "3"))
    assert machine.limits == [8.0, 5.0, 2.0]


def test_calls_are_counted_with_their_time_and_their_failures() -> None:
    machine = Machine()
    assert machine.keep(Calls).count is None
    machine.asks(3)
    machine.fails = ("sacct",)
    machine.asks(1)
    calls = machine.keep(Calls)
    assert (calls.count, calls.failed, calls.way) == (4, 1, "as root")
    assert calls.seconds == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("machine", "words", "way"),
    [
        (Machine(user="slurm", programs=("sudo", "setpriv")), (), "as slurm"),
        (Machine(user="root", programs=("sudo", "setpriv")), (), "as root"),
        (
            Machine(user="jobsight", capabilities=0xC0, programs=("sudo", "setpriv")),
            ("setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups"),
            "setpriv to slurm",
        ),
        (
            Machine(user="jobsight", capabilities=0x80, programs=("sudo", "setpriv")),
            ("sudo", "-n", "-u", "slurm"),
            "sudo to slurm",
        ),
        (Machine(user="jobsight", capabilities=0xC0, programs=()), (), "as jobsight, who may not see everything"),
    ],
    ids=["slurm", "root", "capability", "sudo", "nothing"],
)
def test_rights_are_the_first_that_are_there(machine: Machine, words: tuple[str, ...], way: str) -> None:
    machine.asks(2)
    assert machine.ran[-1] == (*words, "sacct", "-x")
    assert machine.keep(Calls).way == way


def test_sudo_that_wants_a_password_is_not_used_and_not_tried_again() -> None:
    machine = Machine(user="jobsight", programs=("sudo",))
    machine.fails = ("sudo",)
    machine.asks(3)
    assert [command[0] for command in machine.ran] == ["sudo", "sacct", "sacct", "sacct"]
    assert machine.ran[0] == ("sudo", "-n", "-l", "-u", "slurm", "sacct", "-x")


def test_slow_call_before_a_quick_one_is_still_slow() -> None:
    machine = Machine()
    errand = machine.errand(limit=60.0)
    assert not errand.rests()
    for takes in (30.0, 0.1):
        machine.takes = takes
        errand.ask(("sacct", "-x"))
    assert machine.errand().rests()
    assert not machine.errand().rests()


def test_one_machine_asks_and_that_is_where_the_daemon_runs(tmp_path: Path) -> None:
    # The name of the interpreter that runs this test stands for a daemon that is here.
    me = Path("/proc/self/comm").read_text().strip()
    assert scheduler.runs_here(Host(), me)
    assert not scheduler.runs_here(Host(), "slurmctld-of-none")
    with pytest.raises(AbsentError):
        scheduler.check_here(Host(), None, "slurmctld-of-none")
    with pytest.raises(AbsentError):
        scheduler.check_here(Host(), False, Path(sys.executable).name)
    scheduler.check_here(Host(), True, "slurmctld-of-none")


def test_ambient_capabilities_are_read() -> None:
    assert scheduler.ambient("CapEff:\tffff\nCapAmb:\t00000000000000c0\n") == 0xC0
    assert scheduler.ambient("") == 0


def test_programs_that_nobody_set_up_are_absent_and_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def unconfigured(*_: object, **__: object) -> Output:
        raise CommandError("sacct ended with code 1: sacct: fatal: Could not establish a configuration source")

    machine = Machine()
    errand = machine.errand()
    monkeypatch.setattr(machine, "run", unconfigured)
    with pytest.raises(AbsentError, match="configuration source"):
        errand.ask(("sacct",))
