"""A vendor's library in a process of its own: whatever it does, the others go on."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobsight.drivers import attendant, vendors
from jobsight.drivers.attendant import Attendant, AttendantError, LateError
from jobsight.drivers.vendors import Cards, Vendor
from jobsight.host import Host

GOOD = """
from jobsight.drivers.card import Card, Reading
class Reader:
    count = 0
    def read(self):
        Reader.count += 1
        print("libraries print what they like")
        return Reading([Card("good", f"GPU-{Reader.count}")], [])
"""
SLOW = GOOD.replace(
    "Reader.count += 1", "Reader.count += 1; __import__('time').sleep(600 if Reader.count == 2 else 0)"
)
CRASH = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
SAYS_WHY = GOOD.replace("Reader.count += 1", "raise RuntimeError('nvmlInit: driver not loaded')")


@pytest.fixture(autouse=True)
def drivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for drivers of the test's own, which the other process finds as ours."""
    for name, text in {"good": GOOD, "slow": SLOW, "crash": CRASH, "why": SAYS_WHY}.items():
        (tmp_path / f"{name}_driver.py").write_text(text)
    monkeypatch.setattr(
        attendant,
        "SCRIPT",
        "import sys; name, *sys.path = sys.argv[1:]; import jobsight.drivers; "
        f"jobsight.drivers.__path__.append({str(tmp_path)!r}); "
        "from jobsight.drivers import attendant; attendant.serve(name)",
    )
    return tmp_path


@pytest.fixture
def one() -> Iterator[list[Attendant]]:
    made: list[Attendant] = []
    yield made
    for found in made:
        found.close()


def ask(attendant: Attendant, seconds: float = 20.0) -> str:
    attendant.ask()
    card = attendant.answer(time.monotonic() + seconds)["cards"][0]
    return str(card["uuid"])


def test_it_answers_again_and_again_whatever_is_printed(one: list[Attendant]) -> None:
    one.append(good := Attendant("good_driver"))
    assert [ask(good) for _ in range(3)] == ["GPU-1", "GPU-2", "GPU-3"]


def test_one_that_crashes_says_so_and_rests_before_it_starts_again(one: list[Attendant]) -> None:
    one.append(crash := Attendant("crash_driver"))
    with pytest.raises(
        AttendantError, match=r"crash_driver: its process (was killed by signal 11|stopped to answer)"
    ):
        ask(crash)
    with pytest.raises(AttendantError, match="crash_driver"):
        ask(crash)
    assert crash.pid == 0, "not started again at once"


def test_one_that_fails_says_why_and_is_asked_again(one: list[Attendant]) -> None:
    one.append(why := Attendant("why_driver"))
    for _ in range(2):
        with pytest.raises(AttendantError, match="why_driver: RuntimeError: nvmlInit: driver not loaded"):
            ask(why)


def test_one_that_hangs_is_late_and_in_the_end_ended(one: list[Attendant], monkeypatch: pytest.MonkeyPatch) -> None:
    one.append(slow := Attendant("slow_driver"))
    assert ask(slow) == "GPU-1"
    with pytest.raises(LateError):
        ask(slow, 0.1)
    pid = slow.pid
    monkeypatch.setattr(attendant, "PATIENCE", 0.1)
    time.sleep(0.2)
    with pytest.raises(AttendantError, match="ended"):
        ask(slow, 0.1)
    for _ in range(100):
        if slow._left_alone():
            break
        time.sleep(0.05)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_it_leaves_with_the_agent_even_while_a_library_hangs(one: list[Attendant]) -> None:
    one.append(slow := Attendant("slow_driver"))
    ask(slow)
    slow.ask()
    time.sleep(0.2)
    os.close(slow._asking)  # as when the agent is killed
    slow._asking = -1
    assert os.waitid(os.P_PID, slow.pid, os.WEXITED | os.WNOWAIT) is not None
    os.kill(slow.pid, signal.SIGKILL)


def test_one_makers_trouble_is_not_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = (
        Vendor("crash", "proc/self", "crash_driver"),
        Vendor("good", "proc/self", "good_driver"),
        Vendor("none", "proc/no", "x"),
    )
    monkeypatch.setattr(vendors, "VENDORS", chosen)
    host, cards = Host(), Cards()
    try:
        found = {card.vendor: card for card in cards.read(host).cards}
        assert found["good"].uuid == "GPU-1"
        assert (found["crash"].uuid, bool(found["crash"].trouble)) == ("", True)
        assert found.keys() == {"crash", "good"}
        assert host.missed() == {"uuid": "failed"}
    finally:
        cards.close()
