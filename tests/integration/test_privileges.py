"""What an ordinary user's agent sees, what it says it does not see, and which privilege shows it: all for real.

Capabilities and `hidepid` are tried in a process namespace of their own: everybody there is ours, and its /proc can
be mounted as we like.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytestmark = pytest.mark.slow


SOURCE = Path(__file__).parent.parent.parent / "src"
# Numbers without a name: nobody on this machine is them.
ALICE, BOB = 61001, 61002
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

# The first process of a namespace, root's: mounts /proc with $1; root and Bob have a process each; then Alice comes
# with the privileges of $2 and has one too. Bob's is his once its directory is.
STAGE = """
set -e
mount -t proc -o "$1" proc /proc
sleep 600 & root=$!
setpriv --reuid $BOB --regid $BOB --clear-groups sleep 600 & bob=$!
while [ "$(stat -c %u /proc/$bob)" != $BOB ]; do sleep 0.05; done
privileges=$2
shift 2
echo "root=$root bob=$bob"
setpriv --reuid $ALICE --regid $ALICE --clear-groups $privileges "$@"
exit $?
"""


class Seat(NamedTuple):
    """A copy of the program and a Python that anybody may read."""

    source: str
    python: str

    @property
    def environment(self) -> dict[str, str]:
        ours = {"PYTHONPATH": self.source, "PYTHONDONTWRITEBYTECODE": "1"}
        return {"PATH": PATH, "ALICE": str(ALICE), "BOB": str(BOB), **ours}


def lacking(what: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}: the privileges of an ordinary user must be tested")
    pytest.skip(f"{what.upper()}: WHAT AN ORDINARY USER SEES GOES UNTESTED")


@pytest.fixture(scope="module")
def seat() -> Iterator[Seat]:
    if os.geteuid() != 0:
        lacking("not root, so nobody else can be tried")
    with tempfile.TemporaryDirectory(prefix="jobsight-seat-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        shutil.copytree(SOURCE, f"{folder}/src", ignore=shutil.ignore_patterns("__pycache__"))
        for python in (sys.executable, "/usr/bin/python3"):
            if runs(python):
                yield Seat(f"{folder}/src", python)
                return
        lacking("no Python 3.11 that an ordinary user may run")


def runs(python: str) -> bool:
    code = "import sys; sys.exit(sys.version_info < (3, 11))"
    try:
        return (
            subprocess.run([python, "-c", code], user=ALICE, group=ALICE, extra_groups=[], check=False).returncode
            == 0
        )
    except OSError:
        return False


def as_alice(seat: Seat, *arguments: str) -> str:
    """On the machine itself, with no privilege."""
    done = subprocess.run(
        [seat.python, "-m", "jobsight", *arguments],
        user=ALICE, group=ALICE, extra_groups=[], env=seat.environment, cwd="/", capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stderr == ""
    return done.stdout


class Scene(NamedTuple):
    """What was printed in the namespace, and who was there besides."""

    text: str
    root: int
    bob: int


def staged(seat: Seat, *arguments: str, proc: str = "hidepid=0", capabilities: tuple[str, ...] = ()) -> Scene:
    """In a namespace, with capabilities that pass from program to program."""
    names = ",".join(f"+{name.lower().removeprefix('cap_')}" for name in capabilities)
    privileges = f"--inh-caps {names} --ambient-caps {names}" if names else ""
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--propagation", "private",
               "sh", "-c", STAGE, "stage", proc, privileges, seat.python, "-m", "jobsight", *arguments]  # fmt: skip
    done = subprocess.run(
        command, env=seat.environment, cwd="/", capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    first, _, rest = done.stdout.partition("\n")
    return Scene(rest, *(int(word.partition("=")[2]) for word in first.split()))


def messages(text: str) -> dict[str, Any]:
    return {message["collector"]: message for message in map(json.loads, text.splitlines())}


def by_pid(text: str) -> dict[int, dict[str, Any]]:
    rows = messages(text)["process"]["rows"]
    return {row[0]: dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)}


def doctored(text: str) -> str:
    """What the doctor says of processes."""
    (line,) = (check["missing"] for check in json.loads(text) if check["collector"] == "process")
    return "; ".join(line)


def test_every_collector_works_or_is_absent_for_an_ordinary_user(seat: Seat) -> None:
    found = messages(as_alice(seat, "sample", "--format", "jsonl"))
    assert {"process", "cgroup", "cpu", "memory", "hardware"} <= found.keys()
    assert {name: (message["status"], message["error"]) for name, message in found.items()
            if message["status"] not in ("ok", "absent")} == {}  # fmt: skip
    assert {name for name in ("process", "cpu", "memory", "load", "agent") if found[name]["status"] == "ok"} == {
        "process", "cpu", "memory", "load", "agent"
    }  # fmt: skip


def test_the_doctor_has_a_good_word_for_an_ordinary_user(seat: Seat) -> None:
    text = as_alice(seat, "doctor")
    assert f"as user {ALICE}" in text
    assert "✗" not in text


def test_processes_of_others_are_seen_without_their_traffic(seat: Seat) -> None:
    own = subprocess.Popen(["sleep", "600"], user=ALICE, group=ALICE, extra_groups=[])
    try:
        text = as_alice(seat, "sample", "process", "--format", "jsonl")
        rows = by_pid(text)
    finally:
        own.kill()
        own.wait()
    ours, hers = rows[os.getpid()], rows[own.pid]
    assert (ours["owner"], hers["owner"]) == ("root", str(ALICE))
    assert ours["cpu_user"] > 0
    assert ours["memory_anon"] > 2**20
    assert (ours["read"], ours["written"]) == (None, None)
    assert hers["read"] is not None
    assert hers["written"] is not None
    missing = messages(text)["process"]["missing"]
    assert (missing["read"], missing["written"]) == ("forbidden", "forbidden")
    assert "pid" not in missing


def test_the_doctor_says_which_capability_shows_the_traffic_of_others(seat: Seat) -> None:
    assert re.search(r"read, written: forbidden.*CAP_SYS_PTRACE", doctored(as_alice(seat, "doctor", "--json")))


@pytest.mark.parametrize(
    ("capabilities", "shown"),
    [
        ((), False),
        # The file is its owner's alone, and what it says is kept from whoever may not trace: two locks, two keys.
        (("CAP_SYS_PTRACE",), False),
        (("CAP_DAC_READ_SEARCH",), False),
        (("CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"), True),
        (("CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_SYS_RAWIO", "CAP_PERFMON", "CAP_SYSLOG"), False),
    ],
    ids=["none", "ptrace", "read", "ptrace and read", "others"],
)
def test_traffic_of_others_is_shown_by_two_capabilities_together(
    seat: Seat, capabilities: tuple[str, ...], shown: bool
) -> None:
    scene = staged(seat, "sample", "process", "--format", "jsonl", capabilities=capabilities)
    rows = by_pid(scene.text)
    assert {row["owner"] for row in rows.values()} == {"root", str(ALICE), str(BOB)}
    for pid in (1, scene.root, scene.bob):
        assert rows[pid]["memory_anon"] is not None
        assert (rows[pid]["read"] is not None, rows[pid]["written"] is not None) == (shown, shown)
    missing = messages(scene.text)["process"]["missing"]
    assert missing == ({} if shown else {"read": "forbidden", "written": "forbidden"})


def test_what_the_doctor_prescribes_for_traffic_helps(seat: Seat) -> None:
    said = doctored(staged(seat, "doctor", "--json").text)
    prescribed = tuple(re.findall(r"CAP_[A-Z_]+", said))
    assert prescribed
    assert doctored(staged(seat, "doctor", "--json", capabilities=prescribed).text) == ""


@pytest.mark.parametrize("proc", ["hidepid=1", "hidepid=2"])
def test_processes_that_are_hidden_are_said_to_be(seat: Seat, proc: str) -> None:
    scene = staged(seat, "sample", "process", "--format", "jsonl", proc=proc)
    rows = by_pid(scene.text)
    assert {row["owner"] for row in rows.values()} == {str(ALICE)}
    assert {scene.root, scene.bob} & rows.keys() == set()
    message = messages(scene.text)["process"]
    assert message["status"] == "ok"
    assert message["missing"].get("pid") == "forbidden"


@pytest.mark.parametrize("proc", ["hidepid=1", "hidepid=2"])
def test_what_is_hidden_is_shown_by_the_capability_that_the_doctor_prescribes(seat: Seat, proc: str) -> None:
    said = doctored(staged(seat, "doctor", "--json", proc=proc).text)
    assert "pid: forbidden" in said
    prescribed = tuple(re.findall(r"CAP_[A-Z_]+", said))
    scene = staged(seat, "sample", "process", "--format", "jsonl", proc=proc, capabilities=prescribed)
    assert {scene.root, scene.bob} <= by_pid(scene.text).keys()
    assert "pid" not in messages(scene.text)["process"]["missing"]


@pytest.mark.parametrize("proc", ["hidepid=1", "hidepid=2"])
def test_the_right_to_trace_shows_hidden_processes_and_the_right_to_read_does_not(seat: Seat, proc: str) -> None:
    for capability, shown in (("CAP_SYS_PTRACE", True), ("CAP_DAC_READ_SEARCH", False)):
        scene = staged(seat, "sample", "process", "--format", "jsonl", proc=proc, capabilities=(capability,))
        assert ({scene.root, scene.bob} <= by_pid(scene.text).keys()) == shown


def test_the_machines_own_proc_is_as_it_was(seat: Seat) -> None:
    """Mounting with `hidepid` must not have changed what everybody else sees."""
    staged(seat, "sample", "process", "--format", "jsonl", proc="hidepid=2")
    rows = by_pid(as_alice(seat, "sample", "process", "--format", "jsonl"))
    assert os.getpid() in rows
