"""What the verbs print, compared with golden files; GOLDEN=1 rewrites them for review."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.cli.main import main, verbs
from tests.store.contract import BOOT, process_line

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two users, three jobs, one of them with a hostile name."""
    path = str(tmp_path_factory.mktemp("cli") / "store")
    opened = open_store(path)
    lines = []
    for i in range(12):
        time = BOOT + 100 + 10 * i
        lines.append(process_line(time, written=1_000_000 * i * i, memory_anon=2**28 + 2**24 * i))
        lines.append(
            process_line(
                time, node="n2", pid=7, job="7", scheduler="slurm", owner="bob", command="evil\n\x1b[31m", threads=64
            )
        )
    lines.append(process_line(BOOT + 300, pid=9, job="9", started=290.0, command="vasp_std", cpu_user=0.4))
    opened.append(lines).result(10)
    opened.digest()
    opened.close()
    return path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TZ": "UTC", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "jobsight", *arguments], env=environment, capture_output=True, text=True, check=False
    )


def same_as_golden(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("jobs", ["jobs", "--since", "2026-01-01", "--user", "all"]),
        ("jobs-tsv", ["jobs", "--since", "2026-01-01", "--user", "all", "--tsv"]),
        ("jobs-csv", ["jobs", "--since", "2026-01-01", "--user", "bob", "--csv"]),
        ("job", ["job", "100"]),
        ("job-hostile", ["job", "7"]),
    ],
)
def test_a_verb_prints_what_it_printed(store: str, name: str, arguments: list[str]) -> None:
    done = run(*arguments, "--store", store)
    assert (done.returncode, done.stderr) == (0, "")
    same_as_golden(name, done.stdout)


def test_list_and_page_say_the_same_numbers(store: str) -> None:
    (listed,) = json.loads(run("jobs", "--since", "2026-01-01", "--user", "bob", "--json", "--store", store).stdout)
    page = json.loads(run("job", "7", "--json", "--store", store).stdout)
    assert page["summary"] == listed
    assert listed["cpu_time"] == pytest.approx(160)


def test_no_job_matching_says_what_to_try(store: str) -> None:
    done = run("jobs", "--user", "nobody", "--since", "2026-01-01", "--store", store)
    assert done.returncode == 0
    assert "No jobs match" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["fly"], 2, "no verb 'fly'; there are agent"),
        (["job"], 2, "say which job"),
        (["job", "nonesuch"], 1, "no job nonesuch"),
        (["jobs", "--since", "someday"], 2, "--since: expected a time such as 7d"),
        (["sample", "weather"], 2, "no collector 'weather'; there are agent"),
        (["sample", "--settings", "/nonexistent.yaml"], 2, "cannot read settings /nonexistent.yaml: No such file"),
        (["serve", "--listen", "nowhere"], 1, "expected an address such as 127.0.0.1:9020"),
        (["serve", "--listen", "192.0.2.1:80"], 1, "cannot listen on 192.0.2.1:80"),
        (["exporter", "--listen", "x"], 2, "expected an address such as 127.0.0.1:9010"),
    ],
)
def test_a_mistake_is_one_sentence_and_an_exit_code(
    store: str, arguments: list[str], code: int, sentence: str
) -> None:
    extra = ["--store", store] if arguments[0] in ("job", "jobs") else []
    done = run(*arguments, *extra)
    assert done.returncode == code
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_store_that_is_not_there_says_how_to_begin(tmp_path: Path) -> None:
    done = run("jobs", "--store", str(tmp_path / "nothing"))
    assert done.returncode == 1
    assert "start with `jobsight up`" in done.stderr


def test_every_verb_has_help_and_stands_in_the_overview(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    overview = capsys.readouterr().out
    for verb in verbs():
        assert f"  {verb} " in overview
        with pytest.raises(SystemExit) as ended:
            main([verb, "--help"])
        assert ended.value.code == 0
    assert main([]) == 2


def test_sample_prints_messages_rows_and_tables() -> None:
    message = json.loads(run("sample", "load").stdout)
    assert (message["collector"], message["status"], message["every"]) == ("load", "ok", None)
    assert run("sample", "load", "--format", "table").stdout.startswith("load: ok, 1 rows")
    assert len(run("sample", "load", "--format", "tsv").stdout.split("\t")) == 6


def test_a_directory_tree_can_stand_for_the_machine(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "loadavg").write_text("0.10 0.20 0.30 4/500 777\n")
    message = json.loads(run("sample", "load", "--root", str(tmp_path)).stdout)
    assert message["rows"]["existing"] == [500]
    done = run("doctor", "--root", str(tmp_path))
    assert "✓ load" in done.stdout
    assert "– memory     not on this machine: needs /proc/meminfo" in done.stdout


def test_doctor_says_what_is_broken_and_fails(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "loadavg").write_text("not a load average\n")
    done = run("doctor", "--root", str(tmp_path))
    assert done.returncode == 1
    assert "✗ load       ParseError: /proc/loadavg: expected three averages" in done.stdout
    found = {item["collector"]: item for item in json.loads(run("doctor", "--json", "--root", str(tmp_path)).stdout)}
    assert found["load"]["status"] == "failed"
