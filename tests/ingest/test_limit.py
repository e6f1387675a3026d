"""Bounds that forgive with time, and forget nobody's debt but an attack's."""

from jobsight.ingest import limit
from jobsight.ingest.limit import DeniedError, Rate


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_minutes_worth_goes_at_once_and_then_as_much_as_time_brings() -> None:
    clock = Clock()
    rate = Rate(10.0, clock)
    assert rate.wait("a") == 0
    rate.count("a", 599)
    assert rate.wait("a") == 0
    rate.count("a", 101)
    assert rate.wait("a") == 11
    assert rate.wait("b") == 0
    clock.now += rate.wait("a")
    assert rate.wait("a") == 0


def test_those_who_owe_nothing_are_forgotten_and_memory_is_bounded() -> None:
    clock = Clock()
    rate = Rate(1.0, clock)
    for number in range(limit.KNOWN):
        rate.count(str(number), 1)
    clock.now += 5
    rate.count("debtor", 1000)
    assert len(rate._debts) == 1
    for number in range(limit.KNOWN + 1):
        rate.count(str(number), 100)
    assert len(rate._debts) <= limit.KNOWN


def test_a_wait_is_at_least_a_second_in_the_answer() -> None:
    assert DeniedError(503, "busy", 0.2).headers() == {"Retry-After": "1"}
    assert DeniedError(413, "much").headers() == {"Connection": "close"}
