"""What systemd wants to hear from a service, see sd_notify(3): that it is ready, and that it is still alive.

Outside systemd nobody listens and nothing is said.
"""

import os
from collections.abc import Mapping


class Notify:
    """The socket systemd named when it started us."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        # An address that begins with @ is in the abstract namespace, which the kernel marks with a zero byte.
        self._address = environment.get("NOTIFY_SOCKET", "").replace("@", "\0", 1)
        microseconds = environment.get("WATCHDOG_USEC", "")
        mine = environment.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
        # Twice as often as asked: one late turn is no reason to be shot.
        self.every = int(microseconds) / 2_000_000 if microseconds.isdecimal() and mine else None

    def say(self, state: str) -> None:
        """`READY=1`, `WATCHDOG=1`, `RELOADING=1`, `STOPPING=1`. A listener that is away is no trouble of ours."""
        if not self._address:
            return
        # Not `socket`: with its selectors and enumerations it would be half a megabyte of the agent's memory.
        from _socket import AF_UNIX, SOCK_CLOEXEC, SOCK_DGRAM, socket

        link = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC)
        try:
            link.sendto(state.encode(), self._address)
        except OSError:
            pass
        finally:
            link.close()
