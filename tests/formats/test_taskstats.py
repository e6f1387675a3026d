"""Exit records: recorded ones, and the same with other versions, places and damage."""

import struct
from pathlib import Path
from typing import Any

import pytest

from jobsight.collector import ParseError
from jobsight.formats import taskstats
from jobsight.formats.taskstats import Groups, Task, UnfitError, cpu_time, merged, task

RECORDED = Path(__file__).parent.parent / "collect/exited/debian12-taskstats16/root/exits.hex"
MESSAGES = [bytes.fromhex(line) for line in RECORDED.read_text().split()]
PLAIN = MESSAGES[0]
# Of the structure inside, and of its fields there.
STRUCTURE = 36
VERSION, PID, PEAK = 0, 128, 200


def changed(message: bytes, offset: int, form: str, value: int) -> bytes:
    copy = bytearray(message)
    struct.pack_into(form, copy, STRUCTURE + offset, value)
    return bytes(copy)


def shortened(message: bytes, size: int) -> bytes:
    """With a structure of that size, all lengths being right."""
    copy = bytearray(message[: STRUCTURE + size])
    for place, length in ((0, len(copy)), (20, len(copy) - 20), (32, size + 4)):
        struct.pack_into("=H", copy, place, length)
    return bytes(copy)


def padded(message: bytes) -> bytes:
    """As kernels lay it out that put an empty attribute before the structure to align it."""
    copy = bytearray(message[:32] + struct.pack("=HH", 4, 6) + message[32:])
    (length,) = struct.unpack_from("=H", copy, 20)
    struct.pack_into("=H", copy, 20, length + 4)
    return bytes(copy)


def a_task(**values: Any) -> Task:
    made = Task(7, True, True, 1, 0, "sh", 10_000, 7, 3, 4, 5, 6, 100)
    return made._replace(**values)


def test_record_says_who_ended_and_what_it_used() -> None:
    assert task(PLAIN) == Task(21544, True, True, 21543, 1001, "compile", 2382, 656, 0, 0, 0, 0, 1114112)


def test_recorded_dd_wrote_a_mebibyte_and_the_page_that_names_the_file() -> None:
    (found,) = [found for found in map(task, MESSAGES) if found.command == "dd"]
    assert (found.read, found.written) == (90112, 2**20 + 8192)


def test_threads_of_a_process_are_told_from_it_and_the_last_to_go_may_be_one() -> None:
    found = [(part.leads, part.last) for part in map(task, MESSAGES) if part.command == "python3"]
    assert found == [(False, False), (False, False), (True, False), (False, True)]


def test_threads_together_are_one_process_with_the_time_of_all() -> None:
    parts = [part for part in map(task, MESSAGES) if part.command == "python3"]
    groups = Groups()
    (whole,) = [whole for part in parts if (whole := groups.whole(part, 500.0))]
    assert whole.cpu == sum(part.cpu for part in parts)
    assert whole.user + whole.system == 112_000
    assert (whole.leads, groups.lost) == (True, 0)


def test_empty_attribute_before_the_structure_changes_nothing() -> None:
    assert [task(padded(message)) for message in MESSAGES] == [task(message) for message in MESSAGES]


def test_newer_kernels_may_append_fields() -> None:
    longer = bytearray(PLAIN + b"\xff" * 64)
    for place, length in ((0, len(longer)), (20, len(longer) - 20), (32, len(longer) - 32)):
        struct.pack_into("=H", longer, place, length)
    assert task(changed(bytes(longer), VERSION, "=H", 99)) == task(PLAIN)


def test_version_12_is_long_enough() -> None:
    assert task(changed(shortened(PLAIN, 400), VERSION, "=H", 12)) == task(PLAIN)


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        # Linux 5.14, as of Enterprise Linux 9.
        (changed(shortened(PLAIN, 352), VERSION, "=H", 10), "expected version 12 or later, got 10 of 352 bytes"),
        (changed(PLAIN, VERSION, "=H", 11), "expected version 12 or later, got 11"),
        (shortened(PLAIN, 300), "expected version 12 or later, got 16 of 300 bytes"),
        (changed(PLAIN, PID, "=I", 1), "version 16 has no pid 21544 in its place, got 1"),
    ],
)
def test_records_that_say_too_little_or_elsewhere_are_unfit_for_good(message: bytes, sentence: str) -> None:
    with pytest.raises(UnfitError, match=sentence):
        task(message)


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (b"", "expected a record, got"),
        (PLAIN[:19], "expected a record, got"),
        (PLAIN[:20], "expected the record of a task"),
        (PLAIN[:4] + b"\x02\x00" + PLAIN[6:], "expected a record, got"),
        (PLAIN[:60], "expected an attribute of 4 to 40 bytes, got 576"),
        (PLAIN[:20] + b"\x03\x00" + PLAIN[22:], "got 3"),
        (PLAIN[:32] + b"\x04\x00\x09\x00" + PLAIN[36:], "expected an attribute|expected a pid and its statistics"),
        (PLAIN[:32] + b"\x04\x00\x03\x00" + PLAIN[36:], "expected a version, got nothing"),
        (changed(PLAIN, PEAK, "=Q", 2**63), "impossible numbers of pid 21544"),
    ],
)
def test_damaged_record_is_a_parse_error_that_another_may_not_have(message: bytes, sentence: str) -> None:
    with pytest.raises(ParseError, match=sentence) as raised:
        task(message)
    assert not isinstance(raised.value, UnfitError)


def test_every_cut_of_a_record_is_a_parse_error() -> None:
    for size in range(len(PLAIN)):
        with pytest.raises(ParseError):
            task(PLAIN[:size])


def test_command_that_is_no_text_is_shown_byte_by_byte() -> None:
    name = PLAIN.index(b"compile")
    assert task(PLAIN[:name] + b"a\xff\nb\0le" + PLAIN[name + 7 :]).command == "a\\xff\nb"


@pytest.mark.parametrize(
    ("run", "turns", "waited", "sleeps", "lived", "expected"),
    [
        # Never slept: all its life but the waiting, and no tick came before its end.
        (0, 1, 100, 0, 1100, 1000),
        (58_000, 4, 30_000, 0, 90_500, 60_500),
        # Clocks that disagree: never less than seen, never a tick more.
        (900, 1, 300, 0, 1000, 900),
        (10_000, 2, 0, 0, 99_000, 14_000),
        # Slept: its last turn is as long as the others, a tick halved at most, and within its life.
        (500, 2, 0, 1, 50_000, 1000),
        (3000, 4, 0, 3, 50_000, 4000),
        (90_000, 3, 0, 2, 500_000, 92_000),
        (500, 2, 100, 1, 700, 600),
        (0, 1, 0, 1, 5000, 0),
    ],
)
def test_cpu_time_is_what_was_seen_and_the_rest_that_was_not_yet(
    run: int, turns: int, waited: int, sleeps: int, lived: int, expected: int
) -> None:
    assert cpu_time(run, turns, waited, sleeps, lived, 4000) == expected


def test_kernel_that_does_not_count_turns_gives_samples() -> None:
    changed_turns = changed(changed(PLAIN, 16, "=Q", 0), 152, "=Q", 8000)
    assert task(changed_turns).cpu == 8000


def test_process_has_its_leaders_command_whoever_ended_last() -> None:
    leader, thread = a_task(command="python3"), a_task(command="worker", leads=False, peak=90)
    for parts in ((leader, thread), (thread, leader)):
        whole = merged(*parts)
        assert (whole.command, whole.leads, whole.peak) == ("python3", True, 100)
        assert (whole.cpu, whole.user, whole.system, whole.read, whole.written) == (14, 6, 8, 10, 12)
    assert merged(thread, thread).command == "worker"


def test_threads_of_an_earlier_process_of_the_same_number_are_not_added_but_told() -> None:
    groups = Groups()
    assert groups.whole(a_task(last=False), 100.0) is None
    assert groups.whole(a_task(user=50), 200.0) == a_task(user=50)
    assert groups.lost == 1


def test_processes_that_never_end_take_no_memory_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taskstats, "GROUPS", 3)
    groups = Groups()
    for pid in range(5):
        groups.whole(a_task(group=pid, last=False), 1.0)
    assert groups.lost == 2
    whole = groups.whole(a_task(group=4), 1.0)
    assert whole is not None
    assert whole.user == 6


def test_answers_are_told_from_records() -> None:
    refusal = struct.pack("=IHHIIi", 36, 2, 0, 0, 0, -1) + bytes(16)
    assert taskstats.answer(refusal) == 1
    assert taskstats.answer(PLAIN) is None
    with pytest.raises(ParseError, match="expected the number of a family"):
        taskstats.family(struct.pack("=IHHIIBBH", 20, 16, 0, 0, 0, 1, 2, 0))
