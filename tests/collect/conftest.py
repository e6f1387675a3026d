from collections.abc import Iterator
from typing import Any

import pytest

from jobsight.host import Host


@pytest.fixture(autouse=True)
def _hosts_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An agent has one host for life; a test makes many, and each holds a file for every process."""
    hosts: list[Host] = []
    begin = Host.__init__

    def begin_and_note(self: Host, *arguments: Any) -> None:
        begin(self, *arguments)
        hosts.append(self)

    monkeypatch.setattr(Host, "__init__", begin_and_note)
    yield
    for host in hosts:
        host.close()
