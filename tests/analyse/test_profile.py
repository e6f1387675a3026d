"""A job's series, from usage rows whose truth is known."""

from typing import Any

import pytest

from jobsight.analyse.profile import _series
from jobsight.analyse.steps import Step, peak


def rows(*intervals: tuple[str, float, float, float]) -> list[tuple[Any, ...]]:
    """Node, time, seconds (all of them observed) and CPU seconds."""
    return [("process", node, time, seconds, seconds, cpu) for node, time, seconds, cpu in intervals]


def steps(found: Any) -> list[Step]:
    return [Step(*step) for step in zip(found.start, found.end, found.value, strict=True)]


def test_a_node_is_never_added_to_itself_where_its_intervals_overlap_by_a_breath() -> None:
    """An interval is as long as the time since boot says, and ends when the clock says."""
    found = steps(_series(rows(("n1", 110.0, 10.0, 9.0), ("n1", 119.999, 10.0, 9.0)), 5, 100, per_second=True))
    assert peak(found) == pytest.approx(0.9)
    assert len(found) == 2


def test_nodes_are_added_to_each_other() -> None:
    found = steps(_series(rows(("n1", 110.0, 10.0, 9.0), ("n2", 110.0, 10.0, 20.0)), 5, 100, per_second=True))
    assert peak(found) == pytest.approx(2.9)


def test_a_clock_set_back_draws_nothing_twice() -> None:
    found = steps(_series(rows(("n1", 110.0, 10.0, 9.0), ("n1", 110.0, 10.0, 9.0)), 5, 100, per_second=True))
    assert [(step.start, step.end) for step in found] == [(100.0, 110.0)]
    assert peak(found) == pytest.approx(0.9)
