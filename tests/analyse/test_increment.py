"""What entries of a Lustre target grew by: the law as a function, and as SQL in either engine."""

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from jobsight.analyse.increment import REACH, Increment, Reading, grown, increments
from jobsight.schema.sqltable import DUCKDB, POSTGRES
from jobsight.store.dialect import translated
from jobsight.store.pool import connect
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414
from tests.store.test_postgres import url as url  # noqa: PLC0414

NAMES = ("read", "write")
Answer = Callable[[list[Reading], list[float], float], list[Increment]]


def test_the_worked_example_is_a_thousand_operations_in_two_minutes() -> None:
    found = increments([Reading(0, (1000.0,)), Reading(120, (2000.0,))])
    assert found == [Increment(0, 120, (1000.0,))]


def test_a_series_that_was_absent_before_begins_from_zero() -> None:
    assert increments([Reading(240, (7.0,), absent=120)]) == [Increment(120, 240, (7.0,))]


def test_a_series_met_for_the_first_time_has_no_increment() -> None:
    assert increments([Reading(240, (7.0,))]) == []


def test_one_counter_that_fell_resets_those_that_did_not() -> None:
    found = increments([Reading(0, (10.0, 5.0)), Reading(120, (12.0, 4.0))])
    assert found == [Increment(0, 120, (12.0, 4.0))]


def test_another_start_is_a_reset_even_if_everything_grew() -> None:
    found = increments([Reading(0, (10.0,), start=-50), Reading(120, (30.0,), start=100)])
    assert found == [Increment(100, 120, (30.0,))]


def test_less_in_the_same_life_is_a_clock_set_back_and_counts_nothing_anew() -> None:
    found = increments([Reading(0, (30.0, 1.0), start=-50), Reading(120, (10.0, 4.0), start=-50)])
    assert found == [Increment(0, 120, (0, 3.0))]


def test_an_absence_that_a_reading_came_after_says_nothing() -> None:
    found = increments([Reading(0, (10.0,)), Reading(120, (30.0,), absent=-120)])
    assert found == [Increment(0, 120, (20.0,))]


def test_what_was_left_out_because_it_held_still_grew_after_the_last_scan() -> None:
    found = increments([Reading(0, (10.0,)), Reading(600, (30.0,))], scans=[0, 120, 240, 360, 480, 600])
    assert found == [Increment(480, 600, (20.0,))]


def test_a_lost_scan_costs_resolution_and_no_work() -> None:
    found = increments([Reading(0, (10.0,)), Reading(240, (30.0,))], scans=[0, 240])
    assert found == [Increment(0, 240, (20.0,))]


def test_an_unknown_counter_has_no_increment_and_does_not_hide_the_others() -> None:
    found = increments([Reading(0, (10.0, None)), Reading(120, (30.0, 4.0))])
    assert found == [Increment(0, 120, (20.0, None))]


READINGS = some.lists(
    some.builds(
        Reading,
        some.integers(0, 12).map(lambda step: 120.0 * step) | some.just(3 * REACH),
        some.tuples(*[some.none() | some.integers(0, 9)] * len(NAMES)),
        some.none() | some.sampled_from([-60.0, 300.0, 700.0]),
        some.none() | some.sampled_from([-120.0, 0.0, 240.0, 600.0]),
    ),
    max_size=8,
    unique_by=lambda reading: reading.time,
)
# Only what ends later is asked for.
EDGES = some.sampled_from([-1e6, 240.0, 500.0])
SCANS = some.lists(some.integers(0, 12).map(lambda step: 120.0 * step), unique=True)


def asked(run: Callable[..., Any], types: dict[type, str], read: Callable[..., Any], mark: str) -> Answer:
    """Gives readings to an engine and asks it for increments."""
    number, text, truth = types[float], types[str], types[bool]
    own = ", ".join(f"{name} {types[int]}" for name in NAMES)
    stamp = f"cluster {text}, node {text}, boot {text}, time {number}, target {text}"
    run(f"CREATE TEMP TABLE lustreost ({stamp}, entry {text}, executable {text}, uid {types[int]}, "
        f"start_time {number}, absent_at {number}, {own})")  # fmt: skip
    run(f"CREATE TEMP TABLE lustrescan ({stamp}, scanned_at {number}, ok {truth}, postponed {types[int]})")

    def answer(readings: list[Reading], scans: list[float], edge: float) -> list[Increment]:
        run("DELETE FROM lustreost")
        run("DELETE FROM lustrescan")
        for reading in readings:
            row = ["fox", "s1", "b", reading.time, "T", "e", None, 5, reading.start, reading.absent, *reading.values]
            for _ in range(2):  # stored twice counts once
                run(f"INSERT INTO lustreost VALUES ({', '.join([mark] * len(row))})", row)
        for scan in scans:
            run(f"INSERT INTO lustrescan VALUES ({', '.join([mark] * 8)})",
                ["fox", "s1", "b", scan + 0.3, "T", scan, True, None])  # fmt: skip
        sql = grown("lustreost", NAMES, (*NAMES, "punch"), (-1e6, 1e7), edge)
        rows = read(f"SELECT begin_time, time, {', '.join(NAMES)}, punch FROM ({sql}) AS found ORDER BY time")
        assert all(row[-1] is None for row in rows)
        return [Increment(row[0], row[1], row[2:-1]) for row in rows]

    return answer


@pytest.fixture
def duck() -> Iterator[Answer]:
    with duckdb.connect() as connection:

        def run(sql: str, values: Any = ()) -> list[Any]:
            return connection.execute(sql, list(values)).fetchall()

        yield asked(run, DUCKDB, run, "?")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(READINGS, SCANS, EDGES)
def test_the_embedded_engine_follows_the_law(
    duck: Answer, readings: list[Reading], scans: list[float], edge: float
) -> None:
    assert duck(readings, scans, edge) == [item for item in increments(readings, scans) if item.end > edge]


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(READINGS, SCANS, EDGES)
def test_postgres_follows_the_law(url: str, readings: list[Reading], scans: list[float], edge: float) -> None:
    with connect(url) as connection:

        def run(sql: str, values: Any = ()) -> None:
            connection.execute(sql, list(values))

        answer = asked(run, POSTGRES, lambda sql: connection.execute(translated(sql), []).fetchall(), "%s")
        assert answer(readings, scans, edge) == [item for item in increments(readings, scans) if item.end > edge]
