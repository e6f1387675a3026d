"""When rows go to files, and which files become one."""

from jobsight.store.plan import DAY, HOUR, LARGEST, LEAST, Move, Piece, moves, name

MIDNIGHT = 1794700800.0


def piece(level: str, start: float, made: float = 0.0, size: int = 1000) -> Piece:
    return Piece(f"{level}{start}", "load", level, start, start, start, 10, size, made, "time")


def test_an_hour_is_moved_a_quarter_of_an_hour_after_its_end() -> None:
    hours = {MIDNIGHT: LEAST, MIDNIGHT + HOUR: LEAST}
    assert moves("load", hours, [], MIDNIGHT + HOUR + 899) == []
    assert moves("load", hours, [], MIDNIGHT + HOUR + 900) == [Move("load", "hour", MIDNIGHT, MIDNIGHT + HOUR)]


def test_an_hour_of_few_rows_waits_for_its_day() -> None:
    hours = {MIDNIGHT: LEAST - 1}
    assert moves("load", hours, [], MIDNIGHT + DAY) == []
    assert moves("load", hours, [], MIDNIGHT + DAY + 7200) == [Move("load", "day", MIDNIGHT, MIDNIGHT + DAY)]


def test_rows_that_come_after_their_hours_file_wait_for_their_day() -> None:
    assert moves("load", {MIDNIGHT: LEAST}, [piece("hour", MIDNIGHT)], MIDNIGHT + 5 * HOUR) == []


def test_a_days_files_become_one() -> None:
    own = (piece("hour", MIDNIGHT), piece("hour", MIDNIGHT + HOUR))
    other = piece("hour", MIDNIGHT + DAY)
    found = moves("load", {}, [*own, other], MIDNIGHT + DAY + 7200)
    assert found == [Move("load", "day", MIDNIGHT, MIDNIGHT + DAY, own)]


def test_rows_that_come_after_their_days_file_get_another_once_a_day() -> None:
    own = [piece("day", MIDNIGHT, made=MIDNIGHT + DAY)]
    assert moves("load", {MIDNIGHT: 1}, own, MIDNIGHT + 2 * DAY - 1) == []
    assert moves("load", {MIDNIGHT: 1}, own, MIDNIGHT + 2 * DAY) == [Move("load", "day", MIDNIGHT, MIDNIGHT + DAY)]


def test_a_day_too_large_to_be_sorted_again_stays_in_hours_and_takes_late_rows() -> None:
    own = [piece("hour", MIDNIGHT, size=LARGEST), piece("hour", MIDNIGHT + HOUR)]
    assert moves("load", {}, own, MIDNIGHT + 3 * DAY) == []
    assert moves("load", {MIDNIGHT: 1}, own, MIDNIGHT + 3 * DAY) == [Move("load", "day", MIDNIGHT, MIDNIGHT + DAY)]


def test_rows_of_a_time_to_come_wait() -> None:
    assert moves("load", {MIDNIGHT + 400 * DAY: LEAST}, [], MIDNIGHT) == []


def test_files_are_named_by_their_time() -> None:
    hour = Move("load", "hour", MIDNIGHT + 13 * HOUR, MIDNIGHT + 14 * HOUR)
    assert name(hour, 1) == "load/2026/11/15/13.parquet"
    assert name(hour._replace(level="day", start=MIDNIGHT), 2) == "load/2026/11/15-2.parquet"
