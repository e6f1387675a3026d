"""A management controller of our own: OpenIPMI's simulator on a free port, with DCMI from our own C."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import wait_until

PROGRAMS = ("ipmi_sim", "ipmi-dcmi", "ipmitool", "cc")
HEADER = Path("/usr/include/OpenIPMI/mcserv.h")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SOURCE = Path(__file__).parent / "dcmi.c"

LAN = """\
name "controller"
loadlib "{base}/dcmi.so" "{base}/watts"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  user 2 true "mon" "test" admin 10 none md2 md5 straight
"""
COMMANDS = """\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02
sel_enable 0x20 1000 0x0a
mc_enable 0x20
"""


class Controller:
    """The simulator, and what it measures."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket(type=socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]

    def start(self) -> None:
        base = self._base
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", base / "dcmi.so", SOURCE], check=True)
        (base / "lan.conf").write_text(LAN.format(base=base, port=self._port))
        (base / "sim.emu").write_text(COMMANDS)
        (base / "state").mkdir()
        self.measure("217 180 260 215")
        with (base / "log").open("wb") as log:
            self._process = subprocess.Popen(
                ["ipmi_sim", "-n", "-c", base / "lan.conf", "-f", base / "sim.emu", "-s", base / "state"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={"PATH": PATH}, start_new_session=True,
            )  # fmt: skip
        wait_until(self._answers, 30, "the simulated controller answers")

    def measure(self, what: str | None) -> None:
        """Four numbers, or `refuse`, or `off`; nothing at all makes it hang."""
        (self._base / "watts").unlink(missing_ok=True)
        if what is not None:
            (self._base / "watts").write_text(f"{what}\n")

    def freeipmi(self, *words: str) -> tuple[str, ...]:
        return ("ipmi-dcmi", "-h", f"127.0.0.1:{self._port}", "-u", "mon", "-p", "test", "-D", "LAN", "-l", "ADMIN",
                *(words or ("--get-system-power-statistics",)))  # fmt: skip

    def ipmitool(self, *words: str) -> tuple[str, ...]:
        # Without a cipher suite it tries them all, for ten seconds.
        return ("ipmitool", "-I", "lanplus", "-C", "3", "-H", "127.0.0.1", "-p", str(self._port), "-U", "mon",
                "-P", "test", *(words or ("dcmi", "power", "reading")))  # fmt: skip

    def stop(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._base / "log").read_text()
        asked = subprocess.run(self.ipmitool(), capture_output=True, check=False, env={"PATH": PATH}, timeout=30)
        return asked.returncode == 0


@pytest.fixture(scope="module")
def controller() -> Iterator[Controller]:
    """One for a module's tests. Where none can be had it is said; in CI it is an error."""
    lacking = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    lacking += [] if HEADER.exists() else [str(HEADER)]
    if lacking:
        sentence = f"NO CONTROLLER WAS ASKED FOR POWER: {', '.join(lacking).upper()} NOT FOUND; RUN scripts/servers"
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    base = Path(tempfile.mkdtemp(prefix="ipmi-"))
    made = Controller(base)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(base, ignore_errors=True)
