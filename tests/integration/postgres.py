"""A real PostgreSQL of our own: a cluster in a temporary directory, on a free port, stopped by process id."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.conftest import free_port, wait_until

PROGRAMS = ("initdb", "postgres")


def programs() -> dict[str, str]:
    """Debian keeps them out of the way, one folder a version; the newest is taken."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    path = os.pathsep.join([*map(str, reversed(folders)), os.environ.get("PATH", "")])
    return {name: found for name in PROGRAMS if (found := shutil.which(name, path=path))}


class Cluster:
    """One server with as many databases as are asked for. It refuses to run as root, so root lends it a user."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._programs = programs()
        self._account = pwd.getpwnam("postgres") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
        self._port = free_port()
        self._numbers = count(1)
        self._process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        self._base.chmod(0o755)
        for name in ("data", "run"):
            (self._base / name).mkdir(mode=0o700)
            os.chown(self._base / name, self._account.pw_uid, self._account.pw_gid)
        done = subprocess.run(
            [self._programs["initdb"], "-D", self._base / "data", "-U", "tester", "-A", "trust", "-E", "UTF8",
             "--locale=C.UTF-8", "--no-sync"],
            capture_output=True, text=True, check=False, cwd="/", **self._user(),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        settings: dict[str, object] = {
            "listen_addresses": "127.0.0.1", "port": self._port, "unix_socket_directories": self._base / "run",
            # A killed server keeps what the kernel has; only a power cut would ask for more.
            "fsync": "off", "shared_buffers": "32MB", "max_connections": 50,
        }  # fmt: skip
        if self.has("timescaledb"):
            settings |= {"shared_preload_libraries": "timescaledb", "timescaledb.telemetry_level": "off"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self._base / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs["postgres"], "-D", self._base / "data", *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", **self._user(),
            )  # fmt: skip
        wait_until(self._answers, 60, "PostgreSQL answers")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT is a quick stop; SIGQUIT lets everything fall, as a power cut would."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def url(self, database: str) -> str:
        return f"postgresql://tester@127.0.0.1:{self._port}/{database}"

    def database(self) -> str:
        """The address of a new, empty database."""
        name = f"store{next(self._numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def has(self, extension: str) -> bool:
        """Whether the server comes with it, be it Debian's folder or another's."""
        bin_folder = Path(self._programs["postgres"]).resolve().parent
        version = bin_folder.parent.name
        places = (bin_folder.parent / "share" / "extension", Path("/usr/share/postgresql") / version / "extension")
        return any((place / f"{extension}.control").exists() for place in places)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._base / "log").read_text()[-2000:]
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _user(self) -> dict[str, Any]:
        if os.geteuid() != 0:
            return {}
        return {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A server for the whole run. Where none can be had it is said; in CI it is an error."""
    lacking = [name for name in PROGRAMS if name not in programs()]
    if os.geteuid() == 0 and not any(account.pw_name == "postgres" for account in pwd.getpwall()):
        lacking.append("the user postgres")
    if lacking:
        sentence = f"POSTGRESQL IS NOT TESTED: {', '.join(lacking).upper()} NOT FOUND; RUN scripts/servers AS ROOT"
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    # Not under pytest's own folder: that one is closed to other users, and its names are too long for a socket.
    base = Path(tempfile.mkdtemp(prefix="postgres-"))
    server = Cluster(base)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop(signal.SIGQUIT)
        shutil.rmtree(base, ignore_errors=True)
