"""Recorded texts, damaged: a collector gives rows or says ParseError, and whatever it says can be sent.

Recorded text is mutated rather than text invented: random strings never get past the first line of a parser.
"""

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobsight import catalogue
from jobsight.host import Host
from jobsight.ingest.accept import Accepted, accept
from jobsight.recording import replay
from jobsight.schema.message import Message
from jobsight.schema.wire import encode
from tests.conftest import said

RECORDED = Path(__file__).parent.parent / "collect"
SIDE = ("machine.json", "owners.json", "etc/passwd")
SIZES = (0, 1, 2**31, 2**53 + 1, 2**63 - 1)
# The tables hold 64 bits with a sign.
TOO_LARGE = 2**64 - 1


class Sheets(Host):
    """A machine of texts in memory."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        super().__init__("/nowhere")

    def read_bytes(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self.files[path]

    def piece(self, path: str, size: int = 4096) -> bytes:
        return self.read_bytes(path)[:size]

    def names(self, path: str) -> list[str]:
        below = path.strip("/") + "/"
        return sorted({file[len(below) :].split("/")[0] for file in self.files if file.startswith(below)})

    def exists(self, path: str) -> bool:
        return path in self.files or bool(self.names(path))

    def uid(self, path: str) -> int:
        return int(self._owners.get(path, 0))

    def hold(self, path: str) -> int:
        self.read_bytes(path)
        return list(self.files).index(path)

    def peek(self, held: int, size: int = 1024) -> bytes:
        return list(self.files.values())[held][:size]

    def pieces(self, path: str, size: int = 2**18) -> Iterator[bytes]:
        text = self.read_bytes(path)
        return (text[start : start + size] for start in range(0, len(text), size))

    def let_go(self, held: int) -> None:
        pass


def files_of(root: Path) -> dict[str, bytes]:
    found = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


MACHINES = {(root.parent.parent.name, root.parent.name): files_of(root) for root in sorted(RECORDED.glob("*/*/root"))}
NAMES = sorted({collector for collector, _ in MACHINES})


@st.composite
def damaged(draw: st.DrawFn, text: bytes) -> bytes:
    """The text after one to four accidents."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        lines = text.splitlines(keepends=True)
        line = draw(st.integers(0, max(0, len(lines) - 1)))
        match draw(st.sampled_from(["delete", "insert", "replace", "truncate", "double", "drop", "number"])):
            case "delete":
                text = text[:start] + text[end:]
            case "insert":
                text = text[:start] + draw(junk) + text[start:]
            case "replace":
                text = text[:start] + draw(junk) + text[end:]
            case "truncate":
                text = text[:start]
            case "double":
                text = b"".join([*lines[: line + 1], *lines[line:]])
            case "drop":
                text = b"".join([*lines[:line], *lines[line + 1 :]])
            case "number":
                words = text.split(b" ")
                place = draw(st.integers(0, len(words) - 1))
                words[place] = draw(st.sampled_from([b"%d" % size for size in SIZES]))
                text = b" ".join(words)
    return text


junk = st.one_of(
    st.binary(max_size=6),
    st.sampled_from([b" ", b"\n", b"\t", b"-", b"-1", b"0", b"9", b"1.5", b"(", b")", b":", b"\xff", "٣".encode()]),
)


@st.composite
def damaged_machines(draw: st.DrawFn, collector: str) -> dict[str, bytes]:
    """A recorded machine with one or two files damaged."""
    machine = draw(st.sampled_from([machine for name, machine in MACHINES if name == collector]))
    files = dict(MACHINES[collector, machine])
    readable = [path for path in files if path not in SIDE]
    for path in draw(st.lists(st.sampled_from(readable), min_size=1, max_size=2, unique=True)):
        files[path] = draw(damaged(files[path]))
    return files


def sent(message: Message) -> Accepted:
    accepted = accept(encode(message))
    assert isinstance(accepted, Accepted), (accepted, message.rows)
    return accepted


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_damaged_source_gives_rows_or_a_parse_error_and_a_message_that_is_accepted(
    name: str, data: st.DataObject
) -> None:
    host = Sheets(data.draw(damaged_machines(name)))
    for _ in range(2):
        message = replay(catalogue.collector(name), host)
        assert message.status == "ok" or (message.error or "").startswith("ParseError: "), message.error
        accepted = sent(message)
        assert accepted.columns == said(message)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_missing_files_give_rows_absence_or_an_error_of_the_system(name: str, data: st.DataObject) -> None:
    machine = data.draw(st.sampled_from([machine for collector, machine in MACHINES if collector == name]))
    files = dict(MACHINES[name, machine])
    # Some are recorded because they cannot be read.
    whole = replay(catalogue.collector(name), Sheets(files))
    for path in data.draw(st.sets(st.sampled_from(sorted(files)), min_size=1)):
        del files[path]
    message = replay(catalogue.collector(name), Sheets(files))
    wrong = ("FileNotFoundError: ", "CommandError: ", whole.error or "FileNotFoundError: ")
    assert message.status in ("ok", "absent") or (message.error or "").startswith(wrong)
    sent(message)


@pytest.mark.parametrize("name", NAMES)
def test_number_too_large_for_the_tables_does_not_cost_the_message(name: str) -> None:
    files = min((files for (collector, _), files in MACHINES.items() if collector == name), key=len)
    for path in sorted(files.keys() - set(SIDE)):
        for number in re.finditer(rb"(?<![\w.])\d+(?![\w.])", files[path]):
            text = files[path][: number.start()] + b"%d" % TOO_LARGE + files[path][number.end() :]
            message = replay(catalogue.collector(name), Sheets(files | {path: text}))
            assert message.status == "ok" or (message.error or "").startswith("ParseError: "), message.error
            sent(message)


@pytest.mark.parametrize("name", NAMES)
def test_machine_in_memory_reads_as_the_one_on_disk(name: str) -> None:
    for (collector, machine), files in MACHINES.items():
        if collector == name:
            on_disk = replay(catalogue.collector(name), Host(str(RECORDED / name / machine / "root")))
            in_memory = replay(catalogue.collector(name), Sheets(files))
            rows = [set(zip(*message.rows.values(), strict=True)) for message in (on_disk, in_memory)]
            assert rows[0] == rows[1]
            # Some are recorded because they say nothing that can be used.
            assert rows[0] or on_disk.error == in_memory.error is not None or on_disk.missing
