"""What a server leaves for the command line of its machine."""

from pathlib import Path

import pytest

from jobsight.show import notice


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"url": "http://127.0.0.1:1"}', "\0\0\0"])
def test_a_notice_that_a_power_cut_has_spoilt_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / notice.FILE).write_text(text)
    assert notice.read(str(tmp_path)) is None
