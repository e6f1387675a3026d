"""`job --scale`, `job --rightsize`, `compare`, and jobs chosen by what is known of them."""

import json
from pathlib import Path

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.schema.wire import instant
from tests.cli.test_verbs import run
from tests.store.contract import BOOT, _line, process_line

CORES = (1, 2, 4, 8, 16)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One program on more and more cores, a tenth of it serial; sampled every ten seconds, ended."""
    path: Path = tmp_path_factory.mktemp("answers") / "store"
    opened = open_store(str(path))
    lines = []
    for number, cores in enumerate(CORES, 1):
        begin, node = 100.0 + 3000 * number, f"n{number}"
        seconds = 2400 * (0.1 + 0.9 / cores)
        lines.append(_line("hardware", BOOT + begin, {"cpus": [cores], "memory": [2**36]}, node))
        for turn in range(1, int(seconds / 10) + 1):
            past = 10.0 * turn
            used = min(past, 240.0) + cores * max(0.0, past - 240.0)
            lines.append(
                process_line(
                    BOOT + begin + past, node, started=begin, cpu_user=used, scheduler="slurm", job=str(number),
                    owner="alice", command="solve", memory_anon=2**31, threads=cores,
                )
            )  # fmt: skip
        lines.append(_line("process", BOOT + begin + 10 * turn + 10, {}, node))
    opened.append(lines).result(30)
    opened.digest()
    opened.close()
    return str(path)


def test_scale_finds_the_law_the_runs_follow(store: str) -> None:
    law = json.loads(run("job", "3", "--scale", "--json", "--store", store).stdout)["law"]
    assert law["serial"]["low"] <= 0.1 <= law["serial"]["high"]
    shown = run("job", "5", "--scale", "--store", store).stdout
    assert "of the work is serial" in shown
    assert "Amdahl's law" in shown
    assert "One core worked alone on" in shown


def test_rightsize_can_be_pasted_into_a_script(store: str) -> None:
    lines = run("job", "4", "--rightsize", "--store", store).stdout.splitlines()
    options = [line.split()[1] for line in lines if line.startswith("#SBATCH ")]
    assert options == ["--nodes=1", "--cpus-per-task=8", "--mem=3G", "--time=00:20:00"]
    assert lines[-1].startswith("The run held 1.")


def test_compare_sets_numbers_against_the_first(store: str) -> None:
    shown = run("compare", "1", "2", "--store", store).stdout
    (given,) = [line for line in shown.splitlines() if line.startswith("cores given")]
    assert given.split() == ["cores", "given", "1", "2", "2", "×"]
    both = json.loads(run("compare", "1", "2", "--json", "--store", store).stdout)
    assert [one["summary"]["id"] for one in both] == ["1", "2"]


def test_a_job_is_found_by_user_command_and_time(store: str) -> None:
    newest = json.loads(run("job", "--user", "alice", "--command", "solve", "--json", "--store", store).stdout)
    assert newest["summary"]["id"] == "5"
    # The second began 3000 seconds after the first.
    between = instant(BOOT + 100 + 3000 * 2 + 1000)
    earlier = json.loads(run("job", "--command", "solve", "--until", between, "--json", "--store", store).stdout)
    assert earlier["summary"]["id"] == "2"


def test_a_name_that_would_move_the_cursor_is_shown_as_text(tmp_path: Path) -> None:
    path = str(tmp_path / "store")
    opened = open_store(path)
    lines = [process_line(BOOT + 100.0 + 10 * turn, command="\x1b[2J\n", owner="e\x1b") for turn in range(9)]
    opened.append(lines).result(30)
    opened.digest()
    opened.close()
    for option in ("--scale", "--rightsize"):
        shown = run("job", "100", option, "--store", path).stdout
        assert "\x1b" not in shown
        assert shown
    assert "\x1b" not in run("compare", "100", "100", "--store", path).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["job", "1", "--user", "alice"], 2, "say which job"),
        (["job", "1", "--scale", "--rightsize"], 2, "one at a time"),
        (["job", "--user", "nobody"], 1, "no job fits"),
        (["job", "--since", "someday"], 2, "--since: expected a time"),
        (["compare", "1"], 2, "two jobs or more"),
        (["compare", "1", "nonesuch"], 1, "no job nonesuch"),
    ],
)
def test_a_mistake_is_one_sentence(store: str, arguments: list[str], code: int, sentence: str) -> None:
    done = run(*arguments, "--store", store)
    assert done.returncode == code
    assert sentence in done.stderr
