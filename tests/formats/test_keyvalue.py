import pytest

from jobsight.formats import keyvalue


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("anon 4096\nfile 0\n", {"anon": 4096, "file": 0}),
        ("MemTotal:       16311288 kB\n", {"MemTotal": 16311288 * 1024}),
        ("HugePages_Total:       0\n", {"HugePages_Total": 0}),
        ("oom_kill_disable 0\nunder_oom 0\noom_kill 3", {"oom_kill_disable": 0, "under_oom": 0, "oom_kill": 3}),
        ("", {}),
        ("name\n\nname word\nname 1 MB\nname 1 2 3\n", {}),
        ("low -1\nhalf 0.5\nhex 0x10\narabic ٣\n", {}),
        # The last line counts, as with any file that is written twice.
        ("a 1\na 2\n", {"a": 2}),
    ],
)
def test_lines_of_a_name_and_a_number_are_read_and_others_passed_over(text: str, numbers: dict[str, int]) -> None:
    assert keyvalue.numbers(text) == numbers
