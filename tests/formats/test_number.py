import pytest

from jobsight.formats import number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1, "1"),
        (0.01234, "0.0123"),
        (1.234, "1.23"),
        (1.2, "1.2"),
        (12.34, "12.3"),
        (123.4, "123"),
        (999.6, "1000"),
        (-1.234, "-1.23"),
        (0.09996, "0.1"),
    ],
)
def test_number_has_three_significant_digits(value: float, text: str) -> None:
    assert number.digits(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "—"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (16 * 2**30, "16 GiB"),
        (1024**2 - 1, "1 MiB"),
        (2**50 * 3, "3 PiB"),
    ],
)
def test_memory_is_in_binary_units(value: float | None, text: str) -> None:
    assert number.size(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "—"), (999, "999 B"), (1000, "1 kB"), (1.5e9, "1.5 GB"), (2e15, "2 PB")]
)
def test_data_moved_is_in_decimal_units(value: float | None, text: str) -> None:
    assert number.volume(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "—"), (0, "0"), (0.0004, "0"), (0.0123, "0.012"), (0.996, "1"), (3.14159, "3.14"), (128, "128")],
)
def test_cores_are_cores(value: float | None, text: str) -> None:
    assert number.cores(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "—"), (0, "0 %"), (0.5, "50 %"), (0.12345, "12.3 %"), (1, "100 %")]
)
def test_ratio_is_shown_in_percent(value: float | None, text: str) -> None:
    assert number.ratio(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "—"),
        (0, "0 s"),
        (0.25, "0.25 s"),
        (12.34, "12.3 s"),
        (60, "1:00"),
        (253, "4:13"),
        (3599.6, "1:00:00"),
        (18764, "5:12:44"),
        (2 * 86400 + 4 * 3600 + 13 * 60, "2 d 04:13"),
    ],
)
def test_duration_reads_as_a_clock(seconds: float | None, text: str) -> None:
    assert number.duration(seconds) == text


@pytest.mark.parametrize(
    ("values", "top", "bars"),
    [
        ([], None, ""),
        ([0.0, 0.0], None, "▁▁"),
        ([0.0, 0.5, 1.0], None, "▁▄█"),
        ([1.0], 2.0, "▄"),
        ([5.0], 1.0, "█"),
        ([-1.0, 1.0], None, "▁█"),
    ],
)
def test_spark_has_one_bar_a_value(values: list[float], top: float | None, bars: str) -> None:
    assert number.spark(values, top) == bars


@pytest.mark.parametrize(
    ("used", "given", "bar"),
    [
        (6, 10, "██████░░░░"),
        (0, 10, "░░░░░░░░░░"),
        (20, 10, "██████████"),
        (None, 10, "··········"),
        (5, None, "··········"),
        (5, 0, "··········"),
    ],
)
def test_meter_is_empty_where_nothing_is_known(used: float | None, given: float | None, bar: str) -> None:
    assert number.meter(used, given) == bar


def test_missing_number_says_why_if_told() -> None:
    assert number.size(None, "forbidden") == "forbidden"
    assert number.duration(None, "running") == "running"
