import pytest

from jobsight.analyse.growth import Gain, Ident, Total, gains, growth


@pytest.mark.parametrize(
    ("totals", "grown"),
    [
        ([], 0),
        ([5], 0),
        ([5, 5], 0),
        ([1, 4, 9], 8),
        # A drop is a restart from zero: what it shows afterwards is new.
        ([10, 3], 3),
        ([10, 0, 2], 2),
        ([1, 5, 2, 4], 8),
    ],
)
def test_growth_is_the_sum_of_increases(totals: list[float], grown: float) -> None:
    assert growth(totals) == grown


SHELL, CHILD, GRANDCHILD, INIT = Ident(10, 1.0), Ident(20, 2.0), Ident(30, 3.0), Ident(1, 0.0)


def total(parent: int, cpu: float, children: float = 0.0, read: int | None = 0, written: int | None = 0) -> Total:
    return Total(parent, cpu, children, read, written)


def test_new_process_gains_what_it_has_used() -> None:
    assert gains({}, {SHELL: total(1, 2.0, 3.0, 40, 50)}) == {SHELL: Gain(5.0, 40, 50)}


def test_process_gains_what_it_used_since() -> None:
    found = gains({SHELL: total(1, 2.0, 1.0, 10, 20)}, {SHELL: total(1, 2.5, 1.0, 15, 20)})
    assert found == {SHELL: Gain(0.5, 5, 0)}


def test_shell_does_not_show_the_hours_of_a_child_it_waited_for() -> None:
    before = {SHELL: total(1, 0.1), CHILD: total(10, 3600.0, 0.0, 100, 200)}
    after = {SHELL: total(1, 0.1, 3601.5, 130, 200)}
    found = gains(before, after)[SHELL]
    assert found.cpu == pytest.approx(1.5)
    assert (found.read, found.written) == (30, 0)


def test_child_never_seen_is_counted_with_its_parent() -> None:
    found = gains({SHELL: total(1, 0.1)}, {SHELL: total(1, 0.1, 7.0)})
    assert found[SHELL].cpu == 7.0


def test_parent_and_child_that_died_both_are_taken_off_the_one_who_waited() -> None:
    before = {SHELL: total(1, 0.0), CHILD: total(10, 5.0), GRANDCHILD: total(20, 50.0)}
    assert gains(before, {SHELL: total(1, 0.0, 57.0)})[SHELL].cpu == pytest.approx(2.0)


def test_parent_that_ignores_its_children_loses_nothing() -> None:
    before = {SHELL: total(1, 1.0, 0.0, 5), CHILD: total(10, 100.0, 0.0, 1000)}
    assert gains(before, {SHELL: total(1, 3.0, 0.0, 9)}) == {SHELL: Gain(2.0, 4, 0)}


def test_number_that_lives_again_is_another_process() -> None:
    again = Ident(20, 9.0)
    found = gains({CHILD: total(10, 500.0)}, {again: total(10, 1.0)})
    assert found == {again: Gain(1.0, 0, 0)}


def test_bytes_that_could_not_be_read_are_missing_and_not_zero() -> None:
    found = gains({SHELL: total(1, 1.0, 0.0, 5, 5)}, {SHELL: total(1, 2.0, 0.0, None, None)})
    assert found == {SHELL: Gain(1.0, None, None)}


def test_parents_in_a_circle_do_not_hang() -> None:
    before = {CHILD: total(30, 1.0), GRANDCHILD: total(20, 1.0), SHELL: total(1, 1.0)}
    assert gains(before, {SHELL: total(1, 1.0)}) == {SHELL: Gain(0.0, 0, 0)}


def test_orphan_that_init_waited_for_is_counted_once() -> None:
    # A terminal is closed: the shell dies, its program is orphaned and dies too, init waits for it.
    terminal = Ident(5, 0.5)
    before = {
        INIT: total(0, 0.0),
        terminal: total(1, 0.0),
        SHELL: total(5, 1.0),
        CHILD: total(10, 3600.0),
    }
    after = {INIT: total(0, 0.0, 3600.5), terminal: total(1, 0.0, 1.0)}
    assert sum(gain.cpu for gain in gains(before, after).values()) == pytest.approx(0.5)
