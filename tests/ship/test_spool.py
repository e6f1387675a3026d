"""The spool: in order, bounded, and whole after any end."""

import os
import signal
import subprocess
import sys
import time
from errno import EFBIG
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobsight.frame import HEAD
from jobsight.ship.backlog import backlog, backlogs
from jobsight.ship.spool import Spool

DAY = 86400.0


def payloads(spool: Spool) -> list[bytes]:
    return [frame.payload for frame in spool.oldest(10**9)]


def opened(path: Path, size: int = 10**6, age: float = DAY, now: float | None = None) -> Spool:
    return Spool(str(path), size, age, now if now is not None else time.time())


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
    assert (again.dropped, again.torn) == (1, 1)
    # And no more than once.
    assert (opened(tmp_path).dropped, opened(tmp_path).backlog().torn) == (0, 1)


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
    spool.append(b"new", time.time())
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


@pytest.mark.parametrize(
    "tail",
    [bytes(4096), b"\x05\x00\x00\x00", bytes(i * 73 % 256 for i in range(100)), b"\xff" * 100],
    ids=["zeros", "a length", "anything", "ones"],
)
def test_what_a_power_cut_leaves_behind_the_last_record_is_dropped_and_counted(tmp_path: Path, tail: bytes) -> None:
    """Zeros, for instance: the file was made longer, and what was to stand there never came."""
    spool = opened(tmp_path)
    spool.append(b"a", 0)
    spool.append(b"b", 0)
    (file,) = tmp_path.glob("*.spool")
    file.write_bytes(file.read_bytes() + tail)
    again = opened(tmp_path)
    assert payloads(again) == [b"a", b"b"]
    assert again.torn == 1
    again.append(b"c", 0)
    assert payloads(again) == [b"a", b"b", b"c"]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 200), st.booleans())
def test_wherever_the_file_ends_what_is_whole_comes_out_and_what_follows_goes_in(
    tmp_path_factory: pytest.TempPathFactory, cut: int, zeros: bool
) -> None:
    path = tmp_path_factory.mktemp("spool")
    spool = opened(path)
    for i in range(10):
        spool.append(b"%010d" % i, 0)
    (file,) = path.glob("*.spool")
    data = file.read_bytes()
    kept = min(cut, len(data))
    file.write_bytes(data[:kept] + (bytes(len(data) - kept) if zeros else b""))
    again = opened(path)
    whole = kept // (HEAD.size + 10)
    assert payloads(again) == [b"%010d" % i for i in range(whole)]
    torn = kept < len(data) if zeros else kept % (HEAD.size + 10) != 0
    assert (again.torn, again.messages) == (int(torn), whole)


WRITER = """
import sys, time
from jobsight.ship.spool import Spool
spool = Spool(sys.argv[1], 10**8, 1e6, time.time())
for number in range(10**9):
    spool.append(b"%d " % number * 50, time.time())
    print(number, flush=True)
"""


def test_after_kill_nine_everything_that_was_taken_is_there(tmp_path: Path) -> None:
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "s")], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        said = [int(writer.stdout.readline()) for _ in range(500)]
        writer.send_signal(signal.SIGKILL)
        said += [int(line) for line in writer.communicate()[0].split()]
        spool = opened(tmp_path / "s", size=10**8, age=1e6)
        found = [int(payload.split()[0]) for payload in payloads(spool)]
        assert found[: len(said)] == said
        assert len(found) <= len(said) + 1, "at most the one that was under way is more"
        spool.acknowledge(spool.oldest(10**9)[-1])
        assert (spool.messages, spool.torn) == (0, 0)


def test_nothing_is_kept_much_longer_than_its_age_however_little_comes(tmp_path: Path) -> None:
    """A trickle never fills a segment; it is cut by time."""
    spool = opened(tmp_path, age=800, now=10_000)
    for now in range(10_000, 14_000, 50):
        spool.append(b"%d" % now, now)
        # What the disk would say, had the time really passed.
        os.utime(spool._segments[spool._last].path, (now, now))
        oldest = int(payloads(spool)[0])
        assert now - oldest <= 800 + 800 / 8 + 50
    assert spool.dropped + spool.messages == 80
    assert spool.dropped > 50


def test_a_message_larger_than_the_spool_is_refused_and_pushes_nothing_out(tmp_path: Path) -> None:
    spool = opened(tmp_path, size=1000)
    spool.append(b"a" * 100, 0)
    with pytest.raises(OSError, match="larger than the spool may be") as caught:
        spool.append(b"b" * 1000, 0)
    assert caught.value.errno == EFBIG
    assert payloads(spool) == [b"a" * 100]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 900), max_size=60))
def test_the_bound_in_bytes_holds_whatever_comes(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int]
) -> None:
    path = tmp_path_factory.mktemp("spool")
    spool = opened(path, size=1000)
    for length in lengths:
        spool.append(b"x" * length, 0)
        assert spool.waiting <= 1000
        assert sum(file.stat().st_size for file in path.glob("*.spool")) <= 1000
    assert spool.dropped + len(payloads(spool)) == len(lengths)
    assert spool.messages == len(payloads(spool))


def test_its_state_is_the_same_from_inside_and_from_outside(tmp_path: Path) -> None:
    spool = opened(tmp_path / "one", size=2000, now=100)
    assert backlog(str(tmp_path / "one")) == spool.backlog() == (0, 0, None, 0, 0)
    for i in range(100):
        spool.append(b"%03d" % i * 10, 200 + i)
    state = spool.backlog()
    assert backlog(str(tmp_path / "one")) == state
    assert state.dropped + state.messages == 100
    assert state.since is not None
    first = int(payloads(spool)[0][:3])
    assert state.since == 200 + first
    spool.acknowledge(spool.oldest(50)[-1])
    # Some of a segment are gone: since its beginning at the earliest.
    assert spool.backlog().since == state.since
    assert backlog(str(tmp_path / "one")) == spool.backlog()
    spool.acknowledge(spool.oldest(10**9)[-1])
    assert backlog(str(tmp_path / "one"))[:3] == (0, 0, None)
    assert backlogs(str(tmp_path)) == {"one": spool.backlog()}
    assert backlogs(str(tmp_path / "none")) == {}
    # What was lost is remembered over lives.
    assert opened(tmp_path / "one").backlog().dropped == state.dropped


def test_one_that_is_empty_between_times_is_not_called_old(tmp_path: Path) -> None:
    spool = opened(tmp_path, now=1000)
    for now in range(1000, 2000, 100):
        spool.append(b"x", now)
        assert spool.backlog().since == now
        spool.acknowledge(spool.oldest(10)[-1])
        assert spool.backlog().since is None


def test_a_spool_of_an_earlier_version_is_gone_on_with(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    for i in range(3):
        spool.append(b"%d" % i, 0)
    (file,) = tmp_path.glob("*.spool")
    file.rename(tmp_path / "00000001.spool")
    (tmp_path / "mark").write_bytes(b"1 %d\n" % (HEAD.size + 1))
    again = opened(tmp_path)
    assert payloads(again) == [b"1", b"2"]
    assert again.backlog().since == pytest.approx(file_time(tmp_path / "00000001.spool"))


def file_time(path: Path) -> float:
    return path.stat().st_mtime
