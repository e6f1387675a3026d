"""What systemd hears from the agent."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from jobsight.agent.notify import Notify


def test_agent_says_that_it_is_ready_alive_reloading_and_stopping(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(60)
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"}
        environment |= {"JOBSIGHT_HOME": str(tmp_path / "home")}
        with subprocess.Popen(
            [sys.executable, "-m", "jobsight", "agent"],
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as agent:
            heard = [systemd.recv(100).decode() for _ in range(6)]
            # No collector is due for half a minute: it is the watchdog's pace that makes it speak.
            assert heard == ["READY=1", *["WATCHDOG=1"] * 5]
            agent.send_signal(signal.SIGHUP)
            until(systemd, "RELOADING=1")
            until(systemd, "READY=1")
            agent.send_signal(signal.SIGTERM)
            until(systemd, "STOPPING=1")
            assert agent.wait(30) == 0


def until(systemd: socket.socket, state: str) -> None:
    while (heard := systemd.recv(100).decode()) != state:
        assert heard == "WATCHDOG=1"


def test_abstract_address_is_understood() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(f"\0jobsight-{os.getpid()}")
        systemd.settimeout(10)
        Notify({"NOTIFY_SOCKET": f"@jobsight-{os.getpid()}"}).say("READY=1")
        assert systemd.recv(100) == b"READY=1"


def test_nobody_listening_is_no_trouble(tmp_path: Path) -> None:
    Notify({}).say("READY=1")
    Notify({"NOTIFY_SOCKET": str(tmp_path / "nobody")}).say("READY=1")


def test_watchdog_of_another_process_is_not_ours() -> None:
    assert Notify({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}).every is None
    assert Notify({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}).every == 15
    assert Notify({"WATCHDOG_USEC": "soon"}).every is None
