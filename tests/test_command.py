"""Programs that behave badly, each for real: whatever they do, the call ends, says so, and leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobsight import command
from jobsight.command import CommandError, Output, run
from tests.conftest import wait_until

LATER = 60.0
# Says who it is: a file with its pid, named after its role.
ROLE = """
import os, signal, subprocess, sys, time
def here(role):
    with open(f"{sys.path[0]}/{role}.new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(f"{sys.path[0]}/{role}.new", f"{sys.path[0]}/{role}.pid")
"""

Script = Callable[..., str]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Makes a program of the lines of a Python one, and returns its path."""

    def make(*lines: str, name: str = "badly") -> str:
        file = tmp_path / name
        file.write_text(
            "\n".join([f"#!{sys.executable} -IS", ROLE.replace("sys.path[0]", repr(str(tmp_path))), *lines])
        )
        file.chmod(0o755)
        return str(file)

    return make


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path) -> Iterator[None]:
    """After every test: no file open that was not before, nobody alive or unburied who wrote down a pid."""
    before = sorted(os.listdir("/proc/self/fd"))
    yield
    assert sorted(os.listdir("/proc/self/fd")) == before
    for file in tmp_path.glob("*.pid"):
        wait_until(lambda file=file: not alive(int(file.read_text())), 10, f"the end of {file.stem}")  # type: ignore[misc]
    assert not command._running
    assert children_unburied() == []


class Leap:
    """A clock that leaps far ahead as soon as something has happened."""

    def __init__(self, happened: Callable[[], bool]) -> None:
        self._happened = happened
        self._ahead = 0.0

    def wall(self) -> float:
        return time.time()

    def steady(self) -> float:
        if not self._ahead and self._happened():
            self._ahead = 1000.0
        return time.monotonic() + self._ahead


def alive(pid: int) -> bool:
    """A zombie that its new parent has not yet noticed is not alive."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children_unburied() -> list[int]:
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(child) for child in children if not alive(int(child))]


def test_a_program_that_does_its_work_is_heard_whole(script: Script) -> None:
    path = script("sys.stdout.write('x' * 3_000_000 + 'end')", "sys.stderr.write('careful\\n')")
    output = run((path, "--all"), LATER)
    assert output == Output(0, "x" * 3_000_000 + "end", "careful\n")


def test_arguments_arrive_as_they_are_and_no_shell_reads_them(script: Script) -> None:
    given = ("", "a b", "$HOME", "*", ";exit 3", "'\"", "é")
    assert run((script("print(sys.argv[1:])"), *given), LATER).text == f"{list(given)}\n"


def test_bytes_that_are_no_text_are_shown_as_such(script: Script) -> None:
    path = script("os.write(1, b'caf\\xe9 \\xff\\xfe \\xe7\\x81\\xab')", "os.write(2, b'\\x80')")
    assert run((path,), LATER) == Output(0, "caf\\xe9 \\xff\\xfe 火", "\\x80")


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(CommandError, match=r"^no-such-program is not there: looked in /"):
        run(("no-such-program",), LATER)
    with pytest.raises(CommandError, match=r"^gone is not there"):
        run(("/no/such/gone",), LATER)


def test_a_file_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    file = tmp_path / "noise"
    file.write_bytes(b"\x7fELF and nothing more")
    file.chmod(0o755)
    with pytest.raises(CommandError, match=r"^noise cannot be started: Exec format error$"):
        run((str(file),), LATER)
    with pytest.raises(CommandError, match=r"^noise cannot be started: embedded null byte$"):
        run((str(file), "a\0b"), LATER)


def test_a_program_that_fails_is_quoted_with_its_last_words(script: Script) -> None:
    path = script("print('half a table')", "sys.exit('first\\nsacct: error: no connection\\n')")
    with pytest.raises(CommandError, match=r"^badly ended with code 1: sacct: error: no connection$"):
        run((path,), LATER)
    with pytest.raises(CommandError, match=r"^badly ended with code 7$"):
        run((script("sys.exit(7)"),), LATER)


def test_exit_codes_that_are_no_failure_are_told_apart(script: Script) -> None:
    path = script("print('some'); sys.exit(2)")
    assert run((path,), LATER, codes=(0, 2)) == Output(2, "some\n", "")


def test_a_program_that_is_killed_is_told_from_one_that_fails(script: Script) -> None:
    with pytest.raises(CommandError, match=r"^badly was killed by signal 9$"):
        run((script("os.kill(os.getpid(), 9)"),), LATER)


@pytest.mark.parametrize(
    "lines",
    [
        ("here('it')", "while True: os.write(1, b'.'); time.sleep(0.01)"),
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", "here('it')", "while True: time.sleep(1)"),
        ("os.close(1); os.close(2)", "here('it')", "while True: time.sleep(1)"),
        ("os.close(1); signal.signal(signal.SIGTERM, signal.SIG_IGN)", "here('it')", "while True: time.sleep(1)"),
        ("here('it')", "while True: os.write(2, b'x' * 4096)"),
        ("here('it')", "os.kill(os.getpid(), signal.SIGSTOP)"),
    ],
    ids=["trickles", "ignores SIGTERM", "closes its output", "both", "complains for ever", "stops itself"],
)
def test_a_program_that_does_not_end_is_ended(script: Script, tmp_path: Path, lines: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match=r"^badly did not end within 600 s and was ended$"):
        run((script(*lines),), 600.0, clock=Leap((tmp_path / "it.pid").exists))


def test_those_it_started_are_ended_with_it(script: Script, tmp_path: Path) -> None:
    path = script(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
        "for role in ('first', 'second'):",
        "    if not os.fork(): here(role); time.sleep(600)",
        "here('it')",
        "time.sleep(600)",
    )
    with pytest.raises(CommandError, match=r"did not end within 600 s and was ended$"):
        run((path,), 600.0, clock=Leap(lambda: len(list(tmp_path.glob("*.pid"))) == 3))


def test_a_program_that_ends_is_not_waited_for_because_of_those_it_left(script: Script, tmp_path: Path) -> None:
    """The grandchild holds the pipe for ever."""
    path = script(
        "print('done', flush=True)",
        "if os.fork():",
        f"    while not os.path.exists({str(tmp_path / 'left.pid')!r}): time.sleep(0.01)",
        "    os._exit(0)",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
        "here('left')",
        "time.sleep(600)",
    )
    assert run((path,), LATER) == Output(0, "done\n", "")


def test_one_that_leaves_for_a_session_of_its_own_holds_up_nobody(script: Script, tmp_path: Path) -> None:
    path = script(
        "if os.fork():",
        f"    while not os.path.exists({str(tmp_path / 'escaped.pid')!r}): time.sleep(0.01)",
        "    os._exit(0)",
        "os.setsid()",
        "here('escaped')",
        "time.sleep(600)",
    )
    assert run((path,), LATER) == Output(0, "", "")
    os.kill(int((tmp_path / "escaped.pid").read_text()), signal.SIGKILL)


@pytest.mark.parametrize("limit", [1000, 0])
def test_a_program_that_says_too_much_is_ended(script: Script, limit: int) -> None:
    path = script("here('it')", "while True: os.write(1, b'x' * 4096)")
    with pytest.raises(CommandError, match=rf"^badly printed more than {limit} bytes and was ended$"):
        run((path,), LATER, most=limit)


def test_as_much_as_is_allowed_is_not_too_much(script: Script) -> None:
    assert len(run((script("sys.stdout.write('x' * 1000)"),), LATER, most=1000).text) == 1000


def test_of_endless_complaints_the_end_is_kept(script: Script) -> None:
    path = script("for i in range(100_000): sys.stderr.write(f'complaint {i}\\n')", "sys.exit(1)")
    with pytest.raises(CommandError, match=r"^badly ended with code 1: complaint 99999$"):
        run((path,), LATER)
    error = run((path,), LATER, codes=(1,)).error
    assert len(error) == command.ERROR_KEPT


def test_a_program_sees_only_what_it_is_meant_to(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin::.:bin:/bin")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm/other.conf")
    monkeypatch.setenv("LD_PRELOAD_OF_OURS", "secret")
    monkeypatch.delenv("TZ", raising=False)
    path = script("print(sorted(os.environ.items()))")
    assert (
        run((path,), LATER, variables={"SLURM_TIME_FORMAT": "%s"}).text
        == str(
            [
                ("LANG", "C.UTF-8"),
                ("LC_ALL", "C.UTF-8"),
                ("PATH", "/usr/bin:/bin"),
                ("SLURM_CONF", "/etc/slurm/other.conf"),
                ("SLURM_TIME_FORMAT", "%s"),
            ]
        )
        + "\n"
    )


def test_a_program_inherits_no_file_no_input_and_no_deaf_ears(script: Script) -> None:
    """The shell's own words: Python would close and ignore things of its own."""
    careless = os.dup(1)
    os.set_inheritable(careless, True)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        files = run(("/bin/ls", "-l", "/proc/self/fd"), LATER).text
        signals = run(("/bin/grep", "Sig", "/proc/self/status"), LATER).text
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        os.close(careless)
    # 3 is the directory that it lists.
    assert re.findall(r"(\d+) -> (\S+?):?\[?\d*\]?$", files, re.MULTILINE)[0] == ("0", "/dev/null")
    assert re.findall(r" (\d+) -> ", files) == ["0", "1", "2", "3"]
    masks = dict(line.split() for line in signals.splitlines())
    assert int(masks["SigBlk:"], 16) == 0
    assert not int(masks["SigIgn:"], 16) & 1 << (signal.SIGPIPE - 1)


def test_a_program_is_in_a_session_of_its_own(script: Script) -> None:
    path = script("print(os.getpid(), os.getsid(0), os.getpgid(0))")
    pid, session, group = map(int, run((path,), LATER).text.split())
    assert pid == session == group


def test_a_second_call_while_one_hangs_is_refused_at_once(script: Script, tmp_path: Path) -> None:
    hanging = script("here('it')", "time.sleep(600)")
    other = script("print('fine')", name="other")
    caught: list[CommandError] = []
    enough = threading.Event()

    def hang() -> None:
        try:
            run((hanging,), 600.0, clock=Leap(enough.is_set))
        except CommandError as error:
            caught.append(error)

    thread = threading.Thread(target=hang)
    thread.start()
    wait_until((tmp_path / "it.pid").exists)
    with pytest.raises(CommandError, match=r"^badly is still running since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$"):
        run((hanging,), LATER)
    assert run((other,), LATER).text == "fine\n"
    enough.set()
    thread.join()
    assert [str(error) for error in caught] == ["badly did not end within 600 s and was ended"]
    assert run((script("print('back')"),), LATER).text == "back\n"


def test_one_that_cannot_be_ended_is_left_and_its_name_refused_until_it_is_gone(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the kernel no signal reaches it: Lustre that has lost its server, say."""
    path = script("here('it')", "time.sleep(600)")
    with monkeypatch.context() as deaf:
        deaf.setattr(command, "GRACE", 0.1)
        deaf.setattr(os, "killpg", lambda *_: None)
        with pytest.raises(CommandError, match=r"^badly did not end within 600 s and could not be ended$"):
            run((path,), 600.0, clock=Leap((tmp_path / "it.pid").exists))
    for _ in range(3):
        with pytest.raises(CommandError, match=r"^badly is still running since"):
            run((path,), LATER)
    pid = int((tmp_path / "it.pid").read_text())
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive(pid))
    assert run((script("print('back')"),), LATER).text == "back\n"


def test_threads_that_run_programs_at_once_do_not_mix_them_up(script: Script) -> None:
    paths = [script(f"print('{i}' * 200_000)", name=f"program{i}") for i in range(8)]
    heard: dict[int, set[str]] = {i: set() for i in range(8)}

    def listen(i: int) -> None:
        heard[i] = {run((paths[i],), LATER).text for _ in range(5)}

    threads = [threading.Thread(target=listen, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == {i: {f"{str(i) * 200_000}\n"} for i in range(8)}


def test_what_still_runs_when_we_stop_is_not_left_behind(script: Script, tmp_path: Path) -> None:
    path = script("here('it')", "time.sleep(600)")
    ours = f"""
import threading, time, os
from jobsight.command import run
threading.Thread(target=run, args=(({path!r},), 600.0), daemon=True).start()
while not os.path.exists({str(tmp_path / "it.pid")!r}): time.sleep(0.01)
"""
    subprocess.run([sys.executable, "-c", ours], check=True, timeout=60)


def test_it_needs_none_of_the_modules_that_cost_memory() -> None:
    code = "import sys; import jobsight.command; print({'subprocess', 'asyncio', 'socket'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-IS", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout == "set()\n"
