"""Recording a machine: what is kept, whose names are not, and that the copy stands for the machine."""

import inspect
import json
from pathlib import Path

import pytest

from jobsight import catalogue
from jobsight.cli.main import main
from jobsight.host import Host
from jobsight.recording import Aliases, Recording, Replay, UnlikeError, outcome, record, replay

STAT = "{pid} ({command}) S 1 {pid} {pid} 0 -1 4194560 1 0 0 0 42 7 0 0 20 0 1 0 9000 4096 385 0 0\n"


def put(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A node `frigg.example.org` with processes of root, ann and bert, and a job in `slurm_frigg`."""
    root = tmp_path / "machine"
    for pid, command in ((10, "sshd"), (20, "ann"), (30, "annual"), (40, "sh")):
        put(root, f"proc/{pid}/stat", STAT.format(pid=pid, command=command))
        put(root, f"proc/{pid}/statm", "100 50 20 1 0 1 0\n")
        put(root, f"proc/{pid}/io", "read_bytes: 4096\nwrite_bytes: 0\n")
        put(root, f"proc/{pid}/cgroup", "0::/\n")
        put(root, f"proc/{pid}/environ", "SECRET=1")
    put(root, "proc/20/cgroup", "4:memory:/slurm_frigg/uid_1001/job_8/step_0\n0::/\n")
    put(root, "proc/self/stat", STAT.format(pid=10, command="sshd"))
    put(root, "owners.json", json.dumps({"proc/10": 0, "proc/20": 1001, "proc/30": 1002, "proc/40": 4321}))
    put(root, "machine.json", json.dumps({"node": "frigg.example.org", "uptime": 500.0, "page": 65536}))
    put(root, "etc/passwd", "root:x:0:0::/root:\nann:x:1001:1::/home/ann:\nbert:x:1002:1:Bert B:/data/b/bert:\n")
    return root


def recorded(machine: Path, tmp_path: Path, *more: str) -> Path:
    into = tmp_path / "into"
    code = main(["record", "process", "--as", "m1", "--root", str(machine), "--into", str(into), *more])
    assert code == 0
    return into / "process" / "m1"


def everything(folder: Path) -> str:
    return "".join(f"{path.relative_to(folder)}\n{path.read_text()}" for path in folder.rglob("*") if path.is_file())


def test_recorded_machine_gives_its_expected_rows(machine: Path, tmp_path: Path) -> None:
    folder = recorded(machine, tmp_path)
    collector = catalogue.collector("process")
    expected = json.loads((folder / "expected.json").read_text())
    assert outcome(collector, replay(collector, Replay(str(folder / "root")))) == expected
    assert expected["rows"]["pid"] == [10, 20, 30, 40]
    assert expected["rows"]["memory_shared"] == [20 * 65536] * 4


def test_only_what_was_read_is_copied(machine: Path, tmp_path: Path) -> None:
    folder = recorded(machine, tmp_path)
    assert {path.name for path in (folder / "root/proc/20").iterdir()} == {"stat", "statm", "io", "cgroup"}
    assert (folder / "root/proc/10/io").read_bytes() == (machine / "proc/10/io").read_bytes()
    assert "SECRET" not in everything(folder)


def test_names_of_people_and_of_the_node_are_replaced_everywhere(machine: Path, tmp_path: Path) -> None:
    folder = recorded(machine, tmp_path)
    text = everything(folder)
    for gone in ("bert", "Bert", "frigg", "(ann)"):
        assert gone not in text
    rows = json.loads((folder / "expected.json").read_text())["rows"]
    people = rows["owner"][1:3]
    assert sorted(people) == ["user1", "user2"]
    assert rows["owner"] == ["root", *people, "4321"]
    # A command of a user's name is a name; one that begins like it is not.
    assert rows["command"] == ["sshd", people[0], "annual", "sh"]
    assert "/slurm_node1/uid_1001/job_8" in (folder / "root/proc/20/cgroup").read_text()
    passwd = f"root:x:0:0:::\n{people[0]}:x:1001:1001:::\n{people[1]}:x:1002:1002:::\n"
    assert (folder / "root/etc/passwd").read_text() == passwd
    assert json.loads((folder / "root/machine.json").read_text()) == {"node": "node1", "uptime": 500.0, "page": 65536}


def test_names_stay_where_they_are_no_real_ones(machine: Path, tmp_path: Path) -> None:
    folder = recorded(machine, tmp_path, "--keep-names")
    rows = json.loads((folder / "expected.json").read_text())["rows"]
    assert rows["owner"] == ["root", "ann", "bert", "4321"]
    assert "/slurm_frigg/" in (folder / "root/proc/20/cgroup").read_text()


def test_homes_are_replaced_before_the_names_in_them() -> None:
    aliases = Aliases()
    aliases.person("bert", "/data/b/bert")
    aliases.person("ann", "/home/ann")
    aliases.node("frigg.example.org")
    seen = b"/data/b/bert/x /home/ann ann's joanna on frigg_slurmstepd.scope@frigg.example.org"
    hidden = b"/home/user1/x /home/user2 user2's joanna on node1_slurmstepd.scope@node1"
    assert aliases.hide(seen) == hidden


def test_what_could_not_be_read_cannot_be_read_in_the_copy(machine: Path, tmp_path: Path) -> None:
    class Partly(Recording):
        def piece(self, path: str, size: int = 4096) -> bytes:
            if path == "proc/30/io":
                self.forbidden.add(path)
                raise PermissionError
            return super().piece(path, size)

    collector = catalogue.collector("process")
    message = record(collector, Partly(str(machine)), str(tmp_path / "copy"))
    again = replay(collector, Replay(str(tmp_path / "copy/root")))
    assert message.missing == again.missing == {"read": "forbidden", "written": "forbidden"}
    with pytest.raises(PermissionError):
        Replay(str(tmp_path / "copy/root")).hold("proc/30/io")


def test_every_way_to_ask_a_host_is_recorded(machine: Path) -> None:
    for ask in ("read", "read_bytes", "piece", "glimpse", "exists"):
        host = Recording(str(machine))
        assert getattr(host, ask)("proc/10/io")
        assert host.files == {"proc/10/io": (machine / "proc/10/io").read_bytes()}, ask
    host = Recording(str(machine))
    assert b"".join(host.pieces("proc/10/io")) == host.files["proc/10/io"]
    held = host.hold("proc/10/stat")
    host.peek(held)
    host.let_go(held)
    assert host.files["proc/10/stat"] == (machine / "proc/10/stat").read_bytes()
    host = Recording()
    host.allow(("echo",))
    host.run(("echo", "one"), 10.0)
    host.run(("echo", "a/b"), 10.0)
    assert host.files == {"commands/echo": b"one\n", "commands/echo a_b": b"a/b\n"}
    host = Recording()
    host.told("gpus/nvidia.json", b"{}")
    assert host.files == {"gpus/nvidia.json": b"{}"}
    # A new door needs a thought here: is what comes through it kept?
    doors = {name for name, _ in inspect.getmembers(Host, inspect.isfunction) if not name.startswith("_")}
    files = {"read_bytes", "piece", "pieces", "read", "glimpse", "names", "exists", "hold", "peek", "let_go", "told"}
    facts = {"uid", "user", "node", "uptime", "boot", "page", "space", "architecture", "begin", "began"}
    assert doors == files | facts | {"room", "close", "keep", "miss", "missed", "has", "allow", "run"}


def test_empty_directory_that_was_there_is_kept(tmp_path: Path) -> None:
    for mount in ("memory", "cpuacct"):
        (tmp_path / "machine/sys/fs/cgroup" / mount).mkdir(parents=True)
    record(catalogue.collector("cgroup"), Recording(str(tmp_path / "machine")), str(tmp_path / "copy"))
    assert (tmp_path / "copy/root/sys/fs/cgroup/memory/.keep").exists()
    assert json.loads((tmp_path / "copy/expected.json").read_text()) == {"status": "ok", "missing": {}, "rows": {}}


def test_copy_that_reads_differently_is_told(machine: Path, tmp_path: Path) -> None:
    # A user called like a word of the format.
    put(machine, "etc/passwd", "read_bytes:x:1001:1::/home/x:\n")
    with pytest.raises(UnlikeError, match="column 'read' differs"):
        record(catalogue.collector("process"), Recording(str(machine)), str(tmp_path / "copy"))


def test_earlier_recording_is_not_written_over_unless_forced(
    machine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recorded(machine, tmp_path)
    (folder / "root/proc/99").mkdir()
    arguments = ["record", "process", "--as", "m1", "--root", str(machine), "--into", str(tmp_path / "into")]
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"jobsight: {folder} exists; --force writes over it\n"
    assert (folder / "root/proc/99").exists()
    assert main([*arguments, "--force"]) == 0
    assert not (folder / "root/proc/99").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["nonsense", "--as", "m1"], 2, "no collector 'nonsense'; there are "),
        (["process", "--as", "../m1"], 2, "a machine is named by small letters, digits and dashes, not '../m1'"),
        (["load", "--as", "m1"], 1, "this machine has nothing that load reads, so there is nothing to record"),
    ],
)
def test_mistake_is_one_sentence(
    machine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, sentence: str
) -> None:
    assert main(["record", *arguments, "--root", str(machine), "--into", str(tmp_path / "into")]) == code
    assert capsys.readouterr().err.startswith(f"jobsight: {sentence}")
    assert not (tmp_path / "into").exists()


def test_of_an_environment_only_what_is_looked_at_is_kept(tmp_path: Path) -> None:
    environ = "SLURM_JOB_ID=8\0AWS_SECRET_ACCESS_KEY=hunter2\0SLURM_JOB_ACCOUNT=physics\0"
    put(tmp_path, "proc/40/environ", environ)
    host = Recording(str(tmp_path))
    assert host.piece("proc/40/environ").decode() == environ
    assert host.files["proc/40/environ"] == b"SLURM_JOB_ID=8\0SLURM_JOB_ACCOUNT=physics\0"
