import pytest

from jobsight.collector import ParseError
from jobsight.formats import pbs

RECORD = "11/15/2026 07:14:05;E;98.srv;user=ann jobname=x ctime=1 start=2 exec_host=n1/0 end=10 Exit_status={}\n"


@pytest.mark.parametrize(
    ("text", "size"),
    [("4gb", 4 * 2**30), ("1234kb", 1234 * 1024), ("512b", 512), ("512", 512), ("2GB", 2**31), ("", None)],
)
def test_size_is_in_bytes(text: str, size: int | None) -> None:
    assert pbs.size(text) == size


def test_what_is_no_size_is_refused() -> None:
    with pytest.raises(ParseError, match="size"):
        pbs.size("many")


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(0, ("COMPLETED", 0, 0)), (3, ("FAILED", 3, 0)), (271, ("FAILED", 0, 15)), (265, ("FAILED", 0, 9)),
     (-29, ("TIMEOUT", None, None)), (-27, ("OUT_OF_MEMORY", None, None)), (-1, ("FAILED", None, None))],
)  # fmt: skip
def test_exit_status_tells_code_signal_and_reason(status: int, outcome: tuple[str, int | None, int | None]) -> None:
    (row,), bad = pbs.ended(RECORD.format(status), 0, 100)
    assert (row["state"], row["exit_code"], row["exit_signal"]) == outcome
    assert bad == 0


def test_only_ends_of_the_window_count() -> None:
    assert pbs.ended(RECORD.format(0), 0, 9) == ([], 0)
    assert pbs.ended(RECORD.format(0).replace(";E;", ";S;"), 0, 100) == ([], 0)


def test_line_that_breaks_off_is_counted_and_the_others_go_on() -> None:
    rows, bad = pbs.ended(RECORD.format(0)[:50] + "\n" + RECORD.format(0), 0, 100)
    assert (len(rows), bad) == (1, 1)


def test_hosts_are_named_once_and_their_cpus_counted() -> None:
    (row,), _ = pbs.ended(RECORD.format(0).replace("n1/0 ", "n1/0*2+n2/0*4+n1/2 "), 0, 100)
    assert (row["nodes"], row["node_count"], row["cpus"]) == ("n[1-2]", 2, 7)


@pytest.mark.parametrize("text", ["", "qstat: cannot connect", "[]"])
def test_what_is_no_json_of_jobs_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="JSON"):
        pbs.queued(text)
