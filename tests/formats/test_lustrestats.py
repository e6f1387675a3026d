"""Lustre's job statistics: files of all releases, whole, torn and strange."""

import pytest

from jobsight.collector import ParseError
from jobsight.formats.lustreentry import Operation, parse
from jobsight.formats.lustreshape import Parser
from jobsight.formats.lustrestats import Cutter, totals

ENTRY = b"""- job_id:          "17:1001:n1"
  snapshot_time:   1700000120.123456789 secs.nsecs
  start_time:      1699999000.5 secs.nsecs
  elapsed_time:    1120.123456788 secs.nsecs
  write_bytes:     { samples:          10, unit: bytes, min:     4096, max:  1048576, sum:          5242880, \
sumsq:      3298534883328, hist: { 4K: 2, 1M: 8 } }
  write:           { samples:          10, unit: usecs, min:       12, max:      900, sum:             3100, \
sumsq:            1500000 }
"""
OTHER = ENTRY.replace(b"n1", b"n2").replace(b"10,", b"11,")


def cut(*pieces: bytes) -> tuple[list[bytes], int]:
    cutter = Cutter()
    return list(cutter.entries(pieces)), cutter.torn


def whole(line: str) -> dict[str, Operation]:
    return parse(f" x\n{line}".encode()).operations


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("  open:            { samples:           3, unit:  reqs }", Operation(3, "reqs")),
        (
            "  read_bytes:   { samples:      3, unit: bytes, min:16777216, max:16777216, sum:        50331648 }",
            Operation(3, "bytes", 50331648),
        ),
        (
            "  read_bytes: { samples: 3, unit: bytes, min:16777216, max:16777216, sum:1234567890123456, sumsq: 9 }",
            Operation(3, "bytes", 1234567890123456),
        ),
        ("  parallel_rename_dir: { samples: 2, unit: usecs, min: 1, max: 2, sum: 3, sumsq: 5 }",
         Operation(2, "usecs", 3)),
        ("  x: { samples: 2, unit: bytes, min: 1, max: 2, sum: 3, sumsq: 5, hist: {  } }",
         Operation(2, "bytes", 3, "")),
        ("  x: { unit: usecs, samples: 2, p99: 17, sum: 3 }", Operation(2, "usecs", 3)),
    ],
)  # fmt: skip
def test_each_line_is_read_for_what_it_is(line: str, said: Operation) -> None:
    ((_, found),) = whole(line).items()
    assert found == said


@pytest.mark.parametrize(
    "line",
    [
        "  open: { samples: 3", "  open: samples: 3 }", "  open: { samples: -3, unit: reqs }", "  open",
        "  open: { samples: 9223372036854775808, unit: reqs }",
        "  x: { samples: 1, unit: bytes, sum: 99999999999999999999 }",
    ],
)  # fmt: skip
def test_a_line_that_does_not_read_is_counted_and_the_others_are_kept(line: str) -> None:
    entry = parse(f" x\n  close: {{ samples: 1, unit: reqs }}\n{line}".encode())
    assert (entry.bad, entry.operations) == (1, {"close": Operation(1, "reqs")})


def test_times_of_old_and_of_broken_servers_are_read() -> None:
    line = b"\n  open: { samples: 1, unit: reqs }"
    assert parse(b" x\n  snapshot_time:   1700000120" + line)[1:3] == (1700000120.0, None)
    margin = b" x\nsnapshot_time   : 5123.000000001 secs.nsecs\nstart_time      : 12.5 secs.nsecs"
    assert parse(margin + line)[1:3] == (None, None)


@pytest.mark.parametrize("text", [b"", b"job_stats:\n", b"job_stats:", b"job_stats:\njob_stats:\n"])
def test_a_target_without_jobs_has_no_entries(text: bytes) -> None:
    assert cut(text) == ([], 0)


@pytest.mark.parametrize("text", [b"Input/output error", b"job_sta", b"<html>\n" + ENTRY])
def test_what_is_no_such_file_is_refused(text: bytes) -> None:
    with pytest.raises(ParseError, match="expected 'job_stats:'"):
        cut(text)


def test_headings_may_be_missing_or_doubled() -> None:
    expected = cut(b"job_stats:\n" + OTHER + ENTRY)
    assert len(expected[0]) == 2
    assert expected[1] == 0
    assert cut(OTHER + ENTRY) == expected
    assert cut(b"job_stats:\n" + OTHER + b"job_stats:\n" + ENTRY) == expected
    assert cut(b"job_stats:\n" + OTHER + ENTRY + b"job_stats:\n") == expected


def test_pieces_may_end_anywhere() -> None:
    text = b"job_stats:\n" + OTHER + ENTRY
    expected = cut(text)
    for at in range(len(text)):
        assert cut(text[:at], text[at:]) == expected


def test_a_torn_last_entry_is_dropped_and_counted_wherever_it_ends() -> None:
    text = b"job_stats:\n" + OTHER + ENTRY
    first = cut(b"job_stats:\n" + OTHER)[0]
    begun = text.index(ENTRY) + len(b"- job_id:")
    for end in range(begun, len(text)):
        assert cut(text[:end]) == (first, 1), text[end - 20 : end]


def test_an_entry_without_end_is_refused_before_it_fills_the_memory() -> None:
    def endless() -> object:
        yield b"job_stats:\n- job_id: x\n"
        while True:
            yield b"x" * 65536

    with pytest.raises(ParseError, match="to end within"):
        list(Cutter().entries(endless()))  # type: ignore[arg-type]


def test_entries_alike_read_as_line_by_line() -> None:
    parser = Parser()
    for text in (ENTRY, OTHER, OTHER.replace(b"hist: { 4K: 2, 1M: 8 }", b"hist: {  }"), ENTRY.replace(b"10,", b"0,")):
        (one,), _ = cut(text)
        assert parser.parse(one) == parse(one)


def test_an_entry_of_another_form_among_those_alike_is_read_too() -> None:
    parser = Parser()
    odd = [
        ENTRY.replace(b"write:  ", b"writes: "),
        ENTRY.replace(b"  write: ", b"  brew:  { samples: 1, unit: reqs }\n  write: "),
        ENTRY.replace(b"sum:             3100", b"sum: 9223372036854775807"),
        ENTRY.replace(b"samples:          10, unit: usecs", b"samples:          1x, unit: usecs"),
    ]
    for text in (ENTRY, *odd, ENTRY):
        (one,), _ = cut(text)
        assert parser.parse(one) == parse(one)


def test_only_sums_that_somebody_wants_are_read() -> None:
    (one,), _ = cut(ENTRY)
    (other,), _ = cut(OTHER)
    parser = Parser(frozenset({"write"}))
    for text, count in ((one, 10), (other, 11)):
        found = parser.parse(text).operations
        assert found["write"] == Operation(count, "usecs", 3100)
        assert found["write_bytes"] == Operation(count, "bytes", None, "4K=2,1M=8")


def test_totals_of_a_target_are_read() -> None:
    text = (
        "snapshot_time             1700000120.123456789 secs.nsecs\n"
        "start_time                1600000120.123456789 secs.nsecs\n"
        "read_bytes                12 samples [bytes] 1 4096 40960 123456\n"
        "setattr                   7 samples [reqs]\n"
        "getattr                   5 samples [usecs] 1 2 9 81\n"
        "strange line\n"
    )
    assert totals(text) == {
        "read_bytes": Operation(12, "bytes", 40960),
        "setattr": Operation(7, "reqs"),
        "getattr": Operation(5, "usecs", 9),
    }
    with pytest.raises(ParseError, match="snapshot_time"):
        totals("")
