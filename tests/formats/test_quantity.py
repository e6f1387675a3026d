import pytest

from jobsight.formats import quantity


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("5min", 300),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("1.5h", 5400),
        ("7d", 604800),
        ("2w", 1209600),
        ("250ms", 0.25),
        (" 10 S ", 10),
        ("0s", 0),
    ],
)
def test_duration_is_read(text: str, seconds: float) -> None:
    assert quantity.duration(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "s", "-5s", "5s!", "5m3", "2026-11-15", "h5", "1.2.3s", "soon"])
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration such as 30s"):
        quantity.duration(text)


def test_unknown_unit_of_time_is_named_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match=r"unknown unit 'x' in '3x'; there are ms, s, m, min, h, d, w, y"):
        quantity.duration("3x")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1024", 1024),
        ("1 B", 1),
        ("1k", 1024),
        ("1 KiB", 1024),
        ("1kB", 1000),
        ("512 MiB", 536870912),
        ("2 GB", 2_000_000_000),
        ("2G", 2 * 2**30),
        ("1.5g", 3 * 2**29),
        ("1TiB", 2**40),
        ("1tb", 10**12),
    ],
)
def test_size_is_read(text: str, size: int) -> None:
    assert quantity.size(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1 XB", "1 2", "1,5 GB", "1e3"])
def test_what_is_no_size_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="expected a size such as 512 MiB"):
        quantity.size(text)
