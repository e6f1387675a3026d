"""How the scheduler's collectors behave where there is no scheduler, an old one, or a slow one."""

from pathlib import Path
from typing import Any

import pytest

from jobsight import catalogue
from jobsight.agent.run import run
from jobsight.clock import SystemClock
from jobsight.collect import slurmjob, slurmqueue
from jobsight.command import CommandError, Output
from jobsight.drivers.scheduler import Pace, Paces
from jobsight.drivers.slurm import Survey
from jobsight.exporter.scrape import Scraper
from jobsight.host import Host
from jobsight.schema.exposition import text as exposed
from jobsight.schema.message import Message, Origin
from jobsight.settings import from_values

HERE = Path(__file__).parent
ORIGIN = Origin("fox", "n1", "boot1")
NAMES = ("slurmjob", "slurmqueue", "slurmnode", "pbsjob")


class Controller(Host):
    """A machine whose programs answer what a test says; nothing of it is a copy."""

    def __init__(self, answers: dict[str, str], refused: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.answers = answers
        self.refused = refused
        self.ran: list[tuple[str, ...]] = []
        self.options: list[dict[str, Any]] = []

    def has(self, program: str) -> bool:
        return program in self.answers

    def user(self, uid: int) -> str:  # noqa: ARG002
        return "slurm"

    def run(self, command: tuple[str, ...], limit: float, **options: Any) -> Output:  # noqa: ARG002
        self.ran.append(command)
        self.options.append(options)
        for name in self.refused:
            if name in command[-1]:
                raise CommandError(
                    f'{command[0]} ended with code 1: {command[0]}: error: Invalid field requested: "{name}"'
                )
        if any("--json" in word for word in command):
            raise CommandError("squeue ended with code 1: squeue: unrecognized option '--json'")
        return Output(0, self.answers[command[0]], "")


def recorded(name: str, program: str) -> str:
    return (HERE / name / "slurm-22.05" / "root" / "commands" / program).read_text()


def ran(name: str, host: Host, **options: Any) -> Message:
    found = catalogue.collector(name)
    assert found.options
    return run(found, found.options(**options), host, ORIGIN, SystemClock())


@pytest.mark.parametrize("name", NAMES)
def test_collector_is_absent_without_its_programs_and_without_its_daemon(name: str) -> None:
    assert ran(name, Controller({}), here=True).status == "absent"
    every = dict.fromkeys(("sacct", "squeue", "scontrol", "qstat"), "")
    host = Controller(every)
    for options in ({}, {"here": False}):
        message = ran(name, host, **options)
        assert (message.status, message.error, message.rows) == ("absent", None, {})
    assert host.ran == []


def test_column_that_a_release_does_not_know_is_left_out_from_then_on() -> None:
    host = Controller({"sacct": recorded("slurmjob", "sacct")}, refused=("SLUID", "Restarts"))
    first, second = ran("slurmjob", host, here=True), ran("slurmjob", host, here=True)
    assert first.status == second.status == "ok"
    assert first.rows["job"]
    assert len(host.ran) == 4
    assert "SLUID" not in host.ran[-1][-1]
    assert second.rows == {}, "all was sent a moment ago"


def test_sacct_is_asked_for_everybody_in_seconds_since_1970() -> None:
    host = Controller({"sacct": recorded("slurmjob", "sacct")})
    ran("slurmjob", host, here=True)
    assert host.options[0]["variables"] == {"SLURM_TIME_FORMAT": "%s", "TZ": "UTC"}
    assert {"--allusers", "--duplicates", "--parsable", "--noconvert"} < set(host.ran[0])
    assert not any(word.startswith("--state") for word in host.ran[0])


def test_jobs_that_run_are_asked_for_now_and_then_and_ends_every_time() -> None:
    host = Controller({"sacct": recorded("slurmjob", "sacct")})
    for _ in range(3):
        ran("slurmjob", host, here=True)
    states = [[word for word in command if word.startswith("--state=")] for command in host.ran]
    assert states[0] == []
    assert "OUT_OF_MEMORY" in states[1][0]
    assert "RUNNING" not in states[1][0]
    host.keep(Survey).until = survey = SystemClock().wall() - 301
    ran("slurmjob", host, here=True)
    assert not any(word.startswith("--state=") for word in host.ran[-1])
    since = next(word for word in host.ran[-1] if word.startswith("--starttime=uts"))
    assert int(since.removeprefix("--starttime=uts")) <= survey - 300, "since the last time all were asked for"


def test_jobs_that_run_being_too_many_does_not_hold_up_the_ends() -> None:
    class Large(Controller):
        def run(self, command: tuple[str, ...], limit: float, **options: Any) -> Output:
            if not any(word.startswith("--state=") for word in command):
                raise CommandError("sacct printed more than 50331648 bytes and was ended")
            return super().run(command, limit, **options)

    host = Large({"sacct": recorded("slurmjob", "sacct")})
    assert [ran("slurmjob", host, here=True).status for _ in range(2)] == ["failed", "ok"]


def test_error_of_sacct_is_the_messages() -> None:
    message = ran("slurmjob", Controller({"sacct": ""}, refused=("JobIDRaw",)), here=True)
    assert message.status == "failed"
    assert "Invalid field" in (message.error or "")


@pytest.mark.parametrize("name", NAMES[:3])
def test_run_that_rests_says_so(name: str) -> None:
    host = Controller(dict.fromkeys(("sacct", "squeue", "scontrol"), ""))
    host.keep(Paces).known[name] = pace = Pace()
    pace.rest = 2
    message = ran(name, host, here=True)
    assert (message.status, set(message.missing.values()), host.ran) == ("ok", {"late"}, [])


def test_queue_without_json_is_still_a_queue() -> None:
    host = Controller({"squeue": recorded("slurmqueue", "squeue")})
    for runs in (1, 2):
        message = ran("slurmqueue", host, here=True)
        assert message.status == "ok"
        assert [command[2][:6] for command in host.ran].count("--json") == 1
        if runs == 1:
            assert message.missing == {"cores": "absent"}
            assert set(message.rows["part"]) == {"queued"}


def test_table_that_does_not_read_costs_its_row_and_is_reported() -> None:
    text = recorded("slurmqueue", "squeue").replace(">PENDING<", ">7<", 1).replace("1794753070", "soon")
    rows, bad = slurmqueue.parse(text)
    assert len(rows) == 2
    assert bad == {"job", "start"}


def test_bad_record_is_reported_and_the_others_go_on() -> None:
    text = recorded("slurmjob", "sacct")
    whole = list(slurmjob.turned(text, lambda _: None))
    missed: list[str] = []
    place = text.index("\n2230005<")
    rows = list(slurmjob.turned(text[:place] + "\n2230005<0123456789abcdef>RUNN" + text[place:], missed.append))
    assert missed == ["job"]
    assert [row for row in whole if row.job != "2230005"] == [row for row in rows if row.job != "2230005"]


def test_deadline_lets_programs_come_to_their_own() -> None:
    plans = {plan.name: plan for plan in from_values({"collect": {"slurmjob": {"limit": "30s"}}}).collect}
    assert (plans["slurmjob"].deadline, plans["slurmnode"].deadline, plans["load"].deadline) == (60.0, 16.0, 10.0)


def test_no_program_is_run_for_a_scrape() -> None:
    host = Controller(dict.fromkeys(("sacct", "squeue", "scontrol", "qstat"), ""))
    scraper = Scraper(from_values({"collect": {"slurmjob": {"here": True}}}), host, SystemClock())
    text = "".join(exposed(scraper.scrape()))
    scraper.close()
    assert host.ran == []
    assert "slurmjob" not in text
    assert "jobsight_load" in text
