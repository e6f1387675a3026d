"""The spool: in order, bounded, and whole after any end."""

import os
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from jobsight.frame import HEAD
from jobsight.ship.spool import Spool

DAY = 86400.0


def payloads(spool: Spool) -> list[bytes]:
    return [frame.payload for frame in spool.oldest(10**9)]


def opened(path: Path, size: int = 10**6, age: float = DAY, now: float | None = None) -> Spool:
    return Spool(str(path), size, age, now if now is not None else __import__("time").time())


def test_the_oldest_come_first_and_what_is_acknowledged_is_gone(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    for i in range(5):
        spool.append(b"%d" % i, 0)
    frames = spool.oldest(10**9)
    assert [frame.payload for frame in frames] == [b"0", b"1", b"2", b"3", b"4"]
    spool.acknowledge(frames[1])
    assert payloads(spool) == [b"2", b"3", b"4"]
    assert spool.waiting == 3 * (HEAD.size + 1)


def test_a_new_life_goes_on_where_the_last_one_was_killed(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    for i in range(5):
        spool.append(b"%d" % i, 0)
    spool.acknowledge(spool.oldest(10**9)[1])
    again = opened(tmp_path)
    again.append(b"5", 0)
    assert payloads(again) == [b"2", b"3", b"4", b"5"]
    assert again.dropped == 0


def test_a_torn_last_record_is_dropped_and_counted(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    spool.append(b"whole", 0)
    spool.append(b"torn", 0)
    (file,) = tmp_path.glob("*.spool")
    os.truncate(file, file.stat().st_size - 2)
    again = opened(tmp_path)
    assert payloads(again) == [b"whole"]
    assert again.dropped == 1


def test_a_mark_that_was_lost_means_sending_again_and_losing_nothing(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    for i in range(3):
        spool.append(b"%d" % i, 0)
    spool.acknowledge(spool.oldest(10**9)[0])
    (tmp_path / "mark").write_bytes(b"")
    assert payloads(opened(tmp_path)) == [b"0", b"1", b"2"]


def test_when_full_the_oldest_go_and_are_counted(tmp_path: Path) -> None:
    spool = opened(tmp_path, size=10_000)
    for i in range(1000):
        spool.append(b"%04d" % i * 10, 0)
    left = payloads(spool)
    assert spool.waiting <= 10_000
    assert left[-1] == b"0999" * 10
    assert left == sorted(left)
    assert spool.dropped + len(left) == 1000


def test_what_is_too_old_goes_and_is_counted(tmp_path: Path) -> None:
    spool = opened(tmp_path, size=800)
    for i in range(10):
        spool.append(b"%d" % i * 100, 0)
    first = min(tmp_path.glob("*.spool"))
    os.utime(first, (0, 0))
    waiting = len(payloads(spool))
    spool.append(b"new", __import__("time").time())
    assert not first.exists()
    assert len(payloads(spool)) < waiting + 1


def test_a_message_larger_than_a_batch_still_goes_out_whole(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    spool.append(b"x" * 5000, 0)
    spool.append(b"y", 0)
    assert [len(frame.payload) for frame in spool.oldest(10)] == [5000]


def test_acknowledging_what_was_dropped_meanwhile_is_harmless(tmp_path: Path) -> None:
    spool = opened(tmp_path, size=2000)
    spool.append(b"a" * 200, 0)
    sent = spool.oldest(10**9)[-1]
    for _ in range(50):
        spool.append(b"b" * 200, 0)
    spool.acknowledge(sent)
    assert set(payloads(spool)) == {b"b" * 200}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["append", "take", "reopen"]), max_size=60))
def test_whatever_happens_messages_come_out_once_and_in_order(tmp_path_factory: object, steps: list[str]) -> None:
    path = tmp_path_factory.mktemp("spool")  # type: ignore[attr-defined]
    spool = opened(path, size=10**6)
    made, got = 0, []
    for step in steps:
        if step == "append":
            spool.append(b"%d" % made, 0)
            made += 1
        elif step == "reopen":
            spool = opened(path, size=10**6)
        elif frames := spool.oldest(20):
            got += [int(frame.payload) for frame in frames]
            spool.acknowledge(frames[-1])
    got += [int(payload) for payload in payloads(spool)]
    assert got == list(range(made))
