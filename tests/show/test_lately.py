"""What takes long is shown again for a while, and nothing else is."""

import threading

from jobsight.show.lately import LONG, MOST, TIMES, Lately


class Slow:
    """Counts how often it is made, and takes its time by a clock of its own."""

    def __init__(self, takes: float) -> None:
        self.now = 100.0
        self.takes = takes
        self.count = 0

    def make(self) -> int:
        self.now += self.takes
        self.count += 1
        return self.count

    def clock(self) -> float:
        return self.now


def test_what_is_quickly_made_is_made_each_time() -> None:
    slow = Slow(LONG / 2)
    lately = Lately[int](slow.clock)
    assert [lately.made("a", slow.make) for _ in range(3)] == [1, 2, 3]


def test_what_takes_long_is_shown_for_a_multiple_of_that_and_then_made_again() -> None:
    slow = Slow(2.0)
    lately = Lately[int](slow.clock)
    assert lately.made("a", slow.make) == 1
    slow.now += 2.0 * TIMES - 0.1
    assert lately.made("a", slow.make) == 1
    slow.now += 0.2
    assert lately.made("a", slow.make) == 2


def test_nobody_is_shown_what_was_made_for_another() -> None:
    slow = Slow(2.0)
    lately = Lately[int](slow.clock)
    assert [lately.made(who, slow.make) for who in ("ada", "bob", "ada", "bob")] == [1, 2, 1, 2]


def test_what_failed_is_tried_again() -> None:
    slow = Slow(2.0)
    lately = Lately[int](slow.clock)

    def fail() -> int:
        slow.make()
        raise OSError

    for _ in range(2):
        try:
            lately.made("a", fail)
        except OSError:
            continue
        raise AssertionError("it did not fail")
    assert lately.made("a", slow.make) == 3


def test_no_more_than_some_are_remembered() -> None:
    slow = Slow(2.0)
    lately = Lately[int](slow.clock)
    for number in range(3 * MOST):
        lately.made(number, slow.make)
    assert len(lately._made) <= MOST


def test_who_comes_while_it_is_made_gets_the_same() -> None:
    lately = Lately[int]()
    begun, go = threading.Event(), threading.Event()
    made: list[int] = []

    def make() -> int:
        begun.set()
        go.wait(10)
        threading.Event().wait(LONG)
        made.append(1)
        return len(made)

    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(lately.made("a", make))) for _ in range(3)]
    threads[0].start()
    begun.wait(10)
    for thread in threads[1:]:
        thread.start()
    go.set()
    for thread in threads:
        thread.join()
    assert found == [1, 1, 1]
