import pytest

from jobsight.collector import ParseError
from jobsight.formats import slurmtext
from jobsight.formats.slurmtext import Tres

SIGN = "<0123456789abcdef>"


def written(*records: tuple[str, ...], sign: str = SIGN) -> str:
    return "".join("".join(f"{field}{sign}" for field in record) + "\n" for record in records)


HEAD = ("JobIDRaw", "State", "JobName")


def columns(text: str) -> tuple[dict[str, list[str]], int]:
    found: dict[str, list[str]] = {}
    broken = 0
    for block in slurmtext.blocks(text, "JobIDRaw", "State"):
        broken += block.broken
        for name, values in block.columns.items():
            found.setdefault(name, []).extend(values)
    return found, broken


def test_table_gives_its_columns() -> None:
    found, broken = columns(written(HEAD, ("1", "COMPLETED", "a"), ("1.batch", "COMPLETED", "batch")))
    assert found == {"JobIDRaw": ["1", "1.batch"], "State": ["COMPLETED"] * 2, "JobName": ["a", "batch"]}
    assert broken == 0


def test_table_without_records_is_empty() -> None:
    assert columns(written(HEAD)) == ({}, 0)


@pytest.mark.parametrize(
    "name",
    [
        "a|b",
        "\n",
        "\n2",
        "\n2\nRUNNING",
        "x\n5\n",
        "\x1f",
        "",
        "<>",
        "<0123456789abcdef",
        "JobIDRaw",
        "\r\n",
        "9",
        " ",
    ],
)
def test_no_name_shifts_a_row(name: str) -> None:
    records = [("1", "COMPLETED", name), ("2", "FAILED", name), ("3.0", "RUNNING", name)]
    found, broken = columns(written(HEAD, *records))
    assert list(zip(*found.values(), strict=True)) == records
    assert broken == 0


def test_short_record_costs_itself_and_is_counted() -> None:
    text = written(HEAD, ("1", "COMPLETED", "a"), ("2", "FAILED"), ("3", "RUNNING", "c"), ("4", "TIMEOUT", "d"))
    found, broken = columns(text)
    assert found["JobIDRaw"] == ["1", "3", "4"]
    assert found["JobName"] == ["a", "c", "d"]
    assert broken == 1


@pytest.mark.parametrize("lost", range(1, 30))
def test_text_that_breaks_off_costs_the_last_record_at_most(lost: int) -> None:
    text = written(HEAD, ("1", "COMPLETED", "a"), ("2", "FAILED", "b"))[:-lost]
    found, broken = columns(text)
    assert found["JobIDRaw"] in (["1"], ["1", "2"])
    assert set(found["JobName"]) <= {"a", "b"}
    assert len(found["JobIDRaw"]) + broken >= 2 or lost > 28


def test_rubbish_without_end_is_passed_over_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurmtext, "PIECE", 500)
    rubbish = f"rubbish{SIGN}" * 20_000
    records = [(str(number), "COMPLETED", "x") for number in range(1, 50)]
    found, broken = columns(written(HEAD) + rubbish + "\n" + written(*records) + rubbish)
    rows = list(zip(*found.values(), strict=True))
    assert set(rows) <= set(records)
    assert len(rows) >= len(records) - 2
    assert broken > 0


def test_table_of_many_pieces_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurmtext, "PIECE", 50)
    records = [(str(number), "COMPLETED", "\n7" if number % 3 else "x" * (number % 90)) for number in range(1, 200)]
    found, broken = columns(written(HEAD, *records))
    assert list(zip(*found.values(), strict=True)) == records
    assert broken == 0


@pytest.mark.parametrize("text", ["", "\n", "sacct: error", "JobIDRaw|", "JobIDRawState|", "JobIDRaw|State\n1|2\n"])
def test_what_is_no_table_is_refused_with_what_was_seen(text: str) -> None:
    with pytest.raises(ParseError, match="head line"):
        columns(text)


def test_marks_differ() -> None:
    assert len({slurmtext.mark() for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:00:03", 3.0),
        ("00:03.560", 3.56),
        ("22:53.824", 1373.824),
        ("1-02:03:04", 93784.0),
        ("1-02:03:04.5", 93784.5),
        ("100:00:00", 360000.0),
        ("00:01.543", 1.543),
        ("00:00.001", 0.001),
        ("", None),
        ("Unknown", None),
        ("UNLIMITED", None),
        ("Partition_Limit", None),
    ],
)
def test_duration_is_in_seconds(text: str, seconds: float | None) -> None:
    assert slurmtext.duration(text) == seconds


@pytest.mark.parametrize("text", ["5", "x", "1:2:3:4", "-1:00", "00:00:-1", "1-2", "٣:٣٣", "00:03.", "00:03,5"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="duration"):
        slurmtext.duration(text)


@pytest.mark.parametrize(
    ("text", "unit", "size"),
    [
        ("160356K", "", 160356 * 1024),
        ("157M", "", 157 * 2**20),
        ("0.08M", "", 83887),
        ("0.00M", "", 0),
        ("98304", "", 98304),
        ("600", "M", 600 * 2**20),
        ("1.5G", "M", 1536 * 2**20),
        ("", "", None),
    ],
)
def test_size_is_in_bytes(text: str, unit: str, size: int | None) -> None:
    assert slurmtext.size(text, unit) == size


@pytest.mark.parametrize("text", ["x", "1X", "-1K", "1 K", "9" * 30])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        slurmtext.size(text)


def test_tres_gives_what_has_a_column() -> None:
    text = "billing=4,cpu=4,gres/gpu:a100=2,gres/gpu:h100=1,gres/gpu=3,mem=1500M,node=3"
    assert slurmtext.tres(text) == Tres(4, 1500 * 2**20, 3, 3, "a100=2,h100=1")
    assert slurmtext.tres("cpu=1,gres/gpu:a100=2").gpus == 2
    assert slurmtext.tres("") == Tres()
    assert slurmtext.tres("cpu=2").gpus is None


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("COMPLETED", ("COMPLETED", None)),
        ("CANCELLED by 1001", ("CANCELLED", 1001)),
        ("CANCELLED by 0", ("CANCELLED", 0)),
        ("CANCELLED+", ("CANCELLED", None)),
        ("OUT_OF_MEMORY", ("OUT_OF_MEMORY", None)),
        ("SOMETHING_NEW", ("SOMETHING_NEW", None)),
        ("CANCELLED by somebody", ("CANCELLED", None)),
    ],
)
def test_state_is_a_word_and_who_cancelled(text: str, state: tuple[str, int | None]) -> None:
    assert slurmtext.state(text) == state


@pytest.mark.parametrize("text", ["", "7", " COMPLETED", "<x>"])
def test_what_is_no_state_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="state"):
        slurmtext.state(text)


def test_exit_code_has_a_signal() -> None:
    assert slurmtext.exit_code("0:9") == (0, 9)
    assert slurmtext.exit_code("3:0") == (3, 0)
    assert slurmtext.exit_code("") == (None, None)


def test_time_is_in_seconds_and_a_date_without_an_offset_is_refused() -> None:
    assert slurmtext.instant("1794725071") == 1794725071.0
    assert slurmtext.instant("Unknown") is slurmtext.instant("None") is slurmtext.instant("") is None
    with pytest.raises(ParseError, match="SLURM_TIME_FORMAT"):
        slurmtext.instant("2026-10-25T02:30:00")
