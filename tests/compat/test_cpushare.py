"""How busy a process was between two samples."""

from typing import Any

import pytest

from jobsight.compat.cpushare import Ident, Sample, shares


def sample(uptime: float, *rows: tuple[Any, ...], seconds: float = 0.0) -> Sample:
    """Rows of pid, started, parent, own CPU time and that of children."""
    pids, starts, parents, own, children = zip(*rows, strict=True) if rows else ((),) * 5
    nothing = (None,) * len(pids)
    zeros = (0.0,) * len(pids)
    columns = {"pid": pids, "started": starts, "parent": parents, "merged": nothing}
    return Sample(uptime, seconds, {**columns, "cpu_user": own, "cpu_system": zeros, "cpu_children": children})


def test_a_process_seen_twice_is_as_busy_as_its_time_grew() -> None:
    found = shares(sample(1000, (7, 10.0, 1, 50.0, 5.0)), sample(1030, (7, 10.0, 1, 95.0, 5.0)))
    assert found == {Ident(7, 10.0): pytest.approx(1.5)}


def test_a_process_born_since_is_measured_from_its_birth_with_its_children() -> None:
    found = shares(sample(1000), sample(1030, (7, 1020.0, 1, 4.0, 3.0)))
    assert found == {Ident(7, 1020.0): pytest.approx(0.7)}


def test_an_old_process_met_for_the_first_time_has_its_own_lifes_mean() -> None:
    assert shares(None, sample(1030, (7, 30.0, 1, 100.0, 900.0))) == {Ident(7, 30.0): pytest.approx(0.1)}


def test_a_number_used_again_is_another_process() -> None:
    found = shares(sample(1000, (7, 10.0, 1, 500.0, 0.0)), sample(1030, (7, 1010.0, 1, 10.0, 0.0)))
    assert found == {Ident(7, 1010.0): pytest.approx(0.5)}


def test_what_a_dead_child_had_before_is_not_its_parents_work_of_today() -> None:
    before = sample(1000, (7, 10.0, 1, 1.0, 0.0), (8, 20.0, 7, 36000.0, 0.0))
    now = sample(1030, (7, 10.0, 1, 1.0, 36015.0))
    assert shares(before, now) == {Ident(7, 10.0): pytest.approx(0.5)}


def test_a_grandchilds_time_is_taken_off_the_nearest_ancestor_that_lived_on() -> None:
    before = sample(1000, (7, 10.0, 1, 0.0, 0.0), (8, 20.0, 7, 10.0, 0.0), (9, 30.0, 8, 100.0, 0.0))
    now = sample(1030, (7, 10.0, 1, 0.0, 113.0))
    assert shares(before, now) == {Ident(7, 10.0): pytest.approx(0.1)}


def test_a_parent_that_never_waits_shows_nothing_below_zero() -> None:
    before = sample(1000, (7, 10.0, 1, 0.0, 0.0), (8, 20.0, 7, 10.0, 0.0))
    assert shares(before, sample(1030, (7, 10.0, 1, 3.0, 0.0))) == {Ident(7, 10.0): pytest.approx(0.1)}


def test_parents_in_a_circle_end_the_search() -> None:
    before = sample(1000, (7, 10.0, 8, 1.0, 0.0), (8, 20.0, 7, 1.0, 0.0), (9, 5.0, 1, 0.0, 0.0))
    assert shares(before, sample(1030, (9, 5.0, 1, 3.0, 0.0))) == {Ident(9, 5.0): pytest.approx(0.1)}


def test_a_rolled_up_row_with_other_members_is_not_compared_with_its_past() -> None:
    before = sample(1000, (7, 30.0, 1, 500.0, 0.0))
    now = sample(1030, (7, 30.0, 1, 600.0, 0.0))
    now.columns["merged"] = (3,)
    assert shares(before, now) == {Ident(7, 30.0): pytest.approx(0.6)}


def test_a_process_read_at_the_end_of_a_long_run_is_not_busier_than_it_can_be() -> None:
    # Born after the run began, and read at its end.
    now = sample(1000, (7, 1000.5, 1, 0.5, 0.0), seconds=1.0)
    assert shares(None, now) == {Ident(7, 1000.5): pytest.approx(1.0)}
    assert shares(None, sample(1000, (7, 1000.5, 1, 0.5, 0.0))) == {Ident(7, 1000.5): 0.0}


def test_a_sample_at_the_same_instant_has_no_interval() -> None:
    once = sample(1000, (7, 500.0, 1, 50.0, 0.0))
    assert shares(once, once) == {Ident(7, 500.0): pytest.approx(0.1)}
