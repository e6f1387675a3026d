import pytest

from jobsight.collector import ParseError
from jobsight.formats import procstat

LINE = (
    b"13725 (python3) S 13709 13726 13708 0 -1 4194560 31908 0 1 0 671 9 5 2 20 0 4 0 146087 366690304 32993 "
    b"18446744073709551615 4321280 7148169 140736025051136 0 0 0 0 16781312 2 0 0 0 17 1 0 0 0 0 0\n"
)


def test_line_is_read_field_by_field() -> None:
    assert procstat.parse(LINE)._asdict() == {
        "pid": 13725,
        "command": "python3",
        "state": "S",
        "parent": 13709,
        "process_group": 13726,
        "session": 13708,
        "flags": 4194560,
        "faults": 31909,
        "user": 6.71,
        "system": 0.09,
        "children": 0.07,
        "threads": 4,
        "started": 1460.87,
        "virtual": 366690304,
        "resident": 32993,
    }


@pytest.mark.parametrize(
    ("name", "command"),
    [
        (b"", ""),
        (b"a b", "a b"),
        (b"(sd-pam)", "(sd-pam)"),
        (b") R 1 2 (", ") R 1 2 ("),
        (b"x)\n1 (y", "x)\n1 (y"),
        (b"\xff\xfe", "\\xff\\xfe"),
        ("🔥".encode(), "🔥"),
    ],
)
def test_command_ends_at_the_last_bracket(name: bytes, command: str) -> None:
    found = procstat.parse(LINE.replace(b"python3", name))
    assert (found.command, found.state, found.parent, found.started) == (command, "S", 13709, 1460.87)


def test_kernel_thread_has_its_flag() -> None:
    found = procstat.parse(b"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 3 0 0 0\n")
    assert found.flags & procstat.KERNEL_THREAD
    assert not procstat.parse(LINE).flags & procstat.KERNEL_THREAD


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"1",
        b"1 (a)",
        b"1 (a) S 1 2 3",
        LINE[:80],
        LINE.replace(b"671", b"x"),
        LINE.replace(b" S ", b" \xff "),
    ],
)
def test_torn_line_is_refused_with_what_was_seen(line: bytes) -> None:
    with pytest.raises(ParseError, match="/proc/PID/stat: expected"):
        procstat.parse(line)
