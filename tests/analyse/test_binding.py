"""Which resource a job's speed hangs on, and how its work was spread."""

from typing import Any

import pytest

from jobsight.analyse.balance import balance
from jobsight.analyse.binding import binding, confidence
from jobsight.analyse.cards import Card
from jobsight.analyse.phases import Phase
from tests.analyse.figures import GIB, job, part

CARD = Card("n1", "GPU-1", 0.9, 1.0, 30 * GIB, 40 * GIB, 300.0, 60)


def phase(kind: str, begin: float, end: float) -> Phase:
    return Phase(begin, end, kind, 1.0, None, None)


@pytest.mark.parametrize(
    ("changes", "phases", "cards", "resource"),
    [
        ({"oom_kills": 1}, [], [], "memory"),
        ({"memory_peak": 62 * GIB}, [], [], "memory"),
        ({}, [], [CARD], "gpus"),
        ({"cpu_time": 7.5 * 3600}, [], [], "cores"),
        ({}, [phase("reading", 0, 1500), phase("computing", 1500, 3600)], [], "storage"),
        ({}, [phase("one core", 0, 2000), phase("computing", 2000, 3600)], [], "one core"),
        ({}, [phase("waiting", 0, 2000), phase("computing", 2000, 3600)], [], "waiting"),
        ({}, [phase("computing", 0, 3600)], [], "nothing"),
        ({}, [], [], "unknown"),
    ],
)
def test_the_resource_that_binds(
    changes: dict[str, Any], phases: list[Phase], cards: list[Card], resource: str
) -> None:
    held = part(**changes)
    found = binding(job(held), phases, balance([held], "cgroup"), cards)
    assert found.resource == resource
    assert found.sentence.endswith(".")


def test_one_node_that_does_all_the_work_binds() -> None:
    parts = [part("n1"), part("n2", cpu_time=100.0), part("n3", cpu_time=200.0), part("n4", cpu_time=None)]
    spread = balance(parts, "cgroup")
    assert spread.imbalance == pytest.approx(1 - 14700 / (3 * 14400))
    assert spread.idle == ["n2", "n3"]
    assert [share.node for share in spread.nodes] == ["n4", "n2", "n3", "n1"]
    found = binding(job(*parts), [], spread, [])
    assert found.resource == "busiest node"
    assert "n1" in found.sentence


def test_nodes_that_work_alike_are_balanced() -> None:
    assert balance([part("n1"), part("n2")], "cgroup").imbalance == pytest.approx(0.0)
    assert balance([part("n1")], "cgroup").imbalance is None


@pytest.mark.parametrize(
    ("elapsed", "coverage", "word"), [(3600.0, 1.0, "high"), (3600.0, 0.6, "medium"), (120.0, 1.0, "low")]
)
def test_confidence_is_that_of_the_samples(elapsed: float, coverage: float, word: str) -> None:
    assert confidence(job(elapsed=elapsed, coverage=coverage)) == word
