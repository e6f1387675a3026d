import pytest

from jobsight.collector import ParseError
from jobsight.formats import cpulist


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0\n", [0]),
        ("0-3\n", [0, 1, 2, 3]),
        ("0-1,4,6-7", [0, 1, 4, 6, 7]),
        ("2-2", [2]),
        ("", []),
        ("\n", []),
        ("0,,2", [0, 2]),
        ("127", [127]),
    ],
)
def test_list_names_its_cpus(text: str, numbers: list[int]) -> None:
    assert cpulist.cpus(text) == numbers


@pytest.mark.parametrize("text", ["x", "-1", "3-1", "1-2-3", "0 1", "٣", "0-99999999999", "1.5", "0x1"])
def test_what_is_no_list_is_refused_with_what_was_seen(text: str) -> None:
    with pytest.raises(ParseError, match="cpu list"):
        cpulist.cpus(text)


def test_range_cut_short_is_refused() -> None:
    with pytest.raises(ParseError, match="cpu list"):
        cpulist.cpus("0-")
