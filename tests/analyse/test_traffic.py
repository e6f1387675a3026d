"""What a job's nodes moved over the network, with the truth worked out by hand."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.analyse.summary import summary
from jobsight.analyse.traffic import Traffic, alone, traffic
from jobsight.store.embedded import Embedded
from jobsight.store.protocol import JobQuery
from tests.store.contract import BOOT, _line, process_line

COUNTED = ("received_packets", "received_errors", "received_drops", "sent_packets", "sent_errors", "sent_drops")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Embedded]:
    opened = open_store(str(tmp_path / "store"))
    yield opened
    opened.close()


def interfaces(node: str, at: float, **counted: tuple[int, int]) -> bytes:
    rows: dict[str, list[Any]] = {
        "interface": list(counted),
        "received": [received for received, _ in counted.values()],
        "sent": [sent for _, sent in counted.values()],
    }
    rows |= {name: [0] * len(counted) for name in COUNTED}
    return _line("network", BOOT + at, rows, node)


def moved(store: Embedded, *lines: bytes) -> Traffic | None:
    ran = [
        process_line(BOOT + at, node, scheduler="slurm", job="7") for node in ("n1", "n2") for at in (100, 110, 120)
    ]
    store.append([*ran, *lines]).result(10)
    store.digest()
    (job,) = store.jobs(JobQuery(), BOOT + 200)
    return traffic(store, summary(job, BOOT + 200), job["parts"])


def test_growth_on_all_its_nodes_and_real_interfaces_is_added_up(store: Embedded) -> None:
    found = moved(
        store,
        interfaces("n1", 101, eth0=(1000, 50), bond0=(1000, 50), veth1=(7, 7), **{"eth0.100": (0, 0)}),
        interfaces("n1", 119, eth0=(4000, 60), bond0=(4000, 60), veth1=(900, 900), **{"eth0.100": (3000, 10)}),
        interfaces("n2", 101, eth0=(10, 10), eth1=(0, 0)),
        interfaces("n2", 119, eth0=(10, 15), eth1=(5, 0)),
        interfaces("n3", 101, eth0=(0, 0)),
        interfaces("n3", 119, eth0=(10**9, 10**9)),
    )
    assert found is not None
    assert (found.received, found.sent) == (3005, 15)
    assert (found.fabric_received, found.alone) == (None, False)


def test_what_came_before_and_after_it_is_not_its_own(store: Embedded) -> None:
    found = moved(
        store,
        *(interfaces("n1", at, eth0=(1000 * at, 0)) for at in (10, 101, 119, 500)),
    )
    assert found is not None
    assert found.received == 18_000


def test_where_nothing_was_counted_nothing_is_said(store: Embedded) -> None:
    assert moved(store) is None


@pytest.mark.parametrize(
    ("given", "there", "expected"), [(64, 64, True), (32, 64, False), (None, 64, False), (64, None, False)]
)
def test_it_was_alone_if_its_group_had_all_there_is(given: int | None, there: int | None, expected: bool) -> None:
    parts = [
        {"node": "n1", "source": "cgroup", "cpus": given},
        {"node": "n1", "source": "process", "cpus": there},
    ]
    assert alone(parts) is expected


def test_a_session_has_its_machine_never_for_itself() -> None:
    assert alone([{"node": "n1", "source": "process", "cpus": 8}]) is False
