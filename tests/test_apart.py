"""Settings read by a process that ends: the same values, the same sentences."""

from pathlib import Path

import pytest

from jobsight.apart import values_of
from jobsight.settings import SettingsError, values

TEXT = """
cluster: fox  # Füchse
collect: {process: {every: 30s, exclude_uids: ["0-999"]}, load: {enabled: false}}
sinks:
  - directory: {path: /tmp/x}
spool: {size: 5 MiB}
"""


def test_values_are_those_that_are_read_here(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(TEXT)
    assert values_of(str(file)) == values(TEXT, "agent.yaml")


def test_empty_file_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text("")
    assert values_of(str(file)) == {}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"a: [1", "not YAML: while parsing a flow sequence"),
        (b"\xff\xfe\x00", "can't decode byte"),
    ],
)
def test_file_that_cannot_be_is_told_in_a_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    file = tmp_path / "agent.yaml"
    file.write_bytes(content)
    with pytest.raises(SettingsError, match=sentence):
        values_of(str(file))


def test_file_that_is_not_there_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot read settings .*none\.yaml: No such file or directory"):
        values_of(str(tmp_path / "none.yaml"))
